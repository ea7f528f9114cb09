#include "local/core/bodies.hpp"
#include "local/api/json.hpp"
#include "local/api/listing.hpp"
#include "local/api/times.hpp"

#include <algorithm>
#include <sstream>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

/// Lists have the newest first.
constexpr auto created = [](auto const& session) { return to_micros(session.row.created); };

std::string lower(std::string text) {
    for (auto& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

/// Whether every word occurs in the name, whatever the case.
bool named(std::optional<std::string> const& name, std::string const& words) {
    if (!name) return false;
    auto const text = lower(*name);
    std::istringstream in{lower(words)};
    for (std::string word; in >> word;) {
        if (text.find(word) == std::string::npos) return false;
    }
    return true;
}

std::string_view status_type(SessionStatus status) {
    switch (status) {
        case SessionStatus::active:
            return "active";
        case SessionStatus::finished:
            return "client_finished";
        case SessionStatus::expired:
            break;
    }
    return "cancelled";
}

/// Whether one of these, whose ids begin with that of their session, is the session's.
bool has_part(auto const& parts, std::string const& session) {
    auto const at = parts.lower_bound(session + ":");
    return at != parts.end() && at->first.starts_with(session + ":");
}

}  // namespace

std::size_t Core::kept_bytes_of(SessionRow const& row) noexcept {
    auto const size = [](std::optional<std::string> const& text) {
        return text ? text->size() : 0;
    };
    auto bytes = row_bytes + bytes_of(row.user_metadata) + row.sdk_version.size() +
                 size(row.project_id) + size(row.display_name) + size(row.detail);
    for (auto const& tag : row.tags) bytes += tag.size() + sizeof(tag);
    return bytes;
}

std::size_t Core::kept_bytes_of(RunRow const& row) noexcept {
    return row_bytes + bytes_of(row.user_metadata);
}

std::size_t Core::kept_bytes_of_session(std::string const& id) const {
    auto const found = sessions_.find(id);
    auto bytes = found == sessions_.end() ? std::size_t{0} : kept_bytes_of(found->second.row);
    for (auto at = runs_.lower_bound(id + ":");
         at != runs_.end() && at->first.starts_with(id + ":"); ++at) {
        bytes += kept_bytes_of(at->second);
    }
    for (auto at = samplers_.lower_bound(id + ":");
         at != samplers_.end() && at->first.starts_with(id + ":"); ++at) {
        bytes += row_bytes;
    }
    return bytes;
}

void Core::keep(std::string_view operation, std::size_t bytes) {
    if (kept_bytes_ + row_bytes + bytes > options_.limits.kept_bytes) {
        throw Refused{429,
                      std::string{operation} + ": what is remembered of sessions, models and " +
                          "samplers takes " + std::to_string(kept_bytes_) +
                          " bytes, and the limit is " + std::to_string(options_.limits.kept_bytes) +
                          "; finish sessions that are over, or send less metadata",
                      std::chrono::milliseconds{5000}};
    }
    kept_bytes_ += row_bytes + bytes;
}

Core::Session& Core::session(std::string_view operation, std::string const& id) {
    auto const found = sessions_.find(id);
    if (found == sessions_.end()) {
        throw Refused{404, std::string{operation} + ": there is no session " + id.substr(0, 200) +
                               "; create one first"};
    }
    auto& session = found->second;
    if (session.row.status != SessionStatus::active) {
        throw Refused{410, std::string{operation} + ": session " + id +
                               (session.row.status == SessionStatus::finished
                                    ? " was finished by its client"
                                    : " has expired: it gave no sign of life for " +
                                          std::to_string(options_.session_timeout.count()) + " s") +
                               "; create a new one"};
    }
    session.seen = scheduler_.now();
    return session;
}

void Core::touch_session(std::string const& id) {
    auto const found = sessions_.find(id);
    if (found != sessions_.end()) found->second.seen = scheduler_.now();
}

void Core::end_session(Session& session) {
    std::vector<std::string> mine;
    for (auto const& [id, model] : models_) {
        auto const run = runs_.find(id);
        if (run != runs_.end() && run->second.session == session.row.id) mine.push_back(id);
    }
    for (auto const& id : mine) unload(id);
    // Their ids begin with that of the session.
    auto const first = samplers_.lower_bound(session.row.id + ":");
    for (auto at = first; at != samplers_.end() && at->first.starts_with(session.row.id + ":");
         ++at) {
        if (!at->second.folder.empty()) retire_folder(at->second.folder);
    }
}

void Core::expire_session(Session& session) {
    --active_sessions_;
    session.row.status = SessionStatus::expired;
    log(LogLevel::info, "local server: session " + session.row.id + " has expired");
    store_->write({{Table::session, session.row.id, encode(session.row)}});
    end_session(session);
}

void Core::make_room_for_session() {
    if (active_sessions_ < options_.limits.sessions) return;
    Session* silent = nullptr;
    for (auto& [id, session] : sessions_) {
        if (session.row.status != SessionStatus::active) continue;
        if (silent != nullptr && silent->seen <= session.seen) continue;
        if (!has_part(models_, id) && !has_part(samplers_, id)) silent = &session;
    }
    if (silent == nullptr) {
        throw Refused{429,
                      "create_session: there are " + std::to_string(active_sessions_) +
                          " active sessions, which is the limit; finish some of them",
                      std::chrono::milliseconds{1000}};
    }
    expire_session(*silent);
}

std::chrono::seconds Core::patience_with(std::string const& session) const {
    // Clients give a sign of life every ten seconds.
    constexpr std::chrono::seconds short_of_room{60};
    bool const scarce = kept_bytes_ > options_.limits.kept_bytes / 2;
    if (!scarce || has_part(models_, session) || has_part(samplers_, session)) {
        return options_.session_timeout;
    }
    return std::min(options_.session_timeout, short_of_room);
}

bool Core::may_forget(std::string const& id) const {
    // One of its models may still have something to do.
    if (has_part(models_, id)) return false;
    auto const checkpoint = checkpoints_.lower_bound(TinkerPath{.run = id + ":"});
    return checkpoint == checkpoints_.end() || !checkpoint->first.run.starts_with(id + ":");
}

void Core::forget_sessions(std::vector<std::pair<WallTime, std::string>> ended) {
    auto const wall = scheduler_.wall();
    auto const most = options_.limits.ended_sessions;
    auto const enough = options_.limits.kept_bytes / 2;
    // A few at a time: each has rows of its own to be removed.
    constexpr std::size_t at_once = 1000;
    auto const some = std::min(at_once, ended.size());
    std::ranges::partial_sort(ended, ended.begin() + static_cast<std::ptrdiff_t>(some));
    std::vector<std::string> over;
    for (std::size_t i = 0; i < some; ++i) {
        auto const& [created, id] = ended[i];
        bool const old = wall - created >= options_.session_keep;
        if (!old && ended.size() - i <= most && kept_bytes_ <= enough) break;
        over.push_back(id);
        kept_bytes_ -= std::min(kept_bytes_, kept_bytes_of_session(id));
    }
    std::vector<Change> changes;
    auto const forget = [&](Table table, auto& rows, std::string const& id) {
        for (auto at = rows.lower_bound(id + ":");
             at != rows.end() && at->first.starts_with(id + ":");) {
            changes.push_back({table, at->first, std::nullopt});
            at = rows.erase(at);
        }
    };
    for (auto const& id : over) {
        for (auto at = samplers_.lower_bound(id + ":");
             at != samplers_.end() && at->first.starts_with(id + ":"); ++at) {
            auto const& folder = at->second.folder;
            if (folder.empty()) continue;
            changes.push_back({Table::meta, removal_key(folder), std::string{}});
            retire_folder(folder);
        }
        forget(Table::sampler, samplers_, id);
        forget(Table::run, runs_, id);
        changes.push_back({Table::session, id, std::nullopt});
        sessions_.erase(id);
        std::erase_if(dirty_runs_, [&](auto const& run) { return run.starts_with(id + ":"); });
    }
    store_->write(std::move(changes));
}

void Core::check_metadata(std::string_view operation, std::size_t bytes) const {
    if (bytes <= options_.limits.metadata_bytes) return;
    throw Refused{400, std::string{operation} + ": names, tags and metadata have " +
                           std::to_string(bytes) + " bytes, and the limit is " +
                           std::to_string(options_.limits.metadata_bytes) + "; send less"};
}

void Core::count_part(std::string_view operation, std::string const& session, std::string_view what,
                      std::size_t have) const {
    if (have < options_.limits.session_parts) return;
    throw Refused{400, std::string{operation} + ": session " + session + " has " +
                           std::to_string(have) + " " + std::string{what} +
                           ", which is the limit; create a new session"};
}

void Core::create_session(Ask& ask) {
    if (!accepting()) throw Refused{503, "create_session: the server is stopping"};
    with_json(
        ask, [](std::string body) { return wire::server::decode_create_session(body); },
        [this](Ask& asked, wire::server::CreateSession request) {
            auto bytes = bytes_of(request.user_metadata) + request.sdk_version.size() +
                         request.project_id.value_or("").size() +
                         request.display_name.value_or("").size();
            for (auto const& tag : request.tags) bytes += tag.size() + 8;
            check_metadata("create_session", bytes);
            make_room_for_session();
            keep("create_session", bytes);
            auto id = fresh_id();
            while (sessions_.contains(id)) id = fresh_id();
            SessionRow row{.id = id,
                           .created = scheduler_.wall(),
                           .tags = std::move(request.tags),
                           .user_metadata = std::move(request.user_metadata),
                           .sdk_version = std::move(request.sdk_version),
                           .project_id = std::move(request.project_id),
                           .display_name = std::move(request.display_name)};
            std::vector<Change> changes{{Table::session, id, encode(row)}};
            commit(asked.answer, "create_session", std::move(changes),
                   [this, row = std::move(row), answer = asked.answer]() mutable {
                       auto const made = row.id;
                       sessions_[made] = {.row = std::move(row), .seen = scheduler_.now()};
                       ++active_sessions_;
                       send_json(*answer, json_object([&](JsonOut& json) {
                           json.member("session_id", made);
                           json.member("type", "create_session");
                       }));
                   });
        });
}

void Core::session_heartbeat(Ask& ask) {
    with_json(
        ask,
        [](std::string body) {
            return wire::server::decode_text("session_heartbeat", body, "session_id");
        },
        [this](Ask& asked, std::string const& id) {
            session("session_heartbeat", id);
            send_json(*asked.answer,
                      json_object([](JsonOut& json) { json.member("type", "session_heartbeat"); }));
        });
}

void Core::finish_session(Ask& ask) {
    with_json(
        ask, [](std::string body) { return wire::server::decode_finish(body); },
        [this](Ask& asked, wire::server::Finish finish) {
            check_metadata("finish", finish.detail.value_or("").size());
            in_turn(asked,
                    [this, finish = std::move(finish)](Ask& mine, std::shared_ptr<Turn> turn) {
                        auto const id = mine.names.at(0);
                        auto const found = sessions_.find(id);
                        if (found == sessions_.end()) {
                            throw Refused{404, "finish: there is no session " + id.substr(0, 200)};
                        }
                        // The first reason wins.
                        if (found->second.row.status != SessionStatus::active) {
                            return send_json(*mine.answer, "{}");
                        }
                        auto row = found->second.row;
                        row.status = SessionStatus::finished;
                        row.reason = finish.reason;
                        row.detail = finish.detail;
                        std::vector<Change> changes{{Table::session, id, encode(row)}};
                        commit(mine.answer, "finish", std::move(changes),
                               [this, row, turn = std::move(turn), answer = mine.answer] {
                                   auto const still = sessions_.find(row.id);
                                   if (still != sessions_.end()) {
                                       // It may have expired meanwhile.
                                       auto const was = still->second.row.status;
                                       if (was == SessionStatus::active) --active_sessions_;
                                       still->second.row = row;
                                       end_session(still->second);
                                   }
                                   send_json(*answer, "{}");
                               });
                    });
        });
}

void Core::list_sessions(Ask& ask) {
    auto const limit = ask.number("limit", 20, 0, 10'000);
    auto const offset = ask.number("offset", 0, 0, 1'000'000'000);
    send_list(lists_, ask.answer,
              Listing<Sessions>{.rows = sessions_,
                                .name = "sessions",
                                .rank = created,
                                .offset = offset,
                                .limit = limit,
                                .write = [](JsonOut& json, Session const& session) {
                                    json.value(session.row.id);
                                }});
}

void Core::get_session(Ask& ask) {
    auto const& id = ask.names.at(0);
    auto const found = sessions_.find(id);
    if (found == sessions_.end()) {
        throw Refused{404, "sessions: there is no session " + id.substr(0, 200)};
    }
    auto const& row = found->second.row;
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.key("training_run_ids");
        json.open_array();
        for (auto at = runs_.lower_bound(id + ":");
             at != runs_.end() && at->first.starts_with(id + ":"); ++at) {
            json.value(at->first);
        }
        json.close_array();
        json.key("sampler_ids");
        json.open_array();
        for (auto at = samplers_.lower_bound(id + ":");
             at != samplers_.end() && at->first.starts_with(id + ":"); ++at) {
            json.value(at->first);
        }
        json.close_array();
        nullable(json, "user_metadata", row.user_metadata);
        nullable(json, "display_name", row.display_name);
    }));
}

