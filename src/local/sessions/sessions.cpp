#include "local/sessions/sessions.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"
#include "local/api/listing.hpp"
#include "local/common/times.hpp"

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

std::string_view status_type(SessionPhase status) {
    switch (status) {
        case SessionPhase::active:
            return "active";
        case SessionPhase::finished:
            return "client_finished";
        case SessionPhase::expired:
            break;
    }
    return "cancelled";
}

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

/// Of names, tags and metadata.
std::size_t metadata_bytes(SessionRow const& row) noexcept {
    auto const size = [](std::optional<std::string> const& text) {
        return text ? text->size() : 0;
    };
    auto bytes = bytes_of(row.user_metadata) + row.sdk_version.size() + size(row.project_id) +
                 size(row.display_name) + size(row.detail);
    for (auto const& tag : row.tags) bytes += tag.size() + 8;
    return bytes;
}

std::size_t kept_bytes_of(SessionRow const& row) noexcept {
    return row_bytes + metadata_bytes(row);
}

Refused no_session(std::string_view operation, std::string const& id) {
    return {404, std::string{operation} + ": there is no session " + id.substr(0, 200)};
}

void write_texts(JsonOut& json, std::string_view name, std::vector<std::string> const& texts) {
    json.key(name);
    json.open_array();
    for (auto const& text : texts) json.value(text);
    json.close_array();
}

void write_status(JsonOut& json, SessionRow const& row) {
    json.open_object();
    json.member("type", status_type(row.status));
    if (row.status == SessionPhase::finished) {
        json.key("reason");
        json.open_object();
        json.member("type", row.reason);
        json.close_object();
    }
    if (row.status != SessionPhase::active) nullable(json, "detail", row.detail);
    json.close_object();
}

}  // namespace

Sessions::Sessions(Services& services, std::map<std::string, SessionRow> rows)
    : services_{services} {
    for (auto& [id, row] : rows) {
        if (row.status == SessionPhase::active) ++active_;
        sessions_[id].row = std::move(row);
    }
}

void Sessions::start() {
    auto const now = services_.scheduler.now();
    for (auto& [id, session] : sessions_) session.seen = now;
}

// For other parts -------------------------------------------------------------------------------

Outcome<SessionRow const*> Sessions::active(std::string_view operation, std::string const& id) {
    auto const found = sessions_.find(id);
    if (found == sessions_.end()) {
        return Refused{404, std::string{operation} + ": there is no session " + id.substr(0, 200) +
                                "; create one first"};
    }
    auto& session = found->second;
    if (session.row.status != SessionPhase::active) {
        auto const timeout = services_.options.session_timeout.count();
        return Refused{410, std::string{operation} + ": session " + id +
                                (session.row.status == SessionPhase::finished
                                     ? " was finished by its client"
                                     : " has expired: it gave no sign of life for " +
                                           std::to_string(timeout) + " s") +
                                "; create a new one"};
    }
    session.seen = services_.scheduler.now();
    return &session.row;
}

void Sessions::touch(std::string const& id) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const found = sessions_.find(id);
    if (found != sessions_.end()) found->second.seen = services_.scheduler.now();
}

SessionRow const* Sessions::find(std::string const& id) const {
    auto const found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : &found->second.row;
}

bool Sessions::is_active(std::string const& id) const {
    auto const* const row = find(id);
    return row != nullptr && row->status == SessionPhase::active;
}

std::string Sessions::new_id() {
    auto id = services_.fresh_id();
    while (sessions_.contains(id)) id = services_.fresh_id();
    return id;
}

void Sessions::add_ended(SessionRow row) {
    auto const id = row.id;
    sessions_[id].row = std::move(row);
}

MaybeRefused Sessions::check_metadata(std::string_view operation, std::size_t bytes) const {
    auto const most = services_.options.limits.metadata_bytes;
    if (bytes <= most) return {};
    return Refused{400, std::string{operation} + ": names, tags and metadata have " +
                            std::to_string(bytes) + " bytes, and the limit is " +
                            std::to_string(most) + "; send less"};
}

MaybeRefused Sessions::check_count(std::string_view operation, std::string const& session,
                                   std::string_view what, std::size_t have) const {
    if (have < services_.options.limits.session_parts) return {};
    return Refused{400, std::string{operation} + ": session " + session + " has " +
                            std::to_string(have) + " " + std::string{what} +
                            ", which is the limit; create a new session"};
}

