#pragma once

#include "support/servers/http1_script.hpp"
#include "support/sockets/sockets.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tinkxx::test {

/// What a handler makes of a request.
struct Reaction {
    ScriptedAnswer answer{};
    /// The answer is sent only after `release()`.
    bool hold{false};
    /// The answer is sent that much later. For benchmarks.
    std::chrono::microseconds delay{0};
    /// HTTP/1.1: says `Connection: close` and closes after the answer.
    bool close{false};
};

struct HttpServerOptions {
    Family family{Family::ipv4};
    std::shared_ptr<SSL_CTX> tls{};
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    std::uint32_t max_streams{100};
    /// HTTP/2 flow control: what a stream may send before it must wait.
    std::uint32_t window{1U << 20U};
    std::uint16_t port{0};
};

/// What the server saw. Numbers since it was made, over restarts.
struct HttpServerCounts {
    int connections{0};
    int open_connections{0};
    int resumed{0};               ///< TLS sessions that were resumed
    int requests{0};              ///< that were complete
    int repeated_ids{0};          ///< requests whose `x-request-id` had come before
    int most_streams{0};          ///< at once on one connection
    int resets{0};                ///< RST_STREAM frames that came
    int pings{0};                 ///< PING frames that came
    std::uint64_t bytes_sent{0};  ///< handed to the kernel
};

/// A well-behaved server for HTTP/1.1 and HTTP/2 (by preface in the clear, by ALPN with TLS)
/// on one thread, which can hold thousands of connections and streams.
class HttpServer {
public:
    /// Called on the server's thread once a request is complete.
    using Handler = std::function<Reaction(ReceivedRequest const&)>;

    explicit HttpServer(Handler handler);
    HttpServer(Handler handler, HttpServerOptions options);
    ~HttpServer();
    HttpServer(HttpServer const&) = delete;
    HttpServer& operator=(HttpServer const&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept;
    [[nodiscard]] std::string url(std::string_view path = "/") const;
    [[nodiscard]] HttpServerCounts counts() const;
    /// Blocks until `done` holds of the counts; false after a long time.
    [[nodiscard]] bool wait_for(std::function<bool(HttpServerCounts const&)> const& done) const;

    /// Sends what was held back, and holds nothing back any more.
    void release();
    /// HTTP/2: tells all clients to finish (GOAWAY); HTTP/1.1: closes idle connections.
    void say_goodbye();
    /// Closes idle connections without a word.
    void close_idle();
    /// Resets all connections and stops listening, as when the process is killed.
    void kill();
    /// Listens again, on the same port.
    void restart();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Answers 200 with the request's body and its `x-request-id`.
[[nodiscard]] Reaction echo(ReceivedRequest const& request);

}  // namespace tinkxx::test
