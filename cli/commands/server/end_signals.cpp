#include "commands/server/end_signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace tinkxx::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int exit_of_signal = 128;  // what a shell adds to the number of a signal

/// Drops the line if stderr takes none now: an end that waits for a reader is no end.
void write_line(std::string_view line) noexcept {
    pollfd to{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&to, 1, 0) == 1 && to.revents == POLLOUT) {
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    }
}

[[noreturn]] void end_by(int signal) noexcept {
    ::signal(signal, SIG_DFL);
    sigset_t one{};
    sigemptyset(&one);
    sigaddset(&one, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    ::raise(signal);
    ::_exit(exit_of_signal + signal);  // the first process of a container survives the default
}

/// The next of `signals`; 0 if none has come by `limit`.
int next_of(sigset_t const& signals, Clock::time_point limit) noexcept {
    using namespace std::chrono_literals;
    for (;;) {
        auto const left = limit - Clock::now();
        if (left <= 0s) return 0;
        auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
        timespec const wait{.tv_sec = static_cast<std::time_t>(seconds.count()),
                            .tv_nsec = static_cast<long>((left - seconds) / 1ns)};
        int const signal = ::sigtimedwait(&signals, nullptr, &wait);
        if (signal > 0) return signal;
        if (errno != EINTR && errno != EAGAIN) return 0;
    }
}

}  // namespace

EndSignals::EndSignals(std::chrono::nanoseconds limit) : limit_{limit} {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread{[this] { watch(); }};
}

EndSignals::~EndSignals() {
    {
        std::scoped_lock const lock{mutex_};
        phase_ = Phase::over;
    }
    // To that thread only, which waits for it and knows what it means.
    ::pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
}

void EndSignals::serving() {
    std::scoped_lock const lock{mutex_};
    phase_ = Phase::serving;
}

void EndSignals::wait() {
    std::unique_lock lock{mutex_};
    ended_.wait(lock, [this] { return phase_ == Phase::ending; });
}

bool EndSignals::over() {
    std::scoped_lock const lock{mutex_};
    return phase_ == Phase::over;
}

void EndSignals::watch() {
    int signal = 0;
    while (::sigwait(&signals_, &signal) != 0) {
    }
    auto const first = Clock::now();
    {
        std::scoped_lock const lock{mutex_};
        if (phase_ == Phase::over) return;
        if (phase_ == Phase::starting) {
            write_line("ended by a signal before it served\n");
            ::_exit(0);
        }
        phase_ = Phase::ending;
        ended_.notify_all();
    }
    signal = next_of(signals_, first + limit_);
    if (over()) return;
    if (signal != 0) end_by(signal);
    write_line(
        "ended by force: what runs could not be stopped in time; nothing acknowledged is lost\n");
    ::_exit(1);
}

}  // namespace tinkxx::cli
