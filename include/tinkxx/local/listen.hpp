#pragma once

#include <tinkxx/local/server.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tinkxx::local {

/// Where a server listens, and what it puts up with there. Every field has a working default.
struct ListenOptions {
    /// A name or an address of this machine. The default is for programs of this machine only;
    /// `0.0.0.0` is for all that can reach it, and wants `ServerOptions::api_key`.
    std::string host{"127.0.0.1"};
    /// 0: a free one, which `Listening::port` tells.
    std::uint16_t port{8080};
    /// Further ones are refused.
    std::size_t max_connections{8192};
    /// Of the header lines of one request. `Limits::request_bytes` limits its body.
    std::size_t max_header_bytes{std::size_t{64} << 10U};
    /// From the first byte of a request to the end of its header lines.
    std::chrono::milliseconds header_timeout{std::chrono::seconds{20}};
    /// How long a connection is kept without a request.
    std::chrono::milliseconds idle_timeout{std::chrono::minutes{5}};
    /// One line for each request to the server's log, at `LogLevel::info`. No line holds a key.
    bool log_requests{false};
};

/// A server's port on the network: HTTP/1.1, thousands of connections on the one thread of its
/// runtime. A cheap handle: copies share one port, which closes with the last of them. Every member
/// may be called from any thread.
class Listening {
public:
    [[nodiscard]] std::uint16_t port() const noexcept;
    /// What clients use as `TINKER_BASE_URL`, such as `http://127.0.0.1:8080`.
    [[nodiscard]] std::string const& url() const noexcept;
    /// Whether only programs of this machine can connect.
    [[nodiscard]] bool loopback_only() const noexcept;

    /// Accepts nobody any more and waits until the answers under way are sent, at most for `limit`;
    /// then the rest is cut. Not on a thread of the runtime.
    void stop(std::chrono::milliseconds limit = std::chrono::seconds{2}) const;

private:
    friend Listening listen(Server const& server, ListenOptions const& options);
    struct Shared;
    explicit Listening(std::shared_ptr<Shared> shared) noexcept;
    std::shared_ptr<Shared> shared_;
};

/// Lets programs reach `server` over the network. Throws `ValidationError`, naming field and value,
/// for a port that is taken and a host that this machine is not.
[[nodiscard]] Listening listen(Server const& server, ListenOptions const& options);
[[nodiscard]] Listening listen(Server const& server);

}  // namespace tinkxx::local
