#pragma once

#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace tinkxx::testing {

/// The initial state of a `ManualClock`.
struct ManualClockOptions {
    /// The seed of all random numbers: equal seeds give equal runs.
    std::uint64_t seed{0};
    /// Time of day at the start; the default is 2027-01-15 08:00 UTC.
    WallTime wall{std::chrono::seconds{1'800'000'000}};
    /// Instead of waiting, jump to the next timer: hours pass in milliseconds, and `Future::get()`
    /// needs no `advance`.
    bool auto_advance{false};
};

/// A clock that a test controls. Pass it to a runtime without threads:
///
///     auto clock = std::make_shared<testing::ManualClock>();
///     Runtime runtime{{.threads = 0, .scheduler = clock}};
///     …
///     clock->advance(6999ms);   // up to the edge,
///     clock->advance(1ms);      // and over it
///
/// Nothing runs unless the test calls `advance`, `run_ready` or `Runtime::poll`, or waits for a
/// future, which polls. Timers run in the order of their times, each at its own time; tasks that
/// they post run before the next timer. Timers of both precisions are exact.
///
/// Members may only be called on the test's thread, which is the loop thread, except `post` and
/// `on_loop`.
class ManualClock final : public Scheduler {
public:
    ManualClock();
    explicit ManualClock(ManualClockOptions options);
    ~ManualClock() override;

    /// Advances the time by `step`, running everything that becomes due on the way. Throws
    /// `UsageError` if called inside a task or timer.
    void advance(std::chrono::nanoseconds step);
    /// As `advance`, up to the time `when`. If that has passed, only runs what is due.
    void advance_to(TimePoint when);
    /// Runs what is due now, and what that makes due, without advancing the time. Returns whether
    /// there was anything.
    bool run_ready();

    /// Sets the time of day, as an operator or NTP would. Deadlines are not affected.
    void set_wall(WallTime wall) noexcept;
    void set_auto_advance(bool on) noexcept;

    [[nodiscard]] std::size_t pending_timers() const noexcept;
    [[nodiscard]] std::size_t pending_tasks() const;
    /// The time of the next timer.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept;

    TimePoint now() const noexcept override;
    WallTime wall() const noexcept override;
    std::uint64_t entropy(std::string_view stream) override;
    void arm(Timer& timer, TimePoint when, Precision precision) noexcept override;
    void disarm(Timer& timer) noexcept override;
    void post(Task task) override;
    /// Whether the calling thread is inside `advance`, `run_ready` or `turn`.
    bool on_loop() const noexcept override;
    bool turned_elsewhere() const noexcept override;
    /// With `auto_advance`, `limit` is virtual time. Without it, time stands still, and `limit` is
    /// the real time to wait for a `post` from another thread.
    bool turn(std::chrono::nanoseconds limit) override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::testing
