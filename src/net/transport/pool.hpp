#pragma once

#include "base/common/intrusive_list.hpp"
#include "net/dial/dialer.hpp"
#include "net/transport/connection.hpp"
#include "net/transport/exchange.hpp"

#include "base/common/intrusive_list.hpp"
#include "base/loop/event_loop.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::net {

class NetTransport;
struct Site;

/// Connections that share a fate: purposes of one group use the same ones.
enum class Group : std::uint8_t { control, sample, poll, train, auth };
inline constexpr std::size_t group_count = 5;

[[nodiscard]] Group group_of(Purpose purpose) noexcept;

/// Connections with room, filed by how many exchanges they carry, so that the least and the
/// most loaded one are found at once however many there are.
class LoadIndex {
public:
    static constexpr std::uint16_t max_load = 100;

    void insert(Connection& connection) noexcept;
    void erase(Connection& connection) noexcept;
    [[nodiscard]] Connection* least() const noexcept;
    [[nodiscard]] Connection* most() const noexcept;

private:
    using Bucket = base::IntrusiveList<Connection, &Connection::by_load>;
    std::array<Bucket, max_load> buckets_;
    std::array<std::uint64_t, 2> used_{};
};

/// The connections to one origin for one group of purposes, and the requests that wait for
/// them. Opens one connection first; once it knows what the server speaks it grows: HTTP/2 by
/// doubling and only when streams run out, HTTP/1.1 by one per waiting request, up to a limit.
class Pool final : public base::TurnEnd, public Timer {
public:
    Pool(NetTransport& transport, Site& site, Group group);
    ~Pool() override;

    NetTransport& transport() const noexcept { return transport_; }
    Site const& site() const noexcept { return site_; }

    /// Gives `exchange` a connection, now or when there is one.
    void submit(Exchange& exchange);
    /// Takes `exchange` out of the queue.
    void withdraw(Exchange& exchange) noexcept;
    /// `exchange` holds its connection no more.
    void released(Exchange& exchange) noexcept;

    // What a connection tells.
    /// It can take `room` more exchanges (0: none for now, or ever again).
    void set_room(Connection& connection, std::uint16_t room) noexcept;
    /// HTTP/2: the server allows this many streams at once.
    void learned_stream_limit(std::uint32_t limit) noexcept;
    /// The connection is ready for its first exchange.
    void ready(Connection& connection) noexcept;
    void closed(Connection& connection) noexcept;
    /// A connection ended before it could take its first exchange.
    void lost_before_use(FailureKind kind, std::string const& why);
    /// The server wants HTTP/1.1 for this origin.
    void fall_back_to_http1() noexcept;

    /// Or will have one once there is a descriptor for it.
    [[nodiscard]] bool has_connection() const noexcept { return ready_ > 0 || starved_; }
    /// Whether it could not open one for want of a file descriptor.
    [[nodiscard]] bool starved() const noexcept { return starved_; }
    /// Closes one that carries nothing, if nobody waits here; true if there was one.
    bool spare_one();
    /// When it lost the last one.
    [[nodiscard]] TimePoint bare_since() const noexcept { return bare_since_; }
    [[nodiscard]] bool unused() const noexcept;
    [[nodiscard]] std::uint16_t stream_limit() const noexcept;
    void add_stats(NetStats& stats) const noexcept;
    void close_all(FailureKind kind, std::string const& why);

    void on_turn_end() override;
    void on_time() override;

private:
    class Opening;
    friend class Opening;

    void fill();
    bool place(Exchange& exchange);
    [[nodiscard]] Exchange* next_waiting() noexcept;
    static void prefetch_behind(Exchange const& exchange) noexcept;
    [[nodiscard]] std::size_t wanted_connections() const noexcept;
    void open_connections();
    [[nodiscard]] bool more_would_help() noexcept;
    void opened(Opening& opening, std::unique_ptr<Stream> stream);
    void open_failed(Opening& opening, DialFailure const& failure);
    void no_descriptor(Opening& opening, std::string const& message);
    [[nodiscard]] bool others_remain() noexcept;
    void pause_openings(std::chrono::milliseconds pause) noexcept;
    void drop(Opening& opening) noexcept;

    NetTransport& transport_;
    Site& site_;
    Group group_;
    bool exclusive_;  // one exchange per connection, whatever the protocol
    HttpVersion version_;
    enum class Protocol : std::uint8_t { unknown, http1, http2 } protocol_{Protocol::unknown};

    std::vector<std::unique_ptr<Connection>> connections_;  ///< each knows its place
    LoadIndex with_room_;
    std::size_t ready_{0};  // connections that were ready at least once and are not closed
    std::vector<std::unique_ptr<Opening>> openings_;
    std::array<base::IntrusiveList<Exchange, &Exchange::links>, purpose_count> waiting_;
    std::array<std::uint32_t, purpose_count> active_{};
    std::array<std::uint32_t, purpose_count> quota_{};
    std::size_t waiting_count_{0};
    std::size_t active_count_{0};
    std::size_t turn_of_{0};  // which purpose is served next
    std::uint16_t stream_limit_{LoadIndex::max_load};
    bool stream_limit_zero_{false};
    int failures_in_row_{0};
    bool starved_{false};
    TimePoint no_opening_before_{};
    /// Since when it is watched whether the loop has time for more connections, and how long it had
    /// slept until then.
    std::optional<TimePoint> watched_since_{};
    std::chrono::nanoseconds slept_before_{0};
    TimePoint bare_since_{};
    std::uint64_t opened_count_{0};
};

}  // namespace tinkxx::net
