#pragma once

#include <tinkxx/scheduler.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace tinkxx::service {

/// Request ids of one model that belong together: those of the chunks of one call.
struct TurnRange {
    std::int64_t first{0};
    std::int64_t count{0};

    bool operator==(TurnRange const&) const = default;
};

/// Waits for the turn of its range. Loop thread only.
class TurnWaiter {
public:
    /// From inside somebody else's `ended` or `give_up`; the waiter may end its own range, or be
    /// destroyed, inside.
    virtual void on_turn() = 0;

protected:
    virtual ~TurnWaiter() = default;
};

/// Lets the submits of one model go in the order in which they were asked for (R-TRAIN-11..13).
/// Told what happened, it tells who is next. Touches no socket and reads no clock; loop thread
/// only.
class Turns {
public:
    /// True: all ids before the range have ended, and those of the range may be submitted in any
    /// order. False: `waiter` is told when that is so. `who` is for those who wait behind it.
    [[nodiscard]] bool enter(TurnRange range, TurnWaiter& waiter, std::string who);
    /// One submit of the range has ended, well or not.
    void ended(TurnRange range);
    /// What has not ended of the range never will; nor will its waiter be told. At any time, also
    /// for a range that never entered, and harmless once it is over.
    void give_up(TurnRange range);

    /// The first id that has not ended; each submit that ends adds one (R-TRAIN-12).
    [[nodiscard]] std::int64_t turn() const noexcept;
    /// Ranges that wait for their turn.
    [[nodiscard]] std::size_t waiting() const noexcept;
    /// Whose turn it is; empty if nobody has come for it yet.
    [[nodiscard]] std::string_view holder() const noexcept;

private:
    struct Entry {
        std::int64_t count{0};
        std::int64_t left{0};
        TurnWaiter* waiter{nullptr};  ///< until its turn
        std::string who{};
    };

    void settle();

    std::int64_t first_{0};  ///< of the range whose turn it is
    std::map<std::int64_t, Entry> ranges_{};
    bool settling_{false};
};

/// The ids and turns of one model. Held by `std::shared_ptr`.
class TurnDesk final : public std::enable_shared_from_this<TurnDesk> {
public:
    /// The scheduler outlives this.
    explicit TurnDesk(Scheduler& scheduler) noexcept : scheduler_{&scheduler} {}

    /// The next `count` ids (R-TRAIN-10). Any thread.
    [[nodiscard]] TurnRange take(std::int64_t count) noexcept {
        return {.first = next_.fetch_add(count), .count = count};
    }
    /// How many were taken. Any thread.
    [[nodiscard]] std::int64_t taken() const noexcept { return next_.load(); }
    /// Loop thread only.
    [[nodiscard]] Turns& turns() noexcept { return turns_; }

private:
    friend class Ticket;
    void give_up(TurnRange range);

    Scheduler* const scheduler_;
    std::atomic<std::int64_t> next_{0};
    Turns turns_{};
};

/// The right to submit under some ids. Whatever becomes of its owner, the ids are given up when it
/// goes, so that those behind it are not held up (R-TRAIN-13). Moved by any thread.
class Ticket {
public:
    Ticket() noexcept = default;
    Ticket(std::shared_ptr<TurnDesk> desk, TurnRange range) noexcept
        : desk_{std::move(desk)}, range_{range}, left_{range.count} {}
    Ticket(Ticket&& other) noexcept
        : desk_{std::move(other.desk_)}, range_{other.range_}, left_{other.left_} {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { reset(); }

    explicit operator bool() const noexcept { return desk_ != nullptr; }
    [[nodiscard]] TurnRange range() const noexcept { return range_; }
    /// What the service knows a submit by: its id, counted from one (R-TRAIN-10).
    [[nodiscard]] std::int64_t seq_id(std::size_t submit) const noexcept {
        return range_.first + static_cast<std::int64_t>(submit) + 1;
    }
    [[nodiscard]] Turns& turns() const noexcept { return desk_->turns(); }

    // Loop thread only.
    [[nodiscard]] bool enter(TurnWaiter& waiter, std::string who) {
        return desk_->turns().enter(range_, waiter, std::move(who));
    }
    /// One submit has ended; after the last the ticket is used up.
    void ended();
    /// Now, if on the loop thread; else from there.
    void reset() noexcept;

private:
    std::shared_ptr<TurnDesk> desk_{};
    TurnRange range_{};
    std::int64_t left_{0};
};

}  // namespace tinkxx::service