void Core::set_project(Ask& ask) {
    with_json(
        ask,
        [](std::string body) { return wire::server::decode_text("project", body, "project_id"); },
        [this](Ask& asked, std::string project) {
            check_metadata("project", project.size());
            in_turn(asked,
                    [this, project = std::move(project)](Ask& mine, std::shared_ptr<Turn> turn) {
                        auto const id = mine.names.at(0);
                        auto const found = sessions_.find(id);
                        if (found == sessions_.end()) {
                            throw Refused{404, "project: there is no session " + id.substr(0, 200)};
                        }
                        if (project.empty()) {
                            throw Refused{400, "project: project_id is empty; name a project"};
                        }
                        auto row = found->second.row;
                        row.project_id = project;
                        std::vector<Change> changes{{Table::session, id, encode(row)}};
                        commit(mine.answer, "project", std::move(changes),
                               [this, row, turn = std::move(turn), answer = mine.answer] {
                                   auto const still = sessions_.find(row.id);
                                   if (still != sessions_.end()) still->second.row = row;
                                   send_nothing(*answer);
                               });
                    });
        });
}

void Core::search_sessions(Ask& ask) {
    with_json(
        ask, [](std::string body) { return wire::server::decode_search_sessions(body); },
        [this](Ask& asked, wire::server::SearchSessions search) {
            send_found(asked, std::move(search));
        });
}

