#include "support/sockets/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

namespace tinkxx::test {
namespace {

struct Address {
    sockaddr_storage storage{};
    socklen_t size{};

    sockaddr const* get() const { return reinterpret_cast<sockaddr const*>(&storage); }
};

Address loopback_address(Family family, std::uint16_t port) {
    Address address;
    if (family == Family::ipv4) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        std::memcpy(&address.storage, &v4, sizeof v4);
        address.size = sizeof v4;
    } else {
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        v6.sin6_addr = in6addr_loopback;
        std::memcpy(&address.storage, &v6, sizeof v6);
        address.size = sizeof v6;
    }
    return address;
}

[[noreturn]] void fail(char const* what) {
    throw std::system_error{errno, std::generic_category(), what};
}

/// ALPN preferences in wire form: each name with its length before it.
std::string wire_form(std::string const& names) {
    std::string wire;
    for (std::size_t at = 0; at < names.size();) {
        auto const end = std::min(names.find(',', at), names.size());
        wire += static_cast<char>(end - at);
        wire += names.substr(at, end - at);
        at = end + 1;
    }
    return wire;
}

int choose_alpn(SSL* /*ssl*/, unsigned char const** out, unsigned char* out_size,
                unsigned char const* offered, unsigned offered_size, void* argument) {
    auto const& ours = *static_cast<std::string const*>(argument);
    unsigned char* chosen = nullptr;
    auto const outcome = SSL_select_next_proto(
        &chosen, out_size, reinterpret_cast<unsigned char const*>(ours.data()),
        static_cast<unsigned>(ours.size()), offered, offered_size);
    *out = chosen;
    return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

}  // namespace

void Fd::reset() noexcept {
    if (auto const fd = std::exchange(fd_, -1); fd >= 0) ::close(fd);
}

std::string loopback(Family family) { return family == Family::ipv4 ? "127.0.0.1" : "::1"; }

std::string loopback_authority(Family family, std::uint16_t port) {
    return (family == Family::ipv4 ? "127.0.0.1:" : "[::1]:") + std::to_string(port);
}

Fd listen_on_loopback(Family family, std::uint16_t port, int backlog) {
    Fd fd{::socket(family == Family::ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!fd) fail("socket");
    int const on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    auto const address = loopback_address(family, port);
    if (::bind(fd.get(), address.get(), address.size) != 0) fail("bind");
    if (::listen(fd.get(), backlog) != 0) fail("listen");
    return fd;
}

std::uint16_t port_of(Fd const& socket) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
        fail("getsockname");
    }
    if (storage.ss_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &storage, sizeof v4);
        return ntohs(v4.sin_port);
    }
    sockaddr_in6 v6{};
    std::memcpy(&v6, &storage, sizeof v6);
    return ntohs(v6.sin6_port);
}

std::uint16_t free_port() { return port_of(listen_on_loopback(Family::ipv4, 0)); }

Fd connect_to_loopback(Family family, std::uint16_t port) {
    Fd fd{::socket(family == Family::ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!fd) fail("socket");
    auto const address = loopback_address(family, port);
    if (::connect(fd.get(), address.get(), address.size) != 0) return Fd{};
    int const on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

Fd connect_without_waiting(Family family, std::uint16_t port) {
    Fd fd{::socket(family == Family::ipv4 ? AF_INET : AF_INET6,
                   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!fd) fail("socket");
    auto const address = loopback_address(family, port);
    (void)::connect(fd.get(), address.get(), address.size);
    return fd;
}

void reset_on_close(int socket) noexcept {
    linger const now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

Fd make_event() {
    Fd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!fd) fail("eventfd");
    return fd;
}

void raise(Fd const& event) noexcept {
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = ::write(event.get(), &one, sizeof one);
}

void block_sigpipe_in_this_thread() noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

std::string openssl_error() {
    std::array<char, 256> text{};
    ERR_error_string_n(ERR_get_error(), text.data(), text.size());
    return text.data();
}

std::shared_ptr<SSL_CTX> make_tls_server(TlsServerOptions const& options) {
    // The list of protocols must outlive the context that points at it.
    auto alpn = std::make_shared<std::string>(wire_form(options.alpn));
    auto* const raw = SSL_CTX_new(TLS_server_method());
    if (raw == nullptr) throw std::runtime_error{openssl_error()};
    std::shared_ptr<SSL_CTX> context{raw, [alpn](SSL_CTX* gone) { SSL_CTX_free(gone); }};
    if (SSL_CTX_use_certificate_chain_file(raw, options.certificate_file.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(raw, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
        throw std::runtime_error{"certificate: " + openssl_error()};
    }
    SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    static constexpr unsigned char id[] = "tinkxx";
    SSL_CTX_set_session_id_context(raw, id, sizeof id - 1);
    if (!options.client_ca_file.empty()) {
        if (SSL_CTX_load_verify_locations(raw, options.client_ca_file.c_str(), nullptr) != 1) {
            throw std::runtime_error{"client CA: " + openssl_error()};
        }
        SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    if (!alpn->empty()) SSL_CTX_set_alpn_select_cb(raw, choose_alpn, alpn.get());
    return context;
}

}  // namespace tinkxx::test
