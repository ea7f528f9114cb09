#include "local/checkpoints/copies.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"

#include <utility>
#include <vector>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

/// A copy that is being made.
struct Copies::Copy {
    /// A run of its own in a session of its own, neither of which can be trained.
    SessionRow owner{};
    RunRow run{};
    CheckpointRow row{};
    /// By which a repeated request is recognised; may be empty.
    std::string key{};
    std::shared_ptr<Answer> answer{};
};

namespace {

void send_path(Answer& answer, std::string const& path) {
    send_json(answer, json_object([&](JsonOut& json) { json.member("tinker_path", path); }));
}

}  // namespace

MaybeRefused Copies::copy_weights(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask, [](std::string body) { return ws::decode_copy_weights(body); },
        [this](Ask& asked, ws::CopyWeights const& request) { return make(asked, request); });
}

MaybeRefused Copies::make(Ask& ask, ws::CopyWeights const& request) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    std::string const key{ask.header("X-Idempotency-Key")};
    auto const* const known = key.empty() ? nullptr : uses_.checkpoints.copy_of(key);
    if (known != nullptr) {
        send_path(*ask.answer, *known);
        return {};
    }
    if (!key.empty() && copying_.contains(key)) {
        return Refused{409, "copy_weights: this copy is being made; ask again",
                       std::chrono::milliseconds{500}};
    }
    auto const texts = key.size() + request.destination_project_id.value_or("").size();
    if (auto no = uses_.sessions.check_metadata("copy_weights", texts)) return no;
    auto const source = uses_.checkpoints.find("copy_weights", request.source_path);
    if (!source) return source.refused();
    auto const expires = uses_.checkpoints.expiry("copy_weights", request.ttl_seconds);
    if (!expires) return expires.refused();
    auto const copy = rows_of(**source, request);
    copy->row.expires = *expires;
    copy->key = key;
    copy->answer = ask.answer;
    if (!key.empty()) copying_.insert(key);
    link(copy, (*source)->folder);
    return {};
}

Copies::Job Copies::rows_of(CheckpointRow const& source, ws::CopyWeights const& request) {
    auto const now = uses_.services.scheduler.wall();
    auto const id = uses_.sessions.new_id();
    auto copy = std::make_shared<Copy>();
    copy->owner = {.id = id,
                   .created = now,
                   .project_id = request.destination_project_id,
                   .status = SessionPhase::finished,
                   .reason = "success",
                   .detail = "holds a copy of " + source.path.text()};
    copy->run = {.id = id + ":train:0",
                 .session = id,
                 .base_model = source.base_model,
                 .training = source.training,
                 .created = now,
                 .last_request = now};
    auto& row = copy->row;
    row = source;
    row.path.run = copy->run.id;
    row.ordinal = uses_.folders.next_number();
    row.folder = "checkpoints/" + std::to_string(uses_.folders.next_number()) + "-" + row.path.name;
    row.created = now;
    row.is_public = false;
    return copy;
}

void Copies::link(Job const& copy, std::string const& from) {
    auto const linked = std::make_shared<Result<void>>();
    uses_.services.file_worker->run(
        [linked, source = uses_.folders.place(from),
         target = uses_.folders.saving_place(copy->row.folder)] {
            *linked = link_files(source, target);
        },
        [this, linked, copy] {
            if (!*linked) return give_up(copy, linked->error());
            keep(copy);
        });
}

void Copies::keep(Job const& copy) {
    auto const& [owner, run, row, key, answer] = *copy;
    std::vector<Change> changes{{Table::session, owner.id, encode(owner)},
                                {Table::run, run.id, encode(run)}};
    if (!key.empty()) changes.push_back({Table::meta, "copy " + key, row.path.text()});
    uses_.checkpoints.keep(row, "checkpoint_copied", std::move(changes),
                           [this, copy](Result<void> const& outcome) {
                               if (!outcome) return give_up(copy, outcome.error());
                               auto const path = copy->row.path.text();
                               copying_.erase(copy->key);
                               uses_.sessions.add_ended(copy->owner);
                               uses_.runs.add(copy->run);
                               if (!copy->key.empty()) uses_.checkpoints.add_copy(copy->key, path);
                               send_path(*copy->answer, path);
                           });
}

void Copies::give_up(Job const& copy, Error const& why) {
    copying_.erase(copy->key);
    uses_.folders.remove_saving(copy->row.folder);
    send_refusal(*copy->answer, not_written("copy_weights", why));
}

}  // namespace tinkxx::local
