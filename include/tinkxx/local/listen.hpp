#pragma once

#include <tinkxx/local/server.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tinkxx::local {

/// Where a server listens, and its limits there. Every field has a working default.
struct ListenOptions {
    /// A name or address of this machine. The default accepts connections from this machine only;
    /// `0.0.0.0` accepts them from anywhere, and should be used with `ServerOptions::api_key`.
    std::string host{"127.0.0.1"};
    /// 0: a free port, which `Listening::port` returns.
    std::uint16_t port{8080};
    /// The number of connections; further ones are refused.
    std::size_t max_connections{8192};
    /// Bytes of the headers of one request. `Limits::request_bytes` limits its body.
    std::size_t max_header_bytes{std::size_t{64} << 10U};
    /// The time from the first byte of a request to the end of its headers.
    std::chrono::milliseconds header_timeout{std::chrono::seconds{20}};
    /// How long an idle connection is kept.
    std::chrono::milliseconds idle_timeout{std::chrono::minutes{5}};
    /// Logs one line per request to the server's log, at `LogLevel::info`. Lines never contain a
    /// key.
    bool log_requests{false};
};

/// A listening port of a server: HTTP/1.1, with thousands of connections on the one thread of its
/// runtime. A cheap handle: copies share one port, which closes with the last of them. Every member
/// may be called from any thread.
class Listening {
public:
    [[nodiscard]] std::uint16_t port() const noexcept;
    /// The value of `TINKER_BASE_URL` for clients, such as `http://127.0.0.1:8080`.
    [[nodiscard]] std::string const& url() const noexcept;
    /// Whether only programs on this machine can connect.
    [[nodiscard]] bool loopback_only() const noexcept;

    /// Stops accepting connections and waits for at most `limit` until pending answers are sent;
    /// the remaining connections are then closed. Must not be called on a thread of the runtime.
    void stop(std::chrono::milliseconds limit = std::chrono::seconds{2}) const;

private:
    friend Listening listen(Server const& server, ListenOptions const& options);
    struct Shared;
    explicit Listening(std::shared_ptr<Shared> shared) noexcept;
    std::shared_ptr<Shared> shared_;
};

/// Makes `server` reachable over the network. Throws `ValidationError`, naming field and value, for
/// a port that is in use, or a host that is not an address of this machine.
[[nodiscard]] Listening listen(Server const& server, ListenOptions const& options);
[[nodiscard]] Listening listen(Server const& server);

}  // namespace tinkxx::local
