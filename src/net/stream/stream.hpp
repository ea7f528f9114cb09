#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct iovec;

namespace tinkxx::net {

/// Outcome of one non-blocking read or write.
struct IoResult {
    enum class Status { ok, would_block, closed, error };
    Status status{Status::ok};
    std::size_t bytes{0};
};

/// Told when a stream can go on. Called from the event loop, never from inside a `Stream` call.
class StreamOwner {
public:
    virtual void on_readable() = 0;
    virtual void on_writable() = 0;

protected:
    ~StreamOwner() = default;
};

/// A connected socket, with or without TLS. Reads and writes directly, without blocking and
/// without raising SIGPIPE. Destroying it closes the socket (TLS: with a close_notify if that
/// goes out at once) and silences all callbacks. Loop thread only.
class Stream {
public:
    virtual ~Stream() = default;

    /// Who is told; set before the first `want_…`.
    virtual void set_owner(StreamOwner* owner) noexcept = 0;
    /// Calls `on_readable` once, when a read may succeed. Harmless if already wanted.
    virtual void want_read() = 0;
    virtual void want_write() = 0;

    /// `ok` with bytes > 0, `would_block`, `closed` (orderly end) or `error`. Fewer bytes than
    /// there is room for: nothing more was there, so `want_read` saves a second call. TLS that
    /// ends without a close_notify is an `error`.
    virtual IoResult read(std::span<char> into) = 0;
    /// Writes the pieces in order as far as the kernel takes them; with TLS small pieces are
    /// joined into whole records. Fewer bytes than given, or `would_block`: the next write must
    /// begin with the bytes that are left and hold at least as many, because TLS may have
    /// encrypted some of them already. The stream can only be destroyed otherwise.
    virtual IoResult write(std::span<iovec const> pieces) = 0;

    /// After `error`: what it was, e.g. "connection reset by peer".
    [[nodiscard]] virtual std::string error_text() const = 0;
    /// What ALPN chose: "h2", "http/1.1" or empty.
    [[nodiscard]] virtual std::string_view alpn() const noexcept = 0;
    /// True if TLS resumed an earlier session.
    [[nodiscard]] virtual bool resumed() const noexcept = 0;
    /// For messages: "127.0.0.1:8080".
    [[nodiscard]] virtual std::string_view peer() const noexcept = 0;
};

}  // namespace tinkxx::net
