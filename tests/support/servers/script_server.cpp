#include "support/servers/script_server.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace tinkxx::test {
namespace {

// Far longer than any test takes: a script that waits this long waits for ever.
constexpr int forever_ms = 60'000;

}  // namespace

bool Gate::wait_until_open() const noexcept {
    pollfd entry{.fd = event_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, forever_ms) == 1;
}

Wire::Wire(Fd socket, SslHandle tls, int index, Fd const& stop)
    : socket_{std::move(socket)}, tls_{std::move(tls)}, index_{index}, stop_{stop} {}

bool Wire::resumed() const noexcept { return tls_ && SSL_session_reused(tls_.get()) == 1; }

void Wire::await(short events) {
    std::array<pollfd, 2> entries{{{.fd = socket_.get(), .events = events, .revents = 0},
                                   {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    if (::poll(entries.data(), entries.size(), forever_ms) <= 0) throw PeerGone{"timeout"};
    if (entries[1].revents != 0) throw PeerGone{"the server stops"};
}

template <class Step>
Wire::TlsResult Wire::tls_step(Step step) {
    // OpenSSL forbids two threads in one SSL, and a relay reads in one and writes in another. The
    // socket does not block, so neither waits for long.
    std::lock_guard const lock{tls_mutex_};
    ERR_clear_error();
    auto const result = step(tls_.get());
    return {.result = result, .error = SSL_get_error(tls_.get(), result)};
}

void Wire::send(std::string_view bytes) {
    while (!bytes.empty()) {
        if (!socket_) throw PeerGone{"closed"};
        if (tls_) {
            auto const [sent, error] = tls_step([&](SSL* tls) {
                return SSL_write(
                    tls, bytes.data(),
                    static_cast<int>(std::min<std::size_t>(bytes.size(), std::size_t{1} << 20U)));
            });
            if (sent > 0) {
                bytes.remove_prefix(static_cast<std::size_t>(sent));
                continue;
            }
            if (error == SSL_ERROR_WANT_WRITE) {
                await(POLLOUT);
            } else if (error == SSL_ERROR_WANT_READ) {
                await(POLLIN);
            } else {
                throw PeerGone{"write failed"};
            }
        } else {
            auto const sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent >= 0) {
                bytes.remove_prefix(static_cast<std::size_t>(sent));
            } else if (errno == EAGAIN) {
                await(POLLOUT);
            } else if (errno != EINTR) {
                throw PeerGone{"write failed"};
            }
        }
    }
}

void Wire::send_in_pieces(std::string_view bytes, std::size_t size) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
        send(bytes.substr(0, size));
    }
}

bool Wire::fill() {
    std::array<char, 16384> chunk;
    for (;;) {
        if (!socket_) throw PeerGone{"closed"};
        if (tls_) {
            auto const [got, error] = tls_step([&](SSL* tls) {
                return SSL_read(tls, chunk.data(), static_cast<int>(chunk.size()));
            });
            if (got > 0) {
                buffer_.append(chunk.data(), static_cast<std::size_t>(got));
                return true;
            }
            if (error == SSL_ERROR_WANT_READ) {
                await(POLLIN);
            } else if (error == SSL_ERROR_WANT_WRITE) {
                await(POLLOUT);
            } else {
                return false;
            }
        } else {
            auto const got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
            if (got > 0) {
                buffer_.append(chunk.data(), static_cast<std::size_t>(got));
                return true;
            }
            if (got == 0) return false;
            if (errno == EAGAIN) {
                await(POLLIN);
            } else if (errno != EINTR) {
                return false;
            }
        }
    }
}

std::string Wire::receive_some() {
    if (buffer_.empty()) fill();
    return std::exchange(buffer_, {});
}

std::string Wire::receive(std::size_t count) {
    while (buffer_.size() < count) {
        if (!fill()) throw PeerGone{"the peer closed"};
    }
    auto result = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return result;
}

std::string Wire::receive_until(std::string_view mark) {
    for (;;) {
        if (auto const at = buffer_.find(mark); at != std::string::npos) {
            return receive(at + mark.size());
        }
        if (!fill()) throw PeerGone{"the peer closed"};
    }
}

