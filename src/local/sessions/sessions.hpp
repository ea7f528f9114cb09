#pragma once

#include "local/api/pieces.hpp"
#include "local/services/services.hpp"
#include "local/sessions/session_contents.hpp"
#include "local/store/rows.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::wire {
class JsonOut;
}

namespace tinkxx::local {

/// The sessions of clients, from their beginning until they are forgotten, and the limits on what
/// is remembered of them. Loop thread.
class Sessions {
public:
    Sessions(Services& services, std::map<std::string, SessionRow> rows);
    Sessions(Sessions const&) = delete;
    Sessions& operator=(Sessions const&) = delete;

    /// Tells of a part that keeps something for sessions, and outlives them.
    void add(SessionContents& contents) { contents_.push_back(&contents); }
    /// Sessions of an earlier life of the server are silent from now on.
    void start();

    // Endpoints.
    [[nodiscard]] MaybeRefused create_session(Ask& ask);
    [[nodiscard]] MaybeRefused session_heartbeat(Ask& ask);
    [[nodiscard]] MaybeRefused finish_session(Ask& ask);
    [[nodiscard]] MaybeRefused list_sessions(Ask& ask);
    [[nodiscard]] MaybeRefused get_session(Ask& ask);
    [[nodiscard]] MaybeRefused set_project(Ask& ask);
    [[nodiscard]] MaybeRefused search_sessions(Ask& ask);
    [[nodiscard]] MaybeRefused trace_export(Ask& ask);

    /// The session, which must be active; counts as a sign of life.
    [[nodiscard]] Outcome<SessionRow const*> active(std::string_view operation,
                                                    std::string const& id);
    /// A sign of life, if there is such a session.
    void touch(std::string const& id);
    /// None if there is no such session.
    [[nodiscard]] SessionRow const* find(std::string const& id) const;
    [[nodiscard]] bool is_active(std::string const& id) const;
    /// An id that no session has.
    [[nodiscard]] std::string new_id();
    /// Takes in a session that has ended and is written.
    void add_ended(SessionRow row);

    /// Whether names and metadata are too long.
    [[nodiscard]] MaybeRefused check_metadata(std::string_view operation, std::size_t bytes) const;
    /// Whether the session may have one more of `what`, of which it has so many.
    [[nodiscard]] MaybeRefused check_count(std::string_view operation, std::string const& session,
                                           std::string_view what, std::size_t have) const;
    /// Counts a new row with so many bytes of metadata; refuses it if there is no room.
    [[nodiscard]] MaybeRefused keep(std::string_view operation, std::size_t bytes);

    [[nodiscard]] std::size_t active_count() const noexcept { return active_; }
    /// What is remembered of sessions, models and samplers.
    [[nodiscard]] std::size_t kept_bytes() const noexcept { return kept_bytes_; }

private:
    struct Session {
        SessionRow row{};
        TimePoint seen{};
    };
    using Map = std::map<std::string, Session>;

public:
    /// What a sweep has seen so far.
    struct Look {
        Walk<Map> walk;
        std::size_t bytes{0};
        /// Those that may be forgotten, and when they were created.
        std::vector<std::pair<WallTime, std::string>> ended{};
    };
    [[nodiscard]] Look begin_look() const { return {.walk = Walk{sessions_}}; }
    /// Looks at a piece, and ends sessions that are silent; returns whether that was all.
    bool go_on(Look& look);
    /// Forgets sessions that ended long ago, or are too many. `bytes`: what is remembered of all of
    /// them, counted anew.
    void finish_look(Look look, std::size_t bytes);

private:
    [[nodiscard]] MaybeRefused make_session(Ask& ask, wire::server::CreateSession request);
    /// Makes room for one more session: expires the one that was silent for longest and has nothing
    /// in use.
    [[nodiscard]] MaybeRefused make_room();
    void end(std::string const& id);
    void expire(Session& session);
    [[nodiscard]] bool in_use(std::string const& id) const;
    /// How long a session may be silent: less if memory for sessions is scarce, and it has nothing.
    [[nodiscard]] std::chrono::seconds patience_with(std::string const& id) const;
    /// Whether a session that has ended is of no use to anybody.
    [[nodiscard]] bool may_forget(std::string const& id) const;
    [[nodiscard]] std::size_t all_bytes_of(Session const& session) const;
    [[nodiscard]] SessionHoldings summary_of(std::string const& id) const;
    [[nodiscard]] MaybeRefused finish(Ask& ask, wire::server::Finish const& request,
                                      ChangeQueue::Held turn);
    [[nodiscard]] MaybeRefused change_project(Ask& ask, std::string const& project,
                                              ChangeQueue::Held turn);
    void send_found(Ask& ask, wire::server::SearchSessions search);
    void write_found(wire::JsonOut& json, SessionRow const& row) const;

    Services& services_;
    std::vector<SessionContents*> contents_{};
    Map sessions_{};
    std::size_t active_{0};
    /// Counted anew by each sweep.
    std::size_t kept_bytes_{0};
};

}  // namespace tinkxx::local
