#include "local/core/core.hpp"
#include "local/core/json.hpp"
#include "local/core/times.hpp"

#include <algorithm>
#include <sstream>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

/// Newest first; of several at one time, the one with the larger id.
std::vector<SessionRow const*> newest_first(auto const& sessions) {
    std::vector<SessionRow const*> rows;
    rows.reserve(sessions.size());
    for (auto const& [id, session] : sessions) rows.push_back(&session.row);
    std::ranges::sort(rows, [](auto const* a, auto const* b) {
        return std::tie(a->created, a->id) > std::tie(b->created, b->id);
    });
    return rows;
}

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

}  // namespace

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
    for (auto const& [id, row] : samplers_) {
        if (row.session != session.row.id || row.folder.empty()) continue;
        retire_folder(row.folder);
    }
}

void Core::create_session(Ask& ask) {
    if (!accepting()) throw Refused{503, "create_session: the server is stopping"};
    auto request = good(wire::server::decode_create_session(body_of(ask)), 422);
    auto id = fresh_id();
    while (sessions_.contains(id)) id = fresh_id();
    auto& session = sessions_[id];
    session.row = {.id = id,
                   .created = scheduler_.wall(),
                   .tags = std::move(request.tags),
                   .user_metadata = std::move(request.user_metadata),
                   .sdk_version = std::move(request.sdk_version),
                   .project_id = std::move(request.project_id),
                   .display_name = std::move(request.display_name)};
    session.seen = scheduler_.now();
    store_->write({{Table::session, id, encode(session.row)}},
                  [id, answer = ask.answer](Result<void> const& written) {
                      if (!written) {
                          return send_refusal(*answer, {500, std::string{"create_session: "} +
                                                                 written.error().what()});
                      }
                      send_json(*answer, json_object([&](JsonOut& json) {
                          json.member("session_id", id);
                          json.member("type", "create_session");
                      }));
                  });
}

void Core::session_heartbeat(Ask& ask) {
    auto const id =
        good(wire::server::decode_text("session_heartbeat", body_of(ask), "session_id"), 422);
    session("session_heartbeat", id);
    send_json(*ask.answer,
              json_object([](JsonOut& json) { json.member("type", "session_heartbeat"); }));
}

void Core::finish_session(Ask& ask) {
    auto const finish = good(wire::server::decode_finish(body_of(ask)), 422);
    auto const found = sessions_.find(ask.names.at(0));
    if (found == sessions_.end()) {
        throw Refused{404, "finish: there is no session " + ask.names.at(0).substr(0, 200)};
    }
    auto& session = found->second;
    // The first reason wins.
    if (session.row.status == SessionStatus::active) {
        session.row.status = SessionStatus::finished;
        session.row.reason = finish.reason;
        session.row.detail = finish.detail;
        end_session(session);
    }
    store_->write(
        {{Table::session, session.row.id, encode(session.row)}},
        [answer = ask.answer](Result<void> const& /*written*/) { send_json(*answer, "{}"); });
}

void Core::list_sessions(Ask& ask) {
    auto const limit = ask.number("limit", 20, 0, 10'000);
    auto const offset = ask.number("offset", 0, 0, 1'000'000'000);
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.key("sessions");
        json.open_array();
        std::int64_t at = 0;
        for (auto const* row : newest_first(sessions_)) {
            if (at >= offset && at < offset + limit) json.value(row->id);
            ++at;
        }
        json.close_array();
    }));
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
        for (auto const& [run, one] : runs_) {
            if (one.session == id) json.value(run);
        }
        json.close_array();
        json.key("sampler_ids");
        json.open_array();
        for (auto const& [sampler, one] : samplers_) {
            if (one.session == id) json.value(sampler);
        }
        json.close_array();
        nullable(json, "user_metadata", row.user_metadata);
        nullable(json, "display_name", row.display_name);
    }));
}

void Core::set_project(Ask& ask) {
    auto const project = good(wire::server::decode_text("project", body_of(ask), "project_id"));
    auto const found = sessions_.find(ask.names.at(0));
    if (found == sessions_.end()) {
        throw Refused{404, "project: there is no session " + ask.names.at(0).substr(0, 200)};
    }
    if (project.empty()) throw Refused{400, "project: project_id is empty; name a project"};
    found->second.row.project_id = project;
    store_->write(
        {{Table::session, found->first, encode(found->second.row)}},
        [answer = ask.answer](Result<void> const& /*written*/) { send_nothing(*answer); });
}

void Core::search_sessions(Ask& ask) {
    auto const search = good(wire::server::decode_search_sessions(body_of(ask)), 422);
    auto const fits = [&](SessionRow const& row) {
        if (search.project_ids) {
            auto const mine = row.project_id.value_or(std::string{});
            if (std::ranges::find(*search.project_ids, mine) == search.project_ids->end()) {
                return false;
            }
        }
        for (auto const& [name, value] : search.user_metadata) {
            auto const found = row.user_metadata.find(name);
            if (found == row.user_metadata.end() || found->second != value) return false;
        }
        if (search.statuses && std::ranges::find(*search.statuses, status_type(row.status)) ==
                                   search.statuses->end()) {
            return false;
        }
        if (!search.session_id && !search.display_name) return true;
        return (search.session_id && row.id == *search.session_id) ||
               (search.display_name && named(row.display_name, *search.display_name));
    };
    auto rows = newest_first(sessions_);
    if (search.after_session) {
        auto const last = std::ranges::find_if(
            rows, [&](auto const* row) { return row->id == *search.after_session; });
        rows.erase(rows.begin(), last == rows.end() ? last : last + 1);
    }
    std::erase_if(rows, [&](auto const* row) { return !fits(*row); });
    auto const limit = static_cast<std::size_t>(search.limit);
    bool const more = rows.size() > limit;
    if (more) rows.resize(limit);
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.key("sessions");
        json.open_array();
        for (auto const* row : rows) {
            std::int64_t count = 0;
            std::int64_t bytes = 0;
            for (auto const& [path, one] : checkpoints_) {
                auto const run = runs_.find(path.run);
                if (run == runs_.end() || run->second.session != row->id) continue;
                ++count;
                bytes += one.size_bytes;
            }
            json.open_object();
            json.member("session_id", row->id);
            json.member("owner", "local");
            json.member("project_id", row->project_id.value_or(std::string{}));
            json.member("created_at", iso_time(row->created));
            json.member("checkpoints_count", count);
            json.member("checkpoint_storage_bytes", bytes);
            nullable(json, "display_name", row->display_name);
            nullable(json, "user_metadata", row->user_metadata);
            json.key("status");
            json.open_object();
            json.member("type", status_type(row->status));
            if (row->status == SessionStatus::finished) {
                json.key("reason");
                json.open_object();
                json.member("type", row->reason);
                json.close_object();
            }
            if (row->status != SessionStatus::active) nullable(json, "detail", row->detail);
            json.close_object();
            json.close_object();
        }
        json.close_array();
        json.key("next_cursor");
        if (more) {
            json.open_object();
            json.member("last_created_at", iso_time(rows.back()->created));
            json.member("last_session_id", rows.back()->id);
            json.close_object();
        } else {
            json.null();
        }
    }));
}

}  // namespace tinkxx::local
