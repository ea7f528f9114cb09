#include "local/checkpoints/checkpoints.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"
#include "local/api/listing.hpp"
#include "local/common/times.hpp"
#include "local/store/stored.hpp"
#include "local/weights/weights_cache.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

void write(JsonOut& json, CheckpointRow const& row) {
    json.open_object();
    json.member("checkpoint_id", std::string{to_string(row.path.kind)} + "/" + row.path.name);
    json.member("checkpoint_type", checkpoint_type(row.path.kind));
    json.member("time", iso_time(row.created));
    json.member("tinker_path", row.path.text());
    json.member("size_bytes", row.size_bytes);
    json.member("public", row.is_public);
    nullable(json, "user_metadata", row.user_metadata.value_or(Texts{}));
    json.key("expires_at");
    if (row.expires) {
        json.value(iso_time(*row.expires));
    } else {
        json.null();
    }
    json.close_object();
}

/// Clients before 0.28 cannot read a list with a kind that they do not know.
bool knows_external(Ask const& ask) {
    auto version = ask.header("X-Stainless-Package-Version");
    if (version.empty()) {
        constexpr std::string_view product = "AsyncTinker/Python ";
        auto const agent = ask.header("User-Agent");
        if (!agent.starts_with(product)) return true;
        version = agent.substr(product.size());
    }
    int major = 0;
    int minor = 0;
    auto const* const end = version.data() + version.size();
    auto const first = std::from_chars(version.data(), end, major);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return true;
    if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc{}) return true;
    return major > 0 || minor >= 28;
}

/// What the checkpoints of a project take.
struct Storage {
    std::int64_t count{0};
    std::int64_t bytes{0};
};

void write_storage(JsonOut& json, std::string const& project, Storage const& total) {
    json.open_object();
    json.key("project_id");
    if (project.empty()) {
        json.null();
    } else {
        json.value(project);
    }
    json.member("user_name", "local");
    json.member("checkpoint_count", total.count);
    json.member("size_bytes", total.bytes);
    json.member("size_gigabytes", static_cast<double>(total.bytes) / 1e9);
    json.key("estimated_monthly_cost_usd");
    json.null();
    json.close_object();
}

}  // namespace

// For other parts -------------------------------------------------------------------------------

CheckpointRow const* Checkpoints::find(TinkerPath const& path) const {
    auto const found = checkpoints_.find(path);
    if (found == checkpoints_.end()) return nullptr;
    auto const& row = found->second;
    if (row.expires && *row.expires <= uses_.services.scheduler.wall()) return nullptr;
    return &row;
}

Outcome<CheckpointRow const*> Checkpoints::find(std::string_view operation,
                                                std::string const& path) const {
    auto const parsed = parse_tinker_path(path);
    if (!parsed) {
        return Refused{400, std::string{operation} + ": Invalid checkpoint tinker path " +
                                path.substr(0, 200) +
                                "; it must look like tinker://<run>/weights/<name> or "
                                "tinker://<run>/sampler_weights/<name>"};
    }
    auto const* const row = find(*parsed);
    if (row == nullptr) {
        return Refused{404, std::string{operation} + ": there is no checkpoint " +
                                path.substr(0, 300) +
                                "; it was never saved, has expired or was "
                                "deleted"};
    }
    return row;
}

Outcome<CheckpointRow const*> Checkpoints::named(Ask const& ask) const {
    auto const& run = ask.names.at(0);
    auto const& id = ask.names.at(1);
    auto const slash = id.find('/');
    auto const kind = parse_kind(id.substr(0, slash));
    if (slash == std::string::npos || !kind) {
        return Refused{400, std::string{ask.operation} + ": the checkpoint " + id.substr(0, 200) +
                                " must be named with its kind: weights/, sampler_weights/ or "
                                "external_weights/ and its name"};
    }
    auto const* const row = find(TinkerPath{run, *kind, id.substr(slash + 1)});
    if (row == nullptr) {
        return Refused{404, std::string{ask.operation} + ": there is no checkpoint tinker://" +
                                run.substr(0, 200) + "/" + id.substr(0, 200)};
    }
    return row;
}

Outcome<std::optional<WallTime>> Checkpoints::expiry(std::string_view operation,
                                                     std::optional<std::int64_t> ttl) const {
    if (!ttl) return std::optional<WallTime>{};
    constexpr std::int64_t ten_years = std::int64_t{10} * 366 * 24 * 3600;
    if (*ttl < 1 || *ttl > ten_years) {
        return Refused{400, std::string{operation} + ": ttl_seconds is " + std::to_string(*ttl) +
                                "; it must be from 1 to " + std::to_string(ten_years) +
                                ", or null for ever"};
    }
    return std::optional{uses_.services.scheduler.wall() + std::chrono::seconds{*ttl}};
}

