#pragma once

#include "support/sockets/sockets.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tinkxx::test {

/// Thrown inside a script whose peer went away or whose server stops; ends the script quietly.
struct PeerGone : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Holds scripts back until the test says go. Once open it stays open.
class Gate {
public:
    Gate() : event_{make_event()} {}
    void open() noexcept { raise(event_); }
    /// Blocks the test until a script has opened the gate; false after a long time.
    [[nodiscard]] bool wait_until_open() const noexcept;

private:
    friend class Wire;
    Fd event_;
};

/// One accepted connection as a script sees it: bytes, blocking. Members throw `PeerGone`. One
/// thread may receive while another sends.
class Wire {
public:
    Wire(Fd socket, SslHandle tls, int index, Fd const& stop);

    /// 0 for the first connection that the server accepted.
    [[nodiscard]] int index() const noexcept { return index_; }
    /// Whether TLS resumed an earlier session.
    [[nodiscard]] bool resumed() const noexcept;
    [[nodiscard]] SSL* tls() const noexcept { return tls_.get(); }

    /// Sends all of it.
    void send(std::string_view bytes);
    /// Sends it in pieces of at most `size`, each by a write of its own.
    void send_in_pieces(std::string_view bytes, std::size_t size);
    /// At least one byte; empty at the orderly end of the stream.
    [[nodiscard]] std::string receive_some();
    /// Exactly that many.
    [[nodiscard]] std::string receive(std::size_t count);
    /// Everything up to and including `mark`; what follows stays for the next call.
    [[nodiscard]] std::string receive_until(std::string_view mark);
    /// True if the peer has ended the stream and nothing is left to read.
    [[nodiscard]] bool at_end();

    /// Does nothing until the gate opens.
    void wait(Gate const& gate);
    /// Does nothing, and reads nothing, until the peer closes or the server stops.
    void stall();
    /// Reads and drops until the peer closes.
    void drain();
    /// Ends the sending side; TLS with a close_notify first.
    void finish();
    void close() noexcept;
    /// Closes with an RST.
    void reset() noexcept;

private:
    friend class ScriptServer;
    /// Waits until the socket is ready; throws if the server stops first.
    void await(short events);
    bool fill();
    struct TlsResult {
        int result{0};
        int error{0};
    };
    /// One call into OpenSSL, and what it says of a result that is not positive.
    template <class Step>
    TlsResult tls_step(Step step);

    Fd socket_;
    std::mutex tls_mutex_;
    SslHandle tls_;
    int index_;
    Fd const& stop_;
    std::string buffer_;  ///< received and not yet asked for
};

struct ScriptServerOptions {
    Family family{Family::ipv4};
    /// Set: connections do a TLS handshake before the script starts.
    std::shared_ptr<SSL_CTX> tls{};
    /// 0 takes a free one.
    std::uint16_t port{0};
};

/// Accepts connections and runs a script on each, in a thread of its own. For servers that
/// misbehave on the level of bytes.
class ScriptServer {
public:
    using Script = std::function<void(Wire&)>;

    /// Every connection runs `script`.
    explicit ScriptServer(Script script);
    ScriptServer(Script script, ScriptServerOptions options);
    /// The n-th connection runs the n-th script, and further ones the last.
    explicit ScriptServer(std::vector<Script> scripts);
    ScriptServer(std::vector<Script> scripts, ScriptServerOptions options);
    /// Ends all scripts and joins their threads.
    ~ScriptServer();
    ScriptServer(ScriptServer const&) = delete;
    ScriptServer& operator=(ScriptServer const&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// "http://127.0.0.1:1234" + path.
    [[nodiscard]] std::string url(std::string_view path = "/") const;
    /// Accepted so far.
    [[nodiscard]] int connections() const noexcept { return accepted_.load(); }
    void stop() noexcept;

private:
    void accept_all();
    void serve(Fd socket, int index);

    std::vector<Script> scripts_;
    ScriptServerOptions options_;
    Fd stop_;
    Fd listener_;
    std::uint16_t port_;
    std::atomic<int> accepted_{0};
    std::mutex mutex_;
    std::vector<std::thread> threads_;  ///< guarded by `mutex_`: the acceptor adds
    std::thread acceptor_;
};

}  // namespace tinkxx::test