MaybeRefused Sessions::keep(std::string_view operation, std::size_t bytes) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const most = services_.options.limits.kept_bytes;
    if (kept_bytes_ + row_bytes + bytes > most) {
        return Refused{429,
                       std::string{operation} + ": what is remembered of sessions, models and " +
                           "samplers takes " + std::to_string(kept_bytes_) +
                           " bytes, and the limit is " + std::to_string(most) +
                           "; finish sessions that are over, or send less metadata",
                       std::chrono::milliseconds{5000}};
    }
    kept_bytes_ += row_bytes + bytes;
    return {};
}

// The end of sessions ---------------------------------------------------------------------------

void Sessions::end(std::string const& id) {
    for (auto* const contents : contents_) contents->end_session(id);
}

void Sessions::expire(Session& session) {
    --active_;
    session.row.status = SessionPhase::expired;
    services_.log(LogLevel::info, "local server: session " + session.row.id + " has expired");
    services_.store->write({{Table::session, session.row.id, encode(session.row)}});
    end(session.row.id);
}

bool Sessions::in_use(std::string const& id) const {
    return std::ranges::any_of(contents_, [&](auto* contents) { return contents->in_use(id); });
}

MaybeRefused Sessions::make_room() {
    if (active_ < services_.options.limits.sessions) return {};
    Session* silent = nullptr;
    for (auto& [id, session] : sessions_) {
        if (session.row.status != SessionPhase::active) continue;
        if (silent != nullptr && silent->seen <= session.seen) continue;
        if (!in_use(id)) silent = &session;
    }
    if (silent == nullptr) {
        return Refused{429,
                       "create_session: there are " + std::to_string(active_) +
                           " active sessions, which is the limit; finish some of them",
                       std::chrono::milliseconds{1000}};
    }
    expire(*silent);
    return {};
}

std::chrono::seconds Sessions::patience_with(std::string const& id) const {
    // Clients give a sign of life every ten seconds.
    constexpr std::chrono::seconds short_of_room{60};
    auto const timeout = services_.options.session_timeout;
    bool const scarce = kept_bytes_ > services_.options.limits.kept_bytes / 2;
    return !scarce || in_use(id) ? timeout : std::min(timeout, short_of_room);
}

bool Sessions::may_forget(std::string const& id) const {
    return std::ranges::none_of(contents_, [&](auto* contents) { return contents->must_stay(id); });
}

std::size_t Sessions::all_bytes_of(Session const& session) const {
    auto bytes = kept_bytes_of(session.row);
    for (auto const* const contents : contents_) bytes += contents->kept_bytes(session.row.id);
    return bytes;
}

bool Sessions::go_on(Look& look) {
    auto const now = services_.scheduler.now();
    return look.walk.go_on(rows_at_once, [&](std::string const& id, Session const& /*row*/) {
        auto& one = sessions_.at(id);
        look.bytes += kept_bytes_of(one.row);
        if (one.row.status == SessionPhase::active) {
            if (now - one.seen >= patience_with(id)) expire(one);
        } else if (may_forget(id)) {
            look.ended.emplace_back(one.row.created, id);
        }
    });
}

void Sessions::finish_look(Look look, std::size_t bytes) {
    kept_bytes_ = bytes;
    auto& ended = look.ended;
    auto const wall = services_.scheduler.wall();
    auto const& limits = services_.options.limits;
    // A few at a time: each has rows of its own to be removed.
    constexpr std::size_t at_once = 1000;
    auto const some = std::min(at_once, ended.size());
    std::ranges::partial_sort(ended, ended.begin() + static_cast<std::ptrdiff_t>(some));
    std::vector<Change> changes;
    for (std::size_t i = 0; i < some; ++i) {
        auto const& [created_at, id] = ended[i];
        bool const old = wall - created_at >= services_.options.session_keep;
        if (!old && ended.size() - i <= limits.ended_sessions &&
            kept_bytes_ <= limits.kept_bytes / 2) {
            break;
        }
        auto const found = sessions_.find(id);
        if (found == sessions_.end()) continue;
        kept_bytes_ -= std::min(kept_bytes_, all_bytes_of(found->second));
        for (auto* const contents : contents_) contents->forget_session(id, changes);
        changes.push_back({Table::session, id, std::nullopt});
        sessions_.erase(found);
    }
    services_.store->write(std::move(changes));
}

