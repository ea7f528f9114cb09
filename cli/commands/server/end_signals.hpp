#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace tinkxx::cli {

/// Ends the process when SIGTERM or SIGINT asks for it, whatever its other threads do:
///
///   before `serving`   the first signal ends it at once, with exit code 0
///   afterwards         the first signal ends `wait`; if this object still exists when the limit
///                      has passed, it ends the process with exit code 1
///   at any time        the second signal ends the process as if nobody handled it
///
/// Nothing is lost by an end at once: what the server acknowledged is on the disk.
///
/// It must be made before any other thread, because each thread inherits the blocked signals from
/// its maker. It must be destroyed last, because destructors take time too. There is no signal
/// handler: a thread of its own waits for the signals, so that it may use locks. That thread takes
/// no lock that other code holds and writes to stderr only if that does not block.
class EndSignals {
public:
    /// Blocks both signals for good. Throws `std::system_error` if there can be no thread.
    explicit EndSignals(std::chrono::nanoseconds limit);
    ~EndSignals();
    EndSignals(EndSignals const&) = delete;
    EndSignals& operator=(EndSignals const&) = delete;

    /// The start is over: from now on the server has to be stopped first.
    void serving();
    /// Blocks until the first signal.
    void wait();

private:
    enum class Phase { starting, serving, ending, over };

    void watch();
    /// True if the owner is gone.
    [[nodiscard]] bool over();

    std::chrono::nanoseconds const limit_;
    sigset_t signals_{};
    std::mutex mutex_{};
    std::condition_variable ended_{};
    Phase phase_{Phase::starting};  // guarded by the mutex
    std::thread thread_{};
};

}  // namespace tinkxx::cli
