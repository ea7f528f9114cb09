#include "local/listen/listener.hpp"

#include "base/loop/event_loop.hpp"
#include "base/loop/loop_rule.hpp"

#include <tinkxx/error.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <list>
#include <system_error>
#include <utility>

namespace tinkxx::local {
namespace {

// Each costs time that those who are connected wait for.
constexpr int accepted_per_turn = 128;
constexpr int reads_per_turn = 16;
// Connections too many that are told so at one time; others are closed without a word.
constexpr std::size_t refused_at_once = 256;
// Until the system may have a file for another connection.
constexpr std::chrono::milliseconds pause_without_files{100};
constexpr std::chrono::seconds pause_between_warnings{10};

Error bind_error(std::string field, std::string value, std::string message) {
    return Error{{.kind = ErrorKind::validation,
                  .message = "listen: " + std::move(message),
                  .field = std::move(field),
                  .value = std::move(value)}};
}

Error bind_error(int code, std::string const& host, std::uint16_t port) {
    auto const number = std::to_string(port);
    auto const place = host + ":" + number;
    if (code == EADDRINUSE) {
        return bind_error("port", number,
                          "another program listens on " + place +
                              "; end it, or choose another port (0 takes a free one)");
    }
    if (code == EACCES) {
        return bind_error("port", number,
                          "this user may not listen on " + place + "; choose a port above 1023");
    }
    if (code == EADDRNOTAVAIL) {
        return bind_error("host", host,
                          "this machine has no address " + host +
                              "; use 127.0.0.1, or 0.0.0.0 for all that it has");
    }
    return bind_error("host", host,
                      "cannot listen on " + place + ": " + std::system_category().message(code));
}

bool is_loopback(sockaddr const& address) noexcept {
    if (address.sa_family == AF_INET) {
        auto const& v4 = reinterpret_cast<sockaddr_in const&>(address);
        return (ntohl(v4.sin_addr.s_addr) >> 24U) == 127;
    }
    auto const& v6 = reinterpret_cast<sockaddr_in6 const&>(address);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

std::uint16_t port_of(int socket) noexcept {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(address.ss_family == AF_INET6
                     ? reinterpret_cast<sockaddr_in6 const&>(address).sin6_port
                     : reinterpret_cast<sockaddr_in const&>(address).sin_port);
}

void set_port(sockaddr& address, std::uint16_t port) noexcept {
    (address.sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                   : reinterpret_cast<sockaddr_in&>(address).sin_port) =
        htons(port);
}

/// A listening socket, or the system's code as a negative number.
int listen_on(sockaddr const& address, socklen_t length) noexcept {
    int const socket =
        ::socket(address.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (socket < 0) return -errno;
    int const on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // What is accepted inherits these. Improvements only: a socket that refuses them still works.
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (::bind(socket, &address, length) == 0 && ::listen(socket, SOMAXCONN) == 0) return socket;
    int const code = errno;
    ::close(socket);
    return -code;
}

}  // namespace

// --- binding ------------------------------------------------------------------------------------

Result<BoundSockets> BoundSockets::bind(std::string const& host, std::uint16_t port) {
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    if (int const code = host.empty() ? EAI_NONAME
                                      : ::getaddrinfo(host.c_str(), std::to_string(port).c_str(),
                                                      &wanted, &list);
        code != 0) {
        return bind_error("host", host,
                          "no address is known for the host '" + host +
                              "': " + ::gai_strerror(code) + "; use 127.0.0.1 or 0.0.0.0");
    }
    std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> const owner{list, &::freeaddrinfo};
    BoundSockets bound;
    int first_error = 0;
    for (auto* one = list; one != nullptr; one = one->ai_next) {
        if (bound.port_ != 0) set_port(*one->ai_addr, bound.port_);
        int const socket = listen_on(*one->ai_addr, one->ai_addrlen);
        if (socket < 0) {
            if (first_error == 0) first_error = -socket;
            // Without IPv6 a name may still have an address of it.
            if (socket != -EADDRNOTAVAIL && socket != -EAFNOSUPPORT) {
                return bind_error(-socket, host, port);
            }
            continue;
        }
        bound.sockets_.push_back(socket);
        bound.port_ = local::port_of(socket);
        bound.loopback_only_ = bound.loopback_only_ && is_loopback(*one->ai_addr);
    }
    if (bound.sockets_.empty()) return bind_error(first_error, host, port);
    return bound;
}

BoundSockets::BoundSockets(BoundSockets&& other) noexcept
    : sockets_{std::exchange(other.sockets_, {})},
      port_{other.port_},
      loopback_only_{other.loopback_only_} {}

BoundSockets& BoundSockets::operator=(BoundSockets&& other) noexcept {
    std::swap(sockets_, other.sockets_);
    port_ = other.port_;
    loopback_only_ = other.loopback_only_;
    return *this;
}

BoundSockets::~BoundSockets() {
    for (int const socket : sockets_) ::close(socket);
}

// --- one listening socket -----------------------------------------------------------------------

class Listener::Port final : private base::SocketWatch, private Timer {
public:
    Port(Listener& listener, int socket) : listener_{listener}, socket_{socket} {
        if (int const code = listener.loop_.sockets().add(socket, *this); code != 0) {
            Error{{.kind = ErrorKind::connection,
                   .message = "listen: " + std::system_category().message(code)}}
                .raise();
        }
        again();  // somebody may be waiting already
    }
    Port(Port const&) = delete;
    Port& operator=(Port const&) = delete;
    ~Port() override {
        listener_.loop_.sockets().remove(socket_, *this);
        ::close(socket_);
    }

    [[nodiscard]] int socket() const noexcept { return socket_; }
    void again() { listener_.loop_.sockets().again(*this); }
    void later() {
        auto& loop = listener_.loop_;
        loop.arm(*this, loop.now() + pause_without_files, Precision::coarse);
    }

private:
    void on_events(std::uint32_t /*events*/) override { listener_.accept_from(*this); }
    void on_time() override { again(); }

    Listener& listener_;
    int const socket_;
};

// --- one connection -----------------------------------------------------------------------------

class Listener::Peer final : private base::SocketWatch,
                             private base::TurnEnd,
                             private ServerConnection::Carrier {
public:
    using List = std::list<Peer>;

    Peer(Listener& listener, int socket)
        : listener_{listener}, socket_{socket}, connection_{listener.share_, *this} {
        if (listener_.loop_.sockets().add(socket_, *this) != 0) connection_.lost();
        on_change();
    }
    Peer(Peer const&) = delete;
    Peer& operator=(Peer const&) = delete;
    ~Peer() override {
        listener_.loop_.sockets().remove(socket_, *this);
        ::close(socket_);
    }

    [[nodiscard]] ServerConnection& connection() noexcept { return connection_; }

    List::iterator place{};  ///< among the others

private:
    void on_change() override { listener_.loop_.at_turn_end(*this); }
    void on_stall() override {
        // The system tells of room only once there is much of it.
        writable_ = true;
        on_change();
    }

    void on_events(std::uint32_t events) override {
        connection_.next_turn();
        connection_.proceed();  // what waits comes before what is to be read
        if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
            broken_ = true;
        } else {
            if ((events & EPOLLRDHUP) != 0) ended_ = true;
            if ((events & EPOLLIN) != 0) readable_ = true;
            if ((events & EPOLLOUT) != 0) writable_ = true;
            read();
        }
        on_change();
    }

    void read() {
        auto& buffer = listener_.buffer_;
        for (int round = 0; readable_ && connection_.wants_input(); ++round) {
            if (round == reads_per_turn) return listener_.loop_.sockets().again(*this);
            auto const room = std::min(connection_.input_room(), buffer.size());
            auto const got = ::recv(socket_, buffer.data(), room, 0);
            if (got > 0) {
                // With room left there is nothing more, and more would be news; unless the end
                // has been told, which is told once.
                if (static_cast<std::size_t>(got) < room && !ended_) readable_ = false;
                connection_.received({buffer.data(), static_cast<std::size_t>(got)});
            } else if (got == 0) {
                readable_ = false;
                connection_.peer_ended();
            } else if (errno != EINTR) {
                readable_ = false;
                if (errno != EAGAIN && errno != EWOULDBLOCK) broken_ = true;
            }
        }
        // What is left for later hides the end behind it.
        if (ended_ && !connection_.wants_input()) connection_.peer_closes();
    }

    void write() {
        std::array<iovec, 16> pieces{};
        while (writable_ && connection_.unsent() > 0) {
            msghdr message{};
            message.msg_iov = pieces.data();
            message.msg_iovlen = connection_.output(pieces);
            auto const sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
            if (sent >= 0) {
                connection_.wrote(static_cast<std::size_t>(sent));
            } else if (errno != EINTR) {
                writable_ = false;
                if (errno != EAGAIN && errno != EWOULDBLOCK) broken_ = true;
            }
        }
    }

    void on_turn_end() override {
        if (!broken_) {
            connection_.proceed();
            write();
        }
        if (broken_) connection_.lost();
        switch (connection_.next()) {
            case ServerConnection::Next::go_on:
                if (connection_.wants_turn() || (readable_ && connection_.wants_input())) {
                    listener_.loop_.sockets().again(*this);
                }
                return;
            case ServerConnection::Next::linger:
                if (!std::exchange(shut_, true)) ::shutdown(socket_, SHUT_WR);
                if (readable_) listener_.loop_.sockets().again(*this);
                return;
            case ServerConnection::Next::close:
                listener_.remove(*this);  // and this is gone
        }
    }

    Listener& listener_;
    int const socket_;
    ServerConnection connection_;
    bool readable_{false};
    bool writable_{true};
    bool ended_{false};
    bool broken_{false};
    bool shut_{false};
};

struct Listener::Peers {
    Peer::List list{};
};

// --- the listener -------------------------------------------------------------------------------

class Listener::Deadline final : private Timer {
public:
    Deadline(Listener& listener, TimePoint when) : listener_{listener} {
        listener.loop_.arm(*this, when, Precision::coarse);
    }

private:
    void on_time() override {
        // Those that stay were told to end, and did not. With the last of them this is gone too.
        auto& listener = listener_;
        for (auto left = listener.peers_->list.size(); left > 0; --left) {
            auto& peer = listener.peers_->list.front();
            peer.connection().lost();
            listener.remove(peer);
        }
    }
    Listener& listener_;
};

Listener::Listener(base::EventLoop& loop, Handler& handler, BoundSockets sockets,
                   ListenerOptions options)
    : loop_{loop},
      options_{std::move(options)},
      share_{.scheduler = loop,
             .handler = handler,
             .limits = options_.limits,
             .admit = options_.admit,
             .on_request = options_.on_request,
             .on_trouble = options_.on_trouble},
      peers_{std::make_unique<Peers>()} {
    while (!sockets.sockets_.empty()) {
        ports_.reserve(ports_.size() + 1);
        ports_.push_back(std::make_unique<Port>(*this, sockets.sockets_.back()));
        sockets.sockets_.pop_back();
    }
}

Listener::~Listener() {
    ports_.clear();
    stopped_.clear();
    while (!peers_->list.empty()) {
        auto& peer = peers_->list.front();
        peer.connection().lost();
        remove(peer);
    }
}

void Listener::accept_from(Port& port) {
    for (int count = 0; count < accepted_per_turn; ++count) {
        int const socket = ::accept4(port.socket(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket >= 0) {
            admit(socket);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            // It goes on trying, and once is enough for a while.
            auto const now = loop_.now();
            if (options_.on_trouble &&
                (!told_of_files_ || now - *told_of_files_ >= pause_between_warnings)) {
                told_of_files_ = now;
                options_.on_trouble(
                    "cannot accept a connection: " + std::system_category().message(errno) +
                    "; raise the limit of open files (ulimit -n)");
            }
            return port.later();
        }
        // Others concern the one connection only, which was gone before it was accepted.
    }
    port.again();
}

void Listener::admit(int socket) {
    ++stats_.accepted;
    bool const too_many = peers_->list.size() >= options_.limits.max_connections;
    if (too_many) ++stats_.refused;
    if (too_many && peers_->list.size() - options_.limits.max_connections >= refused_at_once) {
        ::close(socket);
        return;
    }
    auto& peer = peers_->list.emplace_back(*this, socket);
    peer.place = std::prev(peers_->list.end());
    if (!too_many) return;
    peer.connection().refuse({.status = 503,
                              .detail = "This server has " +
                                        std::to_string(options_.limits.max_connections) +
                                        " connections, which is as many as it takes."});
}

void Listener::remove(Peer& peer) noexcept {
    peers_->list.erase(peer.place);
    if (stopping_ && peers_->list.empty()) {
        deadline_.reset();
        for (auto& done : std::exchange(stopped_, {})) loop_.post(std::move(done));
    }
}

void Listener::stop(TimePoint deadline, Task done) {
    TINKXX_ASSERT_LOOP(loop_);
    ports_.clear();
    bool const again = std::exchange(stopping_, true);
    if (peers_->list.empty()) return loop_.post(std::move(done));
    stopped_.push_back(std::move(done));
    if (again) {
        // Whoever is in the greatest hurry decides for all.
        if (deadline < ends_) deadline_ = std::make_unique<Deadline>(*this, ends_ = deadline);
        return;
    }
    for (auto& peer : peers_->list) peer.connection().retire();
    deadline_ = std::make_unique<Deadline>(*this, ends_ = deadline);
}

Listener::Stats Listener::stats() const noexcept {
    auto stats = stats_;
    stats.connections = peers_->list.size();
    stats.cut = share_.cut;
    stats.receiving_bytes = share_.receiving;
    stats.sending_bytes = share_.sending;
    return stats;
}

}  // namespace tinkxx::local