// Endpoints -------------------------------------------------------------------------------------

MaybeRefused Sessions::create_session(Ask& ask) {
    if (auto no = services_.check_accepting("create_session")) return no;
    return services_.bodies.read_json(
        ask, [](std::string body) { return wire::server::decode_create_session(body); },
        [this](Ask& asked, wire::server::CreateSession request) {
            return make_session(asked, std::move(request));
        });
}

MaybeRefused Sessions::make_session(Ask& ask, wire::server::CreateSession request) {
    SessionRow row{.id = new_id(),
                   .created = services_.scheduler.wall(),
                   .tags = std::move(request.tags),
                   .user_metadata = std::move(request.user_metadata),
                   .sdk_version = std::move(request.sdk_version),
                   .project_id = std::move(request.project_id),
                   .display_name = std::move(request.display_name)};
    if (auto no = check_metadata("create_session", metadata_bytes(row))) return no;
    if (auto no = make_room()) return no;
    if (auto no = keep("create_session", metadata_bytes(row))) return no;
    std::vector<Change> changes{{Table::session, row.id, encode(row)}};
    services_.commit(ask.answer, "create_session", std::move(changes),
                     [this, row = std::move(row), answer = ask.answer]() mutable {
                         auto const made = row.id;
                         sessions_[made] = {.row = std::move(row),
                                            .seen = services_.scheduler.now()};
                         ++active_;
                         send_json(*answer, json_object([&](JsonOut& json) {
                             json.member("session_id", made);
                             json.member("type", "create_session");
                         }));
                     });
    return {};
}

MaybeRefused Sessions::session_heartbeat(Ask& ask) {
    return services_.bodies.read_json(
        ask,
        [](std::string body) {
            return wire::server::decode_text("session_heartbeat", body, "session_id");
        },
        [this](Ask& asked, std::string const& id) -> MaybeRefused {
            auto const session = active("session_heartbeat", id);
            if (!session) return session.refused();
            send_json(*asked.answer,
                      json_object([](JsonOut& json) { json.member("type", "session_heartbeat"); }));
            return {};
        });
}

MaybeRefused Sessions::finish_session(Ask& ask) {
    return services_.bodies.read_json(
        ask, [](std::string body) { return wire::server::decode_finish(body); },
        [this](Ask& asked, wire::server::Finish request) -> MaybeRefused {
            if (auto no = check_metadata("finish", request.detail.value_or("").size())) return no;
            services_.turns.take(
                asked, [this, request = std::move(request)](Ask& mine, ChangeQueue::Held turn) {
                    return finish(mine, request, std::move(turn));
                });
            return {};
        });
}

MaybeRefused Sessions::finish(Ask& ask, wire::server::Finish const& request,
                              ChangeQueue::Held turn) {
    auto const& id = ask.names.at(0);
    auto const found = sessions_.find(id);
    if (found == sessions_.end()) return no_session("finish", id);
    // The first reason wins.
    if (found->second.row.status != SessionPhase::active) {
        send_json(*ask.answer, "{}");
        return {};
    }
    auto row = found->second.row;
    row.status = SessionPhase::finished;
    row.reason = request.reason;
    row.detail = request.detail;
    std::vector<Change> changes{{Table::session, id, encode(row)}};
    services_.commit(ask.answer, "finish", std::move(changes),
                     [this, row, turn = std::move(turn), answer = ask.answer] {
                         auto const still = sessions_.find(row.id);
                         if (still != sessions_.end()) {
                             // It may have expired meanwhile.
                             auto const was = still->second.row.status;
                             if (was == SessionPhase::active) --active_;
                             still->second.row = row;
                             end(row.id);
                         }
                         send_json(*answer, "{}");
                     });
    return {};
}

MaybeRefused Sessions::list_sessions(Ask& ask) {
    auto const page = ask.page(20);
    if (!page) return page.refused();
    send_list(
        services_.lists, ask.answer,
        PageOrder<Map>{.rows = sessions_,
                       .name = "sessions",
                       .rank = created,
                       .offset = page->offset,
                       .limit = page->limit,
                       .write = [](JsonOut& json, Session const& one) { json.value(one.row.id); }});
    return {};
}