bool Checkpoints::taken(TinkerPath const& path) const {
    return find(path) != nullptr || reserved_.contains(path);
}

std::string const* Checkpoints::copy_of(std::string const& key) const {
    auto const known = copies_.find(key);
    return known == copies_.end() ? nullptr : &known->second;
}

void Checkpoints::write_run(JsonOut& json, RunRow const& run) const {
    CheckpointRow const* last = nullptr;
    CheckpointRow const* last_sampler = nullptr;
    auto const first = checkpoints_.lower_bound(TinkerPath{.run = run.id});
    for (auto at = first; at != checkpoints_.end() && at->first.run == run.id; ++at) {
        auto const& row = at->second;
        if (find(row.path) == nullptr) continue;
        auto*& slot = row.path.kind == Kind::sampler_weights ? last_sampler : last;
        if (row.path.kind == Kind::external_weights) continue;
        if (slot == nullptr || slot->ordinal < row.ordinal) slot = &row;
    }
    json.open_object();
    json.member("training_run_id", run.id);
    json.member("base_model", run.base_model);
    json.member("model_owner", "local");
    json.member("is_lora", run.training.rank > 0);
    json.member("corrupted", false);
    json.member("lora_rank", run.training.rank);
    json.member("last_request_time", iso_time(run.last_request));
    auto const member = [&json](std::string_view name, CheckpointRow const* row) {
        json.key(name);
        if (row != nullptr) {
            write(json, *row);
        } else {
            json.null();
        }
    };
    member("last_checkpoint", last);
    member("last_sampler_checkpoint", last_sampler);
    nullable(json, "user_metadata", run.user_metadata);
    json.close_object();
}

bool Checkpoints::must_stay(std::string const& session) const {
    auto const first = checkpoints_.lower_bound(TinkerPath{.run = session + ":"});
    return first != checkpoints_.end() && first->first.run.starts_with(session + ":");
}

void Checkpoints::summarize(std::string const& session, SessionHoldings& summary) const {
    auto const start = session + ":";
    auto const first = checkpoints_.lower_bound(TinkerPath{.run = start});
    for (auto at = first; at != checkpoints_.end() && at->first.run.starts_with(start); ++at) {
        ++summary.checkpoints;
        summary.checkpoint_bytes += at->second.size_bytes;
    }
}

// New ones --------------------------------------------------------------------------------------

/// A checkpoint that is to be kept.
struct Checkpoints::Keeping {
    CheckpointRow row{};
    std::string event{};
    std::vector<Change> more{};
    Store::Written done{};
    /// The folder of the one that is given up for it.
    std::string given_up{};
    tinkxx::detail::UniqueFunction<void()> noted{};
};

void Checkpoints::keep(CheckpointRow const& row, std::string_view event, std::vector<Change> more,
                       Store::Written done) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto const keeping = std::make_shared<Keeping>(Keeping{
        .row = row, .event = std::string{event}, .more = std::move(more), .done = std::move(done)});
    // The row lies beside the files too, so that a checkpoint can be adopted by another database.
    auto const failed = std::make_shared<Result<void>>();
    uses_.services.file_worker->run(
        [failed, file = uses_.folders.saving_place(row.folder) / checkpoint_note,
         text = encode(row)] { *failed = write_small_file(file, text); },
        [this, failed, keeping] {
            if (!*failed) return keeping->done(std::move(*failed));
            write_row(keeping);
        });
}

void Checkpoints::write_row(std::shared_ptr<Keeping> const& keeping) {
    auto const& row = keeping->row;
    auto changes = std::move(keeping->more);
    changes.push_back({Table::checkpoint, row.path.text(), encode(row)});
    if (auto const older = checkpoints_.find(row.path); older != checkpoints_.end()) {
        keeping->given_up = older->second.folder;
        changes.push_back({Table::meta, removal_key(keeping->given_up), std::string{}});
    }
    keeping->noted = uses_.usage.note_event(changes, keeping->event, row.path.text());
    uses_.services.store->write(std::move(changes), [this, keeping](Result<void> written) {
        if (!written) return keeping->done(std::move(written));
        uses_.folders.finish(keeping->row.folder, [this, keeping](Result<void> finished) {
            if (!finished) return undo_keeping(keeping, std::move(finished));
            finish_keeping(keeping);
        });
    });
}

void Checkpoints::finish_keeping(std::shared_ptr<Keeping> const& keeping) {
    auto const& row = keeping->row;
    keeping->noted();
    if (auto const replaced = checkpoints_.find(row.path); replaced != checkpoints_.end()) {
        auto const folder = replaced->second.folder;
        // Of another save under the same name, which ended meanwhile.
        if (folder != keeping->given_up) {
            uses_.services.store->write({{Table::meta, removal_key(folder), std::string{}}});
        }
        uses_.weights.retire(folder);
    }
    checkpoints_[row.path] = row;
    keeping->done({});
}

