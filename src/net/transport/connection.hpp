#pragma once

#include "base/common/intrusive_list.hpp"

#include "base/loop/event_loop.hpp"

#include <tinkxx/transport.hpp>

#include <string>

namespace tinkxx::net {

class Exchange;
class Pool;

/// How many full buffers a connection takes from its stream before others have their turn.
inline constexpr int max_reads_in_a_row = 2;

/// One established connection of a pool, which owns it. Once closed it may still be on the stack:
/// the transport keeps it until the end of the turn.
class Connection : public Timer, public base::TurnEnd {
public:
    explicit Connection(Pool& pool) noexcept : pool_{pool} {}
    ~Connection() override = default;

    /// Sends `exchange`. Never calls a sink before it returns: what goes wrong at once is told
    /// at the end of the turn.
    virtual void start(Exchange& exchange) = 0;
    /// Forgets `exchange`, which is on this connection.
    virtual void abandon(Exchange& exchange, bool timed_out) noexcept = 0;
    /// What the server can have received of `exchange`.
    [[nodiscard]] virtual Seen seen(Exchange const& exchange) const noexcept = 0;
    /// Goes on receiving for an exchange that was paused.
    virtual void resume(Exchange& exchange) = 0;
    /// Takes no new exchanges after those that are on it.
    virtual void retire_when_done() noexcept = 0;
    /// Ends the connection; what is still on it is lost for that reason.
    virtual void close(FailureKind kind, std::string const& why) = 0;

    [[nodiscard]] Pool& pool() const noexcept { return pool_; }

    std::size_t place{0};                   ///< among all of the pool
    base::ListLinks<Connection> by_load{};  ///< among those of equal load
    std::uint16_t load{0};                  ///< exchanges on it
    std::uint16_t bucket{0};                ///< the load it is filed under
    bool was_ready{false};                  ///< it could take exchanges at some time

private:
    Pool& pool_;
};

}  // namespace tinkxx::net
