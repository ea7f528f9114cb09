#pragma once

#include <tinkxx/detail/unique_function.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace tinkxx {

/// Monotonic time, for every deadline, delay and timeout.
using TimePoint = std::chrono::steady_clock::time_point;
/// Time of day: only for display, HTTP dates, token expiry and telemetry.
using WallTime = std::chrono::system_clock::time_point;
/// A unit of deferred work; move-only.
using Task = detail::UniqueFunction<void()>;

class Scheduler;

/// How late a timer may fire. Neither is ever early.
enum class Precision : std::uint8_t {
    exact,   ///< at the first turn at or after its time: backoffs, retries, poll spacing
    coarse,  ///< up to one tick (16 ms) late, and cheaper: deadlines, idle times
};

/// Something to be called at a given time. Meant as a base class of the object that waits, so that
/// arming never allocates. Destroying it disarms it. Loop thread only.
class Timer {
public:
    Timer() noexcept = default;
    Timer(Timer const&) = delete;
    Timer& operator=(Timer const&) = delete;

    /// Called once per arming, on the loop thread; may arm itself again or destroy itself.
    virtual void on_time() = 0;

    [[nodiscard]] bool armed() const noexcept { return owner_ != nullptr; }

    /// The bookkeeping of a `Scheduler`; not for other code.
    struct Links {
        Timer* child{};
        Timer* next{};
        Timer* previous{};
        TimePoint when{};
        std::uint64_t order : 48 {};  // these two share a word: thousands of timers wait at once
        std::uint64_t slot : 16 {};
    };

protected:
    virtual ~Timer();

private:
    friend class TimerAccess;
    Scheduler* owner_{};
    Links links_{};
};

/// The only source of time, timers, random numbers and deferred work in the library. The real one
/// runs on a `Runtime`; `testing::ManualClock` is controlled by a test.
///
/// Members may only be called on the loop thread, except `post` and `on_loop`.
class Scheduler {
public:
    virtual ~Scheduler() = default;

    /// The current time; it does not change within one turn of the loop.
    [[nodiscard]] virtual TimePoint now() const noexcept = 0;
    [[nodiscard]] virtual WallTime wall() const noexcept = 0;
    /// A seed for one generator, from the stream with this name. Streams are independent of each
    /// other.
    [[nodiscard]] virtual std::uint64_t entropy(std::string_view stream) = 0;
    /// Calls `timer.on_time()` once at `when` or later; an armed timer is moved. Timers of one
    /// precision with equal times are called in the order in which they were armed.
    virtual void arm(Timer& timer, TimePoint when, Precision precision) noexcept = 0;
    /// Disarms `timer`. Does nothing if it is not armed.
    virtual void disarm(Timer& timer) noexcept = 0;
    /// Runs `task` on the loop, after everything posted before it and never inside this call. Any
    /// thread. When the loop closes, tasks that have not run are destroyed.
    virtual void post(Task task) = 0;
    /// Whether the caller is on this scheduler's loop, that is, inside `turn`. Any thread.
    [[nodiscard]] virtual bool on_loop() const noexcept = 0;

    /// Runs what is due; if nothing is, waits for at most `limit` for something to become due, and
    /// runs that. Returns whether anything ran. Returns false before `limit` is over (by its own
    /// clock) only if nothing can become due unless another thread acts. Called by the thread that
    /// runs the loop (a `Runtime` does this); never inside a task or timer.
    virtual bool turn(std::chrono::nanoseconds limit) = 0;

    /// Whether another thread is inside `turn` now, so that what is for the loop thread is for that
    /// one alone. Builds without NDEBUG ask, to find whoever breaks this rule; a scheduler that
    /// does not know says false. Any thread.
    [[nodiscard]] virtual bool turned_elsewhere() const noexcept { return false; }
};

}  // namespace tinkxx
