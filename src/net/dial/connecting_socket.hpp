#pragma once

#include "base/loop/socket_events.hpp"
#include "net/address/ip_address.hpp"

#include <cstddef>
#include <cstdint>

namespace tinkxx::base {
class EventLoop;
}

namespace tinkxx::net {

/// A TCP socket on its way to an address. Destroying it gives the attempt up. Loop thread only.
class ConnectingSocket final : private base::SocketWatch {
public:
    class Owner {
    public:
        /// `code` is 0 or the system's code for why it failed. Once, from the loop; may destroy the
        /// socket.
        virtual void on_attempt(std::size_t index, int code) = 0;

    protected:
        ~Owner() = default;
    };

    /// Begins. The loop and the owner outlive it; `index` is what the owner calls it.
    ConnectingSocket(base::EventLoop& loop, SocketAddress const& to, Owner& owner,
                     std::size_t index);
    ConnectingSocket(ConnectingSocket const&) = delete;
    ConnectingSocket& operator=(ConnectingSocket const&) = delete;
    ~ConnectingSocket() override;

    /// Hands the socket over, once it is connected. It is non-blocking.
    [[nodiscard]] int release() noexcept;

private:
    void on_events(std::uint32_t events) override;

    base::EventLoop& loop_;
    Owner& owner_;
    std::size_t const index_;
    int socket_{-1};
    int failed_{0};  ///< at once
};

}  // namespace tinkxx::net
