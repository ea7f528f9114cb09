#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace tinkxx::test {

/// A file descriptor that is closed with its owner.
class Fd {
public:
    Fd() noexcept = default;
    explicit Fd(int fd) noexcept : fd_{fd} {}
    Fd(Fd&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~Fd() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    void reset() noexcept;

private:
    int fd_{-1};
};

enum class Family { ipv4, ipv6 };

/// "127.0.0.1" or "::1".
[[nodiscard]] std::string loopback(Family family);
/// "127.0.0.1:80" or "[::1]:80".
[[nodiscard]] std::string loopback_authority(Family family, std::uint16_t port);

/// Listens on the loopback address; port 0 takes a free one. Throws `std::system_error`.
[[nodiscard]] Fd listen_on_loopback(Family family, std::uint16_t port, int backlog = 1024);
[[nodiscard]] std::uint16_t port_of(Fd const& socket);
/// A port that was free a moment ago, for programs that cannot choose one themselves.
[[nodiscard]] std::uint16_t free_port();
/// Connects, blocking; an empty `Fd` if nobody listens.
[[nodiscard]] Fd connect_to_loopback(Family family, std::uint16_t port);
/// Begins to connect and does not wait for the outcome.
[[nodiscard]] Fd connect_without_waiting(Family family, std::uint16_t port);
/// Makes the coming close of `socket` an RST in place of a FIN.
void reset_on_close(int socket) noexcept;
/// An eventfd that counts up when it is `raise`d.
[[nodiscard]] Fd make_event();
void raise(Fd const& event) noexcept;

/// Servers write to sockets whose peer is gone. The mask is the thread's own, so that the
/// process keeps the default disposition and a SIGPIPE raised by the client would end the test.
void block_sigpipe_in_this_thread() noexcept;

/// What a TLS server shows and asks for. PEM files.
struct TlsServerOptions {
    std::string certificate_file{};
    std::string key_file{};
    /// Asks for a client certificate signed by this authority, and refuses others.
    std::string client_ca_file{};
    /// In the order of preference; empty: no ALPN.
    std::string alpn{"h2,http/1.1"};
};

using SslHandle = std::unique_ptr<SSL, decltype(&SSL_free)>;

/// Throws `std::runtime_error` with OpenSSL's words.
[[nodiscard]] std::shared_ptr<SSL_CTX> make_tls_server(TlsServerOptions const& options);
[[nodiscard]] std::string openssl_error();

}  // namespace tinkxx::test
