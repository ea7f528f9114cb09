#pragma once

#include "base/common/intrusive_list.hpp"
#include "base/loop/socket_events.hpp"
#include "local/listen/connection.hpp"

#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::base {
class EventLoop;
}

namespace tinkxx::local {

struct ListenerOptions {
    /// A name or an address of this machine; all addresses of a name are listened on.
    std::string host{"127.0.0.1"};
    /// 0: a free one.
    std::uint16_t port{0};
    /// Looks at the head of each request before its body is read, and says why not. Loop thread.
    std::function<std::optional<Refusal>(ServerRequest const&)> admit{};
    ListenerLimits limits{};
    /// Hears of each request. Loop thread.
    std::function<void(RequestRecord const&)> on_request{};
    /// Hears of what an operator should know. Loop thread.
    std::function<void(std::string)> on_trouble{};
};

/// Sockets that are bound and listen, before anybody accepts: what can go wrong with them is known
/// before there is a loop.
class BoundSockets {
public:
    /// Any thread; looks `host` up. Fails with `field` `host` or `port`.
    [[nodiscard]] static Result<BoundSockets> bind(std::string const& host, std::uint16_t port);
    BoundSockets() = default;
    BoundSockets(BoundSockets&& other) noexcept;
    BoundSockets& operator=(BoundSockets&& other) noexcept;
    ~BoundSockets();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// Whether only programs of this machine can connect.
    [[nodiscard]] bool loopback_only() const noexcept { return loopback_only_; }

private:
    friend class Listener;
    std::vector<int> sockets_;
    std::uint16_t port_{0};
    bool loopback_only_{true};
};

/// Accepts HTTP/1.1 connections and hands their requests to a handler: any number of them on the
/// one thread of the loop. Loop thread; not to be destroyed by the handler it calls.
class Listener {
public:
    /// Both outlive it.
    Listener(base::EventLoop& loop, Handler& handler, BoundSockets sockets,
             ListenerOptions options);
    Listener(Listener const&) = delete;
    Listener& operator=(Listener const&) = delete;
    /// Cuts what is under way; answers that are out hear of it.
    ~Listener();

    /// Accepts nobody any more and closes connections as their answers are sent. `done` is posted
    /// once the last one is closed; at `deadline` the rest is cut. May be called again, for the
    /// earliest deadline to count.
    void stop(TimePoint deadline, Task done);

    struct Stats {
        std::size_t connections{0};
        std::uint64_t accepted{0};
        std::uint64_t refused{0};
        /// Because all connections together had too much unsent.
        std::uint64_t cut{0};
        /// Memory of requests that are on their way, and of answers that are not sent.
        std::size_t receiving_bytes{0};
        std::size_t sending_bytes{0};
    };
    [[nodiscard]] Stats stats() const noexcept;

private:
    class Port;
    class Peer;
    class Deadline;

    void accept_from(Port& port);
    void admit(int socket);
    void remove(Peer& peer) noexcept;

    base::EventLoop& loop_;
    ListenerOptions options_;
    ConnectionShare share_;
    std::vector<std::unique_ptr<Port>> ports_;
    std::unique_ptr<Deadline> deadline_;
    struct Peers;
    std::unique_ptr<Peers> peers_;
    std::array<char, ServerConnection::one_read> buffer_{};
    Stats stats_{};
    std::vector<Task> stopped_{};
    TimePoint ends_{};
    /// When it was told last that there are no files left.
    std::optional<TimePoint> told_of_files_{};
    bool stopping_{false};
};

}  // namespace tinkxx::local
