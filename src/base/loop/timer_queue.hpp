#pragma once

#include <tinkxx/scheduler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tinkxx {

/// Opens a `Timer`'s bookkeeping to the schedulers.
class TimerAccess {
public:
    /// `Links::order` counts up to this, which nobody reaches.
    static constexpr std::uint64_t most_order = (std::uint64_t{1} << 48U) - 1;
    [[nodiscard]] static Timer::Links& links(Timer& timer) noexcept { return timer.links_; }
    [[nodiscard]] static Scheduler*& owner(Timer& timer) noexcept { return timer.owner_; }
};

}  // namespace tinkxx

namespace tinkxx::base {

/// The timers of one scheduler: a pairing heap for exact ones, a hierarchical wheel for coarse
/// ones. Both are intrusive: no call allocates.
///
/// Arming is O(1), disarming amortised O(log n) for exact and O(1) for coarse timers. One thread.
class TimerQueue {
public:
    /// Coarse timers fire at multiples of this since the clock's epoch.
    static constexpr std::chrono::nanoseconds tick = std::chrono::milliseconds{16};

    /// `owner` is whom a timer's destructor tells; `now` is the clock's time.
    TimerQueue(Scheduler& owner, TimePoint now) noexcept;
    /// Timers that are still armed become unarmed.
    ~TimerQueue();
    TimerQueue(TimerQueue const&) = delete;
    TimerQueue& operator=(TimerQueue const&) = delete;

    void arm(Timer& timer, TimePoint when, Precision precision) noexcept;
    /// Harmless if the timer is not armed here.
    void disarm(Timer& timer) noexcept;

    /// Calls all timers that are due at `now`: exact ones by time, then coarse ones. True if
    /// there was one. What they arm waits for the next call, however early it is due. If one
    /// throws, the rest of them waits for the next call too.
    bool fire(TimePoint now);

    /// When `fire` has something to do: never later than that, and exact unless the earliest
    /// coarse timers were disarmed. Can be a time that has passed, down to the epoch; empty if
    /// nothing is armed.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept;
    [[nodiscard]] bool empty() const noexcept;

private:
    using Tick = std::uint64_t;
    using Slot = std::uint16_t;

    // A level has 64 slots, each as long as the whole level below it. A timer is on the lowest
    // level on which its tick and the current one are in the same block; so all timers of one
    // block move down together, before any can be put there directly, which keeps arming order.
    static constexpr unsigned bits = 6;
    static constexpr std::size_t slots = std::size_t{1} << bits;
    static constexpr std::size_t levels = 4;  // 64^4 ticks are 74 hours
    static constexpr Slot overflow = slots * levels;
    static constexpr Slot ready = overflow + 1;  // armed for a tick that has passed
    static constexpr Slot due = overflow + 2;    // being called by `fire`
    static constexpr Slot in_heap = overflow + 3;
    static constexpr std::size_t lists = overflow + 3;

    struct List {
        Timer* first{};
        Timer* last{};
        /// A lower bound of the ticks in it.
        Tick earliest{};
    };

    void append(Slot slot, Timer& timer) noexcept;
    void unlink(Timer& timer) noexcept;
    void place(Timer& timer) noexcept;
    void scatter(Slot slot) noexcept;
    void make_due(Slot slot) noexcept;
    void advance(Tick target) noexcept;

    void heap_remove(Timer& timer) noexcept;

    Scheduler* owner_;
    Timer* heap_{};
    std::uint64_t order_{};
    Tick current_;
    std::array<std::uint64_t, levels> occupied_{};
    std::array<List, lists> lists_{};
};

}  // namespace tinkxx::base