void Checkpoints::undo_keeping(std::shared_ptr<Keeping> const& keeping, Result<void> why) {
    // As if it had never been: an older one of that name stays.
    auto const& path = keeping->row.path;
    auto const stays = checkpoints_.find(path);
    Change back{Table::checkpoint, path.text()};
    std::vector<Change> changes;
    if (stays != checkpoints_.end()) {
        back.value = encode(stays->second);
        changes.push_back({Table::meta, removal_key(stays->second.folder)});
    }
    changes.push_back(std::move(back));
    uses_.services.store->write(std::move(changes));
    keeping->done(std::move(why));
}

// The end of checkpoints ------------------------------------------------------------------------

void Checkpoints::forget(std::shared_ptr<Answer> const& answer, TinkerPath const& path,
                         std::string_view event, ChangeQueue::Held turn) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto const folder = checkpoints_.at(path).folder;
    // Should the server end before the folder is gone, the next one knows that it may go.
    std::vector<Change> changes{{Table::checkpoint, path.text(), std::nullopt},
                                {Table::meta, removal_key(folder), std::string{}}};
    for (auto const& [key, copy] : copies_) {
        if (copy == path.text()) changes.push_back({Table::meta, "copy " + key, std::nullopt});
    }
    auto noted = uses_.usage.note_event(changes, event, path.text());
    uses_.services.commit(
        answer, "delete", std::move(changes),
        [this, path, answer, turn = std::move(turn), noted = std::move(noted)]() mutable {
            noted();
            auto const found = checkpoints_.find(path);
            if (found != checkpoints_.end()) {
                uses_.weights.retire(found->second.folder);
                checkpoints_.erase(found);
            }
            std::erase_if(copies_, [&](auto const& copy) { return copy.second == path.text(); });
            if (answer) send_nothing(*answer);
        });
}

bool Checkpoints::go_on(Look& look) const {
    auto const wall = uses_.services.scheduler.wall();
    return look.walk.go_on(rows_at_once, [&](TinkerPath const& path, CheckpointRow const& row) {
        if (row.expires && *row.expires <= wall) look.expired.push_back(path);
    });
}

void Checkpoints::finish_look(Look const& look) {
    for (auto const& path : look.expired) {
        Ask nobody{.operation = "expiry"};
        uses_.services.turns.take(
            nobody, [this, path](Ask&, ChangeQueue::Held turn) -> MaybeRefused {
                // Its time may have been changed meanwhile.
                bool const there = checkpoints_.contains(path);
                if (!there || find(path) != nullptr || reserved_.contains(path)) return {};
                forget({}, path, "checkpoint_expired", std::move(turn));
                return {};
            });
    }
}

// Endpoints -------------------------------------------------------------------------------------

void Checkpoints::send_list_of(Ask& ask, std::string run, Page const& page) {
    auto const fits = [this, external = knows_external(ask),
                       run = std::move(run)](CheckpointRow const& row) {
        return (run.empty() || row.path.run == run) && find(row.path) != nullptr &&
               (external || row.path.kind != Kind::external_weights);
    };
    send_list(
        uses_.services.lists, ask.answer,
        PageOrder<Map>{.rows = checkpoints_,
                       .name = "checkpoints",
                       .fits = fits,
                       .rank = [](CheckpointRow const& row) { return row.ordinal; },
                       .offset = page.offset,
                       .limit = page.limit,
                       .write = [](JsonOut& json, CheckpointRow const& row) { write(json, row); },
                       .finish = cursor_of(page)});
}

MaybeRefused Checkpoints::list_run_checkpoints(Ask& ask) {
    auto const& run = ask.names.at(0);
    if (uses_.runs.find(run) == nullptr) {
        return Refused{404, "checkpoints: there is no run " + run.substr(0, 200)};
    }
    std::int64_t all = 0;
    auto const first = checkpoints_.lower_bound(TinkerPath{.run = run});
    for (auto at = first; at != checkpoints_.end() && at->first.run == run; ++at) ++all;
    send_list_of(ask, run, {.offset = 0, .limit = all});
    return {};
}

MaybeRefused Checkpoints::list_checkpoints(Ask& ask) {
    auto const page = ask.page(100);
    if (!page) return page.refused();
    send_list_of(ask, {}, *page);
    return {};
}

