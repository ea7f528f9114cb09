#include "net/socket_stream.hpp"

#include "net/ascii.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

namespace tinkxx::net {
namespace {

using boost::asio::ip::tcp;

class SocketStream;

/// Outlives the stream while Asio holds handlers of it. Counted without atomics: handlers live
/// and die on the loop.
struct Link {
    SocketStream* stream{nullptr};
    int references{0};
};
void intrusive_ptr_add_ref(Link* link) noexcept { ++link->references; }
void intrusive_ptr_release(Link* link) noexcept {
    if (--link->references == 0) delete link;
}

class SocketStream final : public Stream {
public:
    SocketStream(tcp::socket socket, std::string peer)
        : socket_{std::move(socket)}, peer_{std::move(peer)}, link_{new Link{.stream = this}} {
        boost::system::error_code ignored;
        socket_.native_non_blocking(true, ignored);
        // Both are improvements only: a socket that refuses them still works.
        socket_.set_option(tcp::no_delay{true}, ignored);
        socket_.set_option(boost::asio::socket_base::keep_alive{true}, ignored);
    }
    SocketStream(SocketStream const&) = delete;
    SocketStream& operator=(SocketStream const&) = delete;
    ~SocketStream() override { link_->stream = nullptr; }

    void set_owner(StreamOwner* owner) noexcept override { owner_ = owner; }

    void want_read() override {
        if (std::exchange(reading_, true)) return;
        socket_.async_wait(tcp::socket::wait_read,
                           [link = link_](boost::system::error_code const& error) {
                               // Errors are left for the read to find, with their cause.
                               if (error == boost::asio::error::operation_aborted) return;
                               if (auto* const self = link->stream) self->readable();
                           });
    }

    void want_write() override {
        if (std::exchange(writing_, true)) return;
        socket_.async_wait(tcp::socket::wait_write,
                           [link = link_](boost::system::error_code const& error) {
                               if (error == boost::asio::error::operation_aborted) return;
                               if (auto* const self = link->stream) self->writable();
                           });
    }

    IoResult read(std::span<char> into) override {
        for (;;) {
            auto const got = ::recv(socket_.native_handle(), into.data(), into.size(), 0);
            if (got > 0) return {.bytes = static_cast<std::size_t>(got)};
            if (got == 0) return {.status = IoResult::Status::closed};
            if (errno != EINTR) return fail(errno);
        }
    }

    IoResult write(std::span<iovec const> pieces) override {
        msghdr message{};
        // sendmsg does not write through msg_iov; its type predates const.
        message.msg_iov = const_cast<iovec*>(pieces.data());
        message.msg_iovlen = std::min<std::size_t>(pieces.size(), IOV_MAX);
        for (;;) {
            auto const sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
            if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
            if (errno != EINTR) return fail(errno);
        }
    }

    std::string error_text() const override { return system_text(error_); }
    std::string_view alpn() const noexcept override { return {}; }
    bool resumed() const noexcept override { return false; }
    std::string_view peer() const noexcept override { return peer_; }

private:
    void readable() {
        reading_ = false;
        if (owner_ != nullptr) owner_->on_readable();  // may destroy this
    }
    void writable() {
        writing_ = false;
        if (owner_ != nullptr) owner_->on_writable();  // may destroy this
    }

    IoResult fail(int code) noexcept {
        if (code == EAGAIN || code == EWOULDBLOCK) return {.status = IoResult::Status::would_block};
        error_ = code;
        return {.status = IoResult::Status::error};
    }

    tcp::socket socket_;
    StreamOwner* owner_{nullptr};
    std::string peer_;
    boost::intrusive_ptr<Link> link_;
    int error_{0};
    bool reading_{false};
    bool writing_{false};
};

}  // namespace

std::unique_ptr<Stream> make_socket_stream(tcp::socket socket, std::string peer) {
    return std::make_unique<SocketStream>(std::move(socket), std::move(peer));
}

std::string system_text(int code) {
    auto text = std::system_category().message(code);
    // "Connection refused" reads as the middle of a sentence, "SSL error" would not.
    if (text.size() > 1 && ascii_lower(text[1]) == text[1]) text[0] = ascii_lower(text[0]);
    return text;
}

}  // namespace tinkxx::net
