#include "net/stream/socket_stream.hpp"

#include "base/common/ascii.hpp"
#include "base/loop/destruction_flag.hpp"
#include "base/loop/event_loop.hpp"
#include "base/loop/socket_events.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <system_error>
#include <utility>

namespace tinkxx::net {
namespace {

class SocketStream final : public Stream, private base::SocketWatch {
public:
    SocketStream(base::EventLoop& loop, int socket, std::string peer)
        : loop_{loop}, socket_{socket}, peer_{std::move(peer)} {
        // These are improvements only: a socket that refuses them still works.
        int const on = 1;
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        ::setsockopt(socket_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        if (auto const code = loop_.sockets().add(socket_, *this); code != 0) {
            unwatched_ = true;
            broken_ = code;
        }
    }
    SocketStream(SocketStream const&) = delete;
    SocketStream& operator=(SocketStream const&) = delete;
    ~SocketStream() override {
        loop_.sockets().remove(socket_, *this);
        ::close(socket_);
    }

    void set_owner(StreamOwner* owner) noexcept override { owner_ = owner; }

    void want_read() override {
        reading_ = true;
        if (readable_ || ended_ || unwatched_) loop_.sockets().again(*this);
    }

    void want_write() override {
        writing_ = true;
        if (writable_ || ended_ || unwatched_) loop_.sockets().again(*this);
    }

    IoResult read(std::span<char> into) override {
        if (broken_ != 0) return fail(broken_);
        for (;;) {
            auto const got = ::recv(socket_, into.data(), into.size(), 0);
            if (got > 0) {
                // With room left there is nothing more, and more would be news.
                readable_ = static_cast<std::size_t>(got) == into.size();
                return {.bytes = static_cast<std::size_t>(got)};
            }
            if (got == 0) return {.status = IoResult::Status::closed};
            if (errno != EINTR) {
                readable_ = false;
                return fail(errno);
            }
        }
    }

    IoResult write(std::span<iovec const> pieces) override {
        if (broken_ != 0) return fail(broken_);
        msghdr message{};
        // sendmsg does not write through msg_iov; its type predates const.
        message.msg_iov = const_cast<iovec*>(pieces.data());
        message.msg_iovlen = std::min<std::size_t>(pieces.size(), IOV_MAX);
        for (;;) {
            auto const sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
            if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
            if (errno != EINTR) {
                writable_ = false;
                return fail(errno);
            }
        }
    }

    std::string error_text() const override { return system_text(error_); }
    std::string_view alpn() const noexcept override { return {}; }
    bool resumed() const noexcept override { return false; }
    std::string_view peer() const noexcept override { return peer_; }

private:
    void on_events(std::uint32_t events) override {
        // The end of what comes is told once, however much there is to read before it.
        if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) ended_ = true;
        if ((events & EPOLLIN) != 0) readable_ = true;
        if ((events & EPOLLOUT) != 0) writable_ = true;
        base::DestructionFlag::Watch const watch{destroyed_};
        if (reading_ && (readable_ || ended_ || unwatched_)) {
            reading_ = false;
            if (owner_ != nullptr) owner_->on_readable();
            if (watch.destroyed()) return;
        }
        if (writing_ && (writable_ || ended_ || unwatched_)) {
            writing_ = false;
            if (owner_ != nullptr) owner_->on_writable();
            if (watch.destroyed()) return;
        }
    }

    IoResult fail(int code) noexcept {
        if (code == EAGAIN || code == EWOULDBLOCK) return {.status = IoResult::Status::would_block};
        error_ = code;
        return {.status = IoResult::Status::error};
    }

    base::EventLoop& loop_;
    int const socket_;
    StreamOwner* owner_{nullptr};
    std::string peer_;
    base::DestructionFlag destroyed_{};  ///< by those whom `on_events` tells
    int error_{0};
    int broken_{0};  ///< why it can neither read nor write
    bool reading_{false};
    bool writing_{false};
    bool readable_{false};
    bool writable_{false};
    bool ended_{false};
    bool unwatched_{false};
};

}  // namespace

std::unique_ptr<Stream> make_socket_stream(base::EventLoop& loop, int socket, std::string peer) {
    return std::make_unique<SocketStream>(loop, socket, std::move(peer));
}

std::string system_text(int code) {
    auto text = std::system_category().message(code);
    // "Connection refused" reads as the middle of a sentence, "SSL error" would not.
    if (text.size() > 1 && base::ascii_lower(text[1]) == text[1])
        text[0] = base::ascii_lower(text[0]);
    return text;
}

}  // namespace tinkxx::net
