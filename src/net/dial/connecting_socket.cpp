#include "net/dial/connecting_socket.hpp"

#include "base/loop/event_loop.hpp"
#include "base/loop/loop_rule.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tinkxx::net {

ConnectingSocket::ConnectingSocket(base::EventLoop& loop, SocketAddress const& to, Owner& owner,
                                   std::size_t index)
    : loop_{loop}, owner_{owner}, index_{index} {
    TINKXX_ASSERT_LOOP(loop_);
    socket_ = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (socket_ < 0) {
        failed_ = errno;
    } else if (::connect(socket_, &to.get(), to.size()) != 0 && errno != EINPROGRESS) {
        failed_ = errno;
    } else {
        failed_ = loop_.sockets().add(socket_, *this);
    }
    if (failed_ != 0) loop_.sockets().again(*this);
}

ConnectingSocket::~ConnectingSocket() {
    auto const socket = release();
    if (socket >= 0) ::close(socket);
}

int ConnectingSocket::release() noexcept {
    loop_.sockets().remove(socket_, *this);
    return std::exchange(socket_, -1);
}

void ConnectingSocket::on_events(std::uint32_t events) {
    int code = failed_;
    if (code == 0) {
        if (events == 0) return;
        socklen_t size = sizeof code;
        if (::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
    }
    owner_.on_attempt(index_, code);
}

}  // namespace tinkxx::net
