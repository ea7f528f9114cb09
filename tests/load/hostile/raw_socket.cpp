#include "load/hostile/raw_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>

namespace tinkxx::load {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kept_of_a_body = std::size_t{1} << 20U;

int milliseconds_to(Clock::time_point limit) {
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now()).count();
    return static_cast<int>(std::clamp<long>(left, 0, 60'000));
}

/// The value of a header line in `head`, whose names are in small letters; empty if there is none.
std::string value_of(std::string const& head, std::string const& name) {
    auto const at = head.find("\r\n" + name + ":");
    if (at == std::string::npos) return {};
    auto const begin = at + name.size() + 3;
    auto value = head.substr(begin, head.find("\r\n", begin) - begin);
    value.erase(0, value.find_first_not_of(' '));
    return value;
}

}  // namespace

std::string request_head(std::string_view method, std::string_view path, std::size_t body_size,
                         std::string_view more) {
    std::string head{method};
    (head += ' ') += path;
    head += " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    head += more;
    if (body_size > 0) {
        if (more.find("Content-Type") == std::string_view::npos) {
            head += "Content-Type: application/json\r\n";
        }
        head += "Content-Length: " + std::to_string(body_size) + "\r\n";
    }
    return head += "\r\n";
}

RawSocket::RawSocket(std::uint16_t port)
    : socket_{test::connect_to_loopback(test::Family::ipv4, port)} {
    if (socket_) ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

bool RawSocket::read_some() {
    std::array<char, 65536> buffer;  // NOLINT: filled by recv
    for (;;) {
        auto const got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (got == 0) return false;
        std::string_view bytes{buffer.data(), static_cast<std::size_t>(got)};
        if (head_size_ == 0) {
            in_ += bytes;
            auto const end = in_.find("\r\n\r\n");
            if (end == std::string::npos) continue;
            head_size_ = end + 4;
            auto head = in_.substr(0, head_size_);
            std::ranges::transform(head, head.begin(),
                                   [](unsigned char c) { return std::tolower(c); });
            chunked_ = value_of(head, "transfer-encoding") == "chunked";
            length_ = std::strtoull(value_of(head, "content-length").c_str(), nullptr, 10);
            body_size_ = in_.size() - head_size_;
            tail_ = in_.substr(head_size_);
        } else {
            body_size_ += bytes.size();
            if (in_.size() < head_size_ + kept_of_a_body) in_ += bytes;
            tail_ += bytes;
        }
        constexpr std::size_t end_of_chunks = 5;
        if (tail_.size() > end_of_chunks) tail_.erase(0, tail_.size() - end_of_chunks);
        if (complete()) return true;
    }
}

bool RawSocket::complete() {
    if (head_size_ == 0) return false;
    return chunked_ ? tail_ == "0\r\n\r\n" : body_size_ >= length_;
}

std::string RawSocket::ask(std::string_view head, std::string_view body, TimePoint limit,
                           std::string* answer) {
    in_.clear();
    tail_.clear();
    head_size_ = body_size_ = length_ = 0;
    bool open = static_cast<bool>(socket_);
    while (open && !complete()) {
        auto& rest = head.empty() ? body : head;
        pollfd one{.fd = socket_.get(),
                   .events = static_cast<short>(rest.empty() ? POLLIN : POLLIN | POLLOUT),
                   .revents = 0};
        if (::poll(&one, 1, milliseconds_to(limit)) == 0 && Clock::now() >= limit) return "silent";
        if ((one.revents & (POLLIN | POLLHUP | POLLERR)) != 0) open = read_some();
        if (!open || complete() || (one.revents & POLLOUT) == 0) continue;
        auto const sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            rest.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            // An answer may have come before the peer stopped to read.
            (void)read_some();
            open = false;
        }
    }
    if (!complete()) return "closed";
    if (answer != nullptr) *answer = in_.substr(head_size_);
    return in_.substr(std::string_view{"HTTP/1.1 "}.size(), 3);
}

bool RawSocket::send(std::string_view bytes, TimePoint limit) {
    while (socket_ && !bytes.empty()) {
        pollfd one{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
        if (::poll(&one, 1, milliseconds_to(limit)) == 0 && Clock::now() >= limit) return false;
        auto const sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            return false;
        }
    }
    return static_cast<bool>(socket_);
}

void RawSocket::end_sending() {
    if (socket_) ::shutdown(socket_.get(), SHUT_WR);
}

std::string RawSocket::state() {
    char byte = 0;
    if (!socket_ || ::recv(socket_.get(), &byte, 1, MSG_PEEK) == 0) return "closed";
    return "open";
}

}  // namespace tinkxx::load