void Checkpoints::change(Ask& ask, std::string_view event,
                         tinkxx::detail::UniqueFunction<MaybeRefused(CheckpointRow&)> change) {
    uses_.services.turns.take(
        ask,
        [this, event = std::string{event}, change = std::move(change)](
            Ask& mine, ChangeQueue::Held turn) mutable -> MaybeRefused {
            auto const found = named(mine);
            if (!found) return found.refused();
            auto row = **found;
            if (auto no = check_unreserved(mine.operation, row.path)) return no;
            if (auto no = change(row)) return no;
            auto text = encode(row);
            if (text ==
                encode(**found)) {  // as asked already: clients repeat a refusal for minutes
                send_nothing(*mine.answer);
                return {};
            }
            std::vector<Change> changes{{Table::checkpoint, row.path.text(), std::move(text)}};
            auto noted = uses_.usage.note_event(changes, event, row.path.text());
            uses_.services.commit(
                mine.answer, mine.operation, std::move(changes),
                [this, row = std::move(row), turn = std::move(turn), noted = std::move(noted),
                 answer = mine.answer]() mutable {
                    noted();
                    auto const still = checkpoints_.find(row.path);
                    // Another one of that name may have been saved meanwhile.
                    if (still != checkpoints_.end() && still->second.folder == row.folder) {
                        still->second = std::move(row);
                    }
                    send_nothing(*answer);
                });
            return {};
        });
}

MaybeRefused Checkpoints::check_unreserved(std::string_view operation,
                                           TinkerPath const& path) const {
    if (!reserved_.contains(path)) return {};
    return Refused{409, std::string{operation} + ": " + path.text() + " is being saved; ask again",
                   std::chrono::milliseconds{500}};
}

MaybeRefused Checkpoints::delete_checkpoint(Ask& ask) {
    uses_.services.turns.take(ask, [this](Ask& mine, ChangeQueue::Held turn) -> MaybeRefused {
        auto const found = named(mine);
        if (!found) return found.refused();
        auto const path = (*found)->path;
        if (auto no = check_unreserved(mine.operation, path)) return no;
        forget(mine.answer, path, "checkpoint_deleted", std::move(turn));
        return {};
    });
    return {};
}

MaybeRefused Checkpoints::publish(Ask& ask) {
    change(ask, "checkpoint_published", [](CheckpointRow& row) {
        row.is_public = true;
        return MaybeRefused{};
    });
    return {};
}

MaybeRefused Checkpoints::unpublish(Ask& ask) {
    change(ask, "checkpoint_unpublished", [](CheckpointRow& row) {
        row.is_public = false;
        return MaybeRefused{};
    });
    return {};
}

MaybeRefused Checkpoints::set_ttl(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask, [](std::string body) { return wire::server::decode_ttl(body); },
        [this](Ask& asked, wire::server::Ttl const& ttl) -> MaybeRefused {
            auto const expires = expiry("ttl", ttl.seconds);
            if (!expires) return expires.refused();
            change(asked, "checkpoint_ttl_set", [when = *expires](CheckpointRow& row) {
                row.expires = when;
                return MaybeRefused{};
            });
            return {};
        });
}

MaybeRefused Checkpoints::weights_info(Ask& ask) {
    return uses_.services.bodies.read_json(
        ask,
        [](std::string body) {
            return wire::server::decode_text("weights_info", body, "tinker_path");
        },
        [this](Ask& asked, std::string const& path) -> MaybeRefused {
            auto const found = find("weights_info", path);
            if (!found) return found.refused();
            auto const& row = **found;
            send_json(*asked.answer, json_object([&](JsonOut& json) {
                json.member("base_model", row.base_model);
                json.member("is_lora", row.training.rank > 0);
                json.member("lora_rank", row.training.rank);
                json.member("train_unembed", row.training.train_unembed);
                json.member("train_mlp", row.training.train_mlp);
                json.member("train_attn", row.training.train_attn);
                json.key("optimizer_config");
                json.open_object();
                json.member("type", "adamw");
                json.close_object();
            }));
            return {};
        });
}

MaybeRefused Checkpoints::storage_usage(Ask& ask) {
    struct Report {
        Walk<Map> walk;
        std::string project{};
        std::map<std::string, Storage> totals{};
    };
    auto const report = std::make_shared<Report>(
        Report{.walk = Walk{checkpoints_}, .project = ask.parameter("project_id", "")});
    auto const add = [this, report](TinkerPath const& path, CheckpointRow const& row) {
        if (find(path) == nullptr) return;
        auto const mine = uses_.runs.project_of(path.run);
        if (!report->project.empty() && mine != report->project) return;
        auto& total = report->totals[mine];
        ++total.count;
        total.bytes += row.size_bytes;
    };
    uses_.services.lists.run([report, add, answer = ask.answer] {
        if (!report->walk.go_on(rows_at_once, add)) return false;
        send_json(*answer, json_object([&](JsonOut& json) {
            json.key("effective_rate_usd_per_gigabyte_month");
            json.null();
            json.key("data");
            json.open_array();
            for (auto const& [name, total] : report->totals) write_storage(json, name, total);
            json.close_array();
        }));
        return true;
    });
    return {};
}

}  // namespace tinkxx::local
