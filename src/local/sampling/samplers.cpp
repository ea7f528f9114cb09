#include "local/sampling/samplers.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"
#include "local/store/stored.hpp"

#include <utility>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

SamplerRow const* Samplers::find(std::string const& id) const {
    auto const found = samplers_.find(id);
    return found == samplers_.end() ? nullptr : &found->second;
}

void Samplers::add(SamplerRow row) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto const id = row.id;
    samplers_[id] = std::move(row);
}

MaybeRefused Samplers::check_new(std::string_view operation, std::string const& session) {
    std::size_t have = 0;
    for_session(samplers_, session, [&](auto&, auto&) { ++have; });
    if (auto no = uses_.sessions.check_count(operation, session, "samplers", have)) return no;
    return uses_.sessions.keep(operation, 0);
}

bool Samplers::in_use(std::string const& session) const {
    return has_of_session(samplers_, session);
}

std::size_t Samplers::kept_bytes(std::string const& session) const {
    std::size_t bytes = 0;
    for_session(samplers_, session, [&](auto&, auto&) { bytes += row_bytes; });
    return bytes;
}

void Samplers::summarize(std::string const& session, SessionHoldings& summary) const {
    for_session(samplers_, session,
                [&](std::string const& id, auto&) { summary.samplers.push_back(id); });
}

void Samplers::end_session(std::string const& session) {
    for_session(samplers_, session, [&](auto&, SamplerRow const& row) {
        if (!row.folder.empty()) uses_.weights.retire(row.folder);
    });
}

void Samplers::forget_session(std::string const& session, std::vector<Change>& changes) {
    for_session(samplers_, session, [&](auto&, SamplerRow const& row) {
        if (row.folder.empty()) return;
        changes.push_back({Table::meta, removal_key(row.folder), std::string{}});
        uses_.weights.retire(row.folder);
    });
    forget_of_session(samplers_, Table::sampler, session, changes);
}

// Endpoints -------------------------------------------------------------------------------------

MaybeRefused Samplers::create_sampling_session(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask, [](std::string body) { return ws::decode_create_sampling_session(body); },
        [this](Ask& asked, ws::CreateSamplingSession const& request) {
            return make_sampler(asked, request);
        });
}

Outcome<SamplerRow> Samplers::row_of(ws::CreateSamplingSession const& request) const {
    auto const owner = uses_.sessions.active("create_sampling_session", request.session_id);
    if (!owner) return owner.refused();
    auto const& session = (*owner)->id;
    SamplerRow row{.id = session + ":sample:" + std::to_string(request.sampling_session_seq_id),
                   .session = session,
                   .created = uses_.services.scheduler.wall()};
    if (request.model_path) {
        auto const found = uses_.checkpoints.find("create_sampling_session", *request.model_path);
        if (!found) return found.refused();
        auto const& saved = **found;
        if (request.base_model && *request.base_model != saved.base_model) {
            return Refused{400, "create_sampling_session: " + *request.model_path + " belongs to " +
                                    saved.base_model + ", not to " +
                                    request.base_model->substr(0, 200)};
        }
        row.base_model = saved.base_model;
        row.model_path = saved.path.text();
        return row;
    }
    if (!request.base_model) {
        return Refused{400, "create_sampling_session: give base_model or model_path"};
    }
    auto const base = uses_.bases.find("create_sampling_session", *request.base_model);
    if (!base) return base.refused();
    row.base_model = (*base)->source.name;
    return row;
}

MaybeRefused Samplers::make_sampler(Ask& ask, ws::CreateSamplingSession const& request) {
    auto const made = row_of(request);
    if (!made) return made.refused();
    auto const& row = *made;
    auto const& id = row.id;
    auto const reply = [id](Answer& answer) {
        send_json(answer, json_object([&](JsonOut& json) {
                      json.member("sampling_session_id", id);
                      json.member("type", "create_sampling_session");
                  }));
    };
    auto const same = [&row](SamplerRow const& other) {
        return other.base_model == row.base_model && other.model_path == row.model_path &&
               other.folder.empty();
    };
    auto const* const known = find(id);
    auto const coming = new_samplers_.find(id);
    if ((known != nullptr && !same(*known)) ||
        (coming != new_samplers_.end() && !same(coming->second))) {
        return Refused{409, "create_sampling_session: there is a sampler " + id +
                                " already, of other weights"};
    }
    if (known != nullptr) {
        reply(*ask.answer);
        return {};
    }
    if (auto no = check_new("create_sampling_session", row.session)) return no;
    // A repeat that comes before the row is safe is written once more.
    new_samplers_[id] = row;
    uses_.services.store->write(
        {{Table::sampler, id, encode(row)}},
        [this, row, reply, answer = ask.answer](Result<void> const& written) {
            new_samplers_.erase(row.id);
            if (!written) {
                return send_refusal(*answer,
                                    not_written("create_sampling_session", written.error()));
            }
            samplers_.emplace(row.id, row);
            reply(*answer);
        });
    return {};
}

MaybeRefused Samplers::join_sampling_session(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask,
        [](std::string body) {
            return ws::decode_text("join_sampling_session", body, "sampling_session_id");
        },
        [this](Ask& asked, std::string id) -> MaybeRefused {
            uses_.services.turns.take(
                asked, [this, id = std::move(id)](Ask& mine, ChangeQueue::Held turn) {
                    return join(mine, id, std::move(turn));
                });
            return {};
        });
}

MaybeRefused Samplers::join(Ask& ask, std::string const& id, ChangeQueue::Held turn) {
    auto const* const found = find(id);
    if (found == nullptr) {
        return Refused{404, "join_sampling_session: there is no sampler " + id.substr(0, 200)};
    }
    uses_.sessions.touch(found->session);
    auto row = *found;
    ++row.clones;
    std::vector<Change> changes{{Table::sampler, id, encode(row)}};
    uses_.services.commit(
        ask.answer, "join_sampling_session", std::move(changes),
        [this, id, counter = row.clones, turn = std::move(turn), answer = ask.answer] {
            auto const still = samplers_.find(id);
            if (still != samplers_.end()) still->second.clones = counter;
            send_json(*answer, json_object([&](JsonOut& json) {
                json.member("client_counter", counter);
                json.member("type", "join_sampling_session");
            }));
        });
    return {};
}

MaybeRefused Samplers::get_sampler(Ask& ask) {
    auto const& id = ask.names.at(0);
    auto const* const found = find(id);
    if (found == nullptr) {
        return Refused{404, "samplers: there is no sampler " + id.substr(0, 200)};
    }
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.member("sampler_id", id);
        json.member("base_model", found->base_model);
        nullable(json, "model_path", found->model_path);
    }));
    return {};
}

}  // namespace tinkxx::local