bool Wire::at_end() { return buffer_.empty() && !fill(); }

void Wire::wait(Gate const& gate) {
    std::array<pollfd, 2> entries{{{.fd = gate.event_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    if (::poll(entries.data(), entries.size(), forever_ms) <= 0) throw PeerGone{"timeout"};
    if (entries[1].revents != 0) throw PeerGone{"the server stops"};
}

void Wire::stall() {
    // POLLRDHUP is level-triggered: unread bytes do not hide the peer's end.
    await(POLLRDHUP);
}

void Wire::drain() {
    buffer_.clear();
    while (fill()) buffer_.clear();
}

void Wire::finish() {
    if (tls_) tls_step(&SSL_shutdown);
    ::shutdown(socket_.get(), SHUT_WR);
}

void Wire::close() noexcept {
    if (tls_) SSL_shutdown(tls_.get());
    tls_.reset();
    socket_.reset();
}

void Wire::reset() noexcept {
    if (socket_) reset_on_close(socket_.get());
    tls_.reset();
    socket_.reset();
}

ScriptServer::ScriptServer(Script script) : ScriptServer{std::move(script), {}} {}
ScriptServer::ScriptServer(Script script, ScriptServerOptions options)
    : ScriptServer{std::vector<Script>{std::move(script)}, std::move(options)} {}
ScriptServer::ScriptServer(std::vector<Script> scripts) : ScriptServer{std::move(scripts), {}} {}
ScriptServer::ScriptServer(std::vector<Script> scripts, ScriptServerOptions options)
    : scripts_{std::move(scripts)},
      options_{std::move(options)},
      stop_{make_event()},
      listener_{listen_on_loopback(options_.family, options_.port)},
      port_{port_of(listener_)},
      acceptor_{[this] { accept_all(); }} {}

ScriptServer::~ScriptServer() { stop(); }

void ScriptServer::stop() noexcept {
    raise(stop_);
    if (acceptor_.joinable()) acceptor_.join();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
}

std::string ScriptServer::url(std::string_view path) const {
    return (options_.tls ? "https://" : "http://") + loopback_authority(options_.family, port_) +
           std::string{path};
}

void ScriptServer::accept_all() {
    block_sigpipe_in_this_thread();
    for (;;) {
        std::array<pollfd, 2> entries{{{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                                       {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
        if (::poll(entries.data(), entries.size(), -1) < 0) continue;
        if (entries[1].revents != 0) {
            listener_.reset();
            return;
        }
        Fd socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
        if (!socket) continue;
        int const on = 1;
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        auto const index = accepted_++;
        std::lock_guard const lock{mutex_};
        threads_.emplace_back(
            [this, index, moved = std::move(socket)]() mutable { serve(std::move(moved), index); });
    }
}

void ScriptServer::serve(Fd socket, int index) {
    block_sigpipe_in_this_thread();
    auto const at = std::min(static_cast<std::size_t>(index), scripts_.size() - 1);
    try {
        auto const fd = socket.get();
        Wire wire{std::move(socket), SslHandle{nullptr, &SSL_free}, index, stop_};
        if (options_.tls) {
            SslHandle tls{SSL_new(options_.tls.get()), &SSL_free};
            SSL_set_fd(tls.get(), fd);
            for (;;) {
                ERR_clear_error();
                auto const result = SSL_accept(tls.get());
                if (result == 1) break;
                auto const error = SSL_get_error(tls.get(), result);
                if (error == SSL_ERROR_WANT_READ) {
                    wire.await(POLLIN);
                } else if (error == SSL_ERROR_WANT_WRITE) {
                    wire.await(POLLOUT);
                } else {
                    return;
                }
            }
            wire.tls_ = std::move(tls);
        }
        scripts_[at](wire);
    } catch (PeerGone const&) {
        // The test looks at what the client made of it.
    } catch (std::exception const& error) {
        ADD_FAILURE() << "script of connection " << index << ": " << error.what();
    }
}

}  // namespace tinkxx::test
