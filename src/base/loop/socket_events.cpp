#include "base/loop/socket_events.hpp"

#include <tinkxx/error.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace tinkxx::base {

using Clock = std::chrono::steady_clock;

SocketEvents::SocketEvents()
    : epoll_{::epoll_create1(EPOLL_CLOEXEC)}, wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    // Told of once for each write, so that nobody has to read it.
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.ptr = nullptr;
    if (epoll_ >= 0 && wake_ >= 0 && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0) return;
    auto const code = errno;
    close();
    Error{{.kind = ErrorKind::connection,
           .message = "Runtime: the system gives no epoll instance: " +
                      std::system_category().message(code) +
                      "; raise the limit of open files (ulimit -n)"}}
        .raise();
}

SocketEvents::~SocketEvents() { close(); }

void SocketEvents::close() noexcept {
    if (wake_ >= 0) ::close(wake_);
    if (epoll_ >= 0) ::close(epoll_);
}

int SocketEvents::add(int socket, SocketWatch& watch) noexcept {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = &watch;
    return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) == 0 ? 0 : errno;
}

void SocketEvents::remove(int socket, SocketWatch& watch) noexcept {
    if (socket >= 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
    if (watch.links_.linked()) again_.erase(watch);
    if (watch.leaving_links_.linked()) leaving_.erase(watch);
    for (auto i = at_; i < count_; ++i) {
        if (events_[i].data.ptr == &watch) events_[i].data.ptr = nullptr;
    }
}

void SocketEvents::again(SocketWatch& watch) noexcept {
    if (!watch.links_.linked()) again_.push_back(watch);
}

bool SocketEvents::wait(std::optional<std::chrono::nanoseconds> limit) noexcept {
    if (pending()) return true;
    int timeout = -1;
    if (limit) {
        constexpr std::chrono::nanoseconds longest = std::chrono::hours{24};
        auto const time = std::clamp(*limit, std::chrono::nanoseconds{0}, longest);
        timeout = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
    }
    fetch(timeout);
    return count_ > 0;
}

void SocketEvents::wake() noexcept {
    std::uint64_t const one = 1;
    // It fails only while earlier writes, which wake as well, fill the counter.
    [[maybe_unused]] auto const written = ::write(wake_, &one, sizeof one);
}

void SocketEvents::fetch(int timeout_ms) noexcept {
    auto const got =
        ::epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), timeout_ms);
    at_ = 0;
    count_ = static_cast<std::size_t>(std::max(got, 0));
}

bool SocketEvents::tell(std::chrono::nanoseconds limit) {
    // Those who ask once more from inside have to wait for the next time.
    auto const most = again_.size();
    bool told = tell_news(limit);
    told = call_again(most, limit) || told;
    return tell_leaving(limit) || told;
}

bool SocketEvents::tell_news(std::chrono::nanoseconds limit) {
    auto const start = Clock::now();
    bool told = false;
    for (;;) {
        if (at_ == count_) {
            fetch(0);
            if (count_ == 0) return told;
        }
        bool const all = count_ < events_.size();
        while (at_ < count_) {
            auto const event = events_[at_++];
            if (event.data.ptr == nullptr) continue;  // a wake-up, or one that is gone
            auto& watch = *static_cast<SocketWatch*>(event.data.ptr);
            if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
                watch.leaving_events_ = event.events;
                if (!watch.leaving_links_.linked()) leaving_.push_back(watch);
                continue;
            }
            told = true;
            watch.on_events(event.events);
            if (Clock::now() - start >= limit) return told;
        }
        if (all) return told;
    }
}

bool SocketEvents::tell_leaving(std::chrono::nanoseconds limit) {
    if (leaving_.empty()) return false;
    auto const start = Clock::now();
    while (auto* const watch = leaving_.pop_front()) {
        watch->on_events(watch->leaving_events_);
        if (Clock::now() - start >= limit) break;
    }
    return true;
}

bool SocketEvents::call_again(std::size_t most, std::chrono::nanoseconds limit) {
    if (most == 0 || again_.empty()) return false;
    auto const start = Clock::now();
    for (; most > 0 && !again_.empty(); --most) {
        again_.pop_front()->on_events(0);
        if (Clock::now() - start >= limit) break;
    }
    return true;
}

}  // namespace tinkxx::base