SessionHoldings Sessions::summary_of(std::string const& id) const {
    SessionHoldings summary;
    for (auto const* const contents : contents_) contents->summarize(id, summary);
    return summary;
}

MaybeRefused Sessions::get_session(Ask& ask) {
    auto const& id = ask.names.at(0);
    auto const* const row = find(id);
    if (row == nullptr) return no_session("sessions", id);
    auto const summary = summary_of(id);
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        write_texts(json, "training_run_ids", summary.runs);
        write_texts(json, "sampler_ids", summary.samplers);
        nullable(json, "user_metadata", row->user_metadata);
        nullable(json, "display_name", row->display_name);
    }));
    return {};
}

MaybeRefused Sessions::set_project(Ask& ask) {
    return services_.bodies.read_json(
        ask,
        [](std::string body) { return wire::server::decode_text("project", body, "project_id"); },
        [this](Ask& asked, std::string project) -> MaybeRefused {
            if (auto no = check_metadata("project", project.size())) return no;
            services_.turns.take(
                asked, [this, project = std::move(project)](Ask& mine, ChangeQueue::Held turn) {
                    return change_project(mine, project, std::move(turn));
                });
            return {};
        });
}

MaybeRefused Sessions::change_project(Ask& ask, std::string const& project,
                                      ChangeQueue::Held turn) {
    auto const& id = ask.names.at(0);
    auto const* const found = find(id);
    if (found == nullptr) return no_session("project", id);
    if (project.empty()) return Refused{400, "project: project_id is empty; name a project"};
    auto row = *found;
    row.project_id = project;
    std::vector<Change> changes{{Table::session, id, encode(row)}};
    services_.commit(ask.answer, "project", std::move(changes),
                     [this, row, turn = std::move(turn), answer = ask.answer] {
                         auto const still = sessions_.find(row.id);
                         if (still != sessions_.end()) still->second.row = row;
                         send_nothing(*answer);
                     });
    return {};
}

MaybeRefused Sessions::search_sessions(Ask& ask) {
    return services_.bodies.read_json(
        ask, [](std::string body) { return wire::server::decode_search_sessions(body); },
        [this](Ask& asked, wire::server::SearchSessions search) -> MaybeRefused {
            send_found(asked, std::move(search));
            return {};
        });
}

void Sessions::write_found(JsonOut& json, SessionRow const& row) const {
    auto const summary = summary_of(row.id);
    json.open_object();
    json.member("session_id", row.id);
    json.member("owner", "local");
    json.member("project_id", row.project_id.value_or(std::string{}));
    json.member("created_at", iso_time(row.created));
    json.member("checkpoints_count", summary.checkpoints);
    json.member("checkpoint_storage_bytes", summary.checkpoint_bytes);
    nullable(json, "display_name", row.display_name);
    nullable(json, "user_metadata", row.user_metadata);
    json.key("status");
    write_status(json, row);
    json.close_object();
}

void Sessions::send_found(Ask& ask, wire::server::SearchSessions search) {
    auto const limit = search.limit;
    auto after = search.after_session;
    auto next = [this](JsonOut& json, PageOrder<Map>::Page const& page) {
        json.key("next_cursor");
        auto const* const last = page.last ? find(*page.last) : nullptr;
        if (last == nullptr) return json.null();
        json.open_object();
        json.member("last_created_at", iso_time(last->created));
        json.member("last_session_id", last->id);
        json.close_object();
    };
    send_list(
        services_.lists, ask.answer,
        PageOrder<Map>{.rows = sessions_,
                       .name = "sessions",
                       .fits = [search = std::move(search)](
                                   Session const& session) { return fits(search, session.row); },
                       .rank = created,
                       .after = std::move(after),
                       .limit = limit,
                       .write = [this](JsonOut& json,
                                       Session const& session) { write_found(json, session.row); },
                       .finish = std::move(next)});
}

MaybeRefused Sessions::trace_export(Ask& ask) {
    if (find(ask.names.at(0)) == nullptr) return no_session("trace_export", ask.names.at(0));
    // The answer that the protocol has for it.
    send_json(*ask.answer, json_object([](JsonOut& json) {
        json.member("status", "failed");
        json.member("error",
                    "trace_export is not served by a local server: no traces are recorded");
    }));
    return {};
}

}  // namespace tinkxx::local
