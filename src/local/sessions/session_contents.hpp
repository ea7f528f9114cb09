#pragma once

#include "local/store/database.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// What a row counts for among `Limits::kept_bytes`, beside its texts.
inline constexpr std::size_t row_bytes = 512;

/// What a session has, as clients are told.
struct SessionHoldings {
    std::vector<std::string> runs{};
    std::vector<std::string> samplers{};
    std::int64_t checkpoints{0};
    std::int64_t checkpoint_bytes{0};
};

/// What a part of the server keeps that belongs to sessions. Ids of such things begin with that of
/// their session and a colon. Loop thread.
class SessionContents {
public:
    SessionContents() = default;
    virtual ~SessionContents() = default;
    SessionContents(SessionContents const&) = delete;
    SessionContents& operator=(SessionContents const&) = delete;

    /// Whether the session has something that its client uses, so that it is not given up early.
    [[nodiscard]] virtual bool in_use(std::string const& /*session*/) const { return false; }
    /// Whether it has something for which it must be remembered after its end.
    [[nodiscard]] virtual bool must_stay(std::string const& /*session*/) const { return false; }
    /// What its rows count for among `Limits::kept_bytes`.
    [[nodiscard]] virtual std::size_t kept_bytes(std::string const& /*session*/) const { return 0; }
    virtual void summarize(std::string const& /*session*/, SessionHoldings& /*summary*/) const {}
    /// The session has ended: frees what nobody else uses.
    virtual void end_session(std::string const& /*session*/) {}
    /// Forgets its rows, and adds to `changes` what removes them from the store.
    virtual void forget_session(std::string const& /*session*/, std::vector<Change>& /*changes*/) {}
};

/// Calls `visit(key, row)` for each row of a map that belongs to the session. No row may come or go
/// meanwhile.
template <class Map, class Visit>
void for_session(Map& rows, std::string const& session, Visit const& visit) {
    auto const start = session + ":";
    for (auto at = rows.lower_bound(start); at != rows.end() && at->first.starts_with(start);
         ++at) {
        visit(at->first, at->second);
    }
}

/// Whether a map has a row that belongs to the session.
template <class Map>
[[nodiscard]] bool has_of_session(Map const& rows, std::string const& session) {
    auto const start = session + ":";
    auto const at = rows.lower_bound(start);
    return at != rows.end() && at->first.starts_with(start);
}

/// Forgets the rows of a map that belong to the session.
template <class Map>
void forget_of_session(Map& rows, Table table, std::string const& session,
                       std::vector<Change>& changes) {
    auto const start = session + ":";
    for (auto at = rows.lower_bound(start); at != rows.end() && at->first.starts_with(start);) {
        changes.push_back({table, at->first, std::nullopt});
        at = rows.erase(at);
    }
}

}  // namespace tinkxx::local