namespace {

bool fits(wire::server::SearchSessions const& search, SessionRow const& row) {
    if (search.project_ids) {
        auto const mine = row.project_id.value_or(std::string{});
        if (std::ranges::find(*search.project_ids, mine) == search.project_ids->end()) return false;
    }
    for (auto const& [name, value] : search.user_metadata) {
        auto const found = row.user_metadata.find(name);
        if (found == row.user_metadata.end() || found->second != value) return false;
    }
    if (search.statuses &&
        std::ranges::find(*search.statuses, status_type(row.status)) == search.statuses->end()) {
        return false;
    }
    if (!search.session_id && !search.display_name) return true;
    return (search.session_id && row.id == *search.session_id) ||
           (search.display_name && named(row.display_name, *search.display_name));
}

}  // namespace

void Core::write_found(JsonOut& json, SessionRow const& row) const {
    std::int64_t count = 0;
    std::int64_t bytes = 0;
    auto const first = checkpoints_.lower_bound(TinkerPath{.run = row.id + ":"});
    for (auto at = first; at != checkpoints_.end() && at->first.run.starts_with(row.id + ":");
         ++at) {
        ++count;
        bytes += at->second.size_bytes;
    }
    json.open_object();
    json.member("session_id", row.id);
    json.member("owner", "local");
    json.member("project_id", row.project_id.value_or(std::string{}));
    json.member("created_at", iso_time(row.created));
    json.member("checkpoints_count", count);
    json.member("checkpoint_storage_bytes", bytes);
    nullable(json, "display_name", row.display_name);
    nullable(json, "user_metadata", row.user_metadata);
    json.key("status");
    json.open_object();
    json.member("type", status_type(row.status));
    if (row.status == SessionStatus::finished) {
        json.key("reason");
        json.open_object();
        json.member("type", row.reason);
        json.close_object();
    }
    if (row.status != SessionStatus::active) nullable(json, "detail", row.detail);
    json.close_object();
    json.close_object();
}

void Core::send_found(Ask& ask, wire::server::SearchSessions search) {
    auto const limit = search.limit;
    auto after = search.after_session;
    send_list(lists_, ask.answer,
              Listing<Sessions>{
                  .rows = sessions_,
                  .name = "sessions",
                  .fits = [search = std::move(search)](
                              Session const& session) { return fits(search, session.row); },
                  .rank = created,
                  .after = std::move(after),
                  .limit = limit,
                  .write = [this](JsonOut& json,
                                  Session const& session) { write_found(json, session.row); },
                  .finish =
                      [this](JsonOut& json, Listing<Sessions>::Page const& page) {
                          json.key("next_cursor");
                          auto const last =
                              page.last ? sessions_.find(*page.last) : sessions_.end();
                          if (last == sessions_.end()) return json.null();
                          json.open_object();
                          json.member("last_created_at", iso_time(last->second.row.created));
                          json.member("last_session_id", last->first);
                          json.close_object();
                      }});
}

}  // namespace tinkxx::local
