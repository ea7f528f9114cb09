#pragma once

#include <tinkxx/scheduler.hpp>

#include "service/passes/submit_order.hpp"
#include "service/results/result_poll.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::service {

/// Places in the line of one model that belong together: those of the chunks of one call.
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
    /// The first id of the range whose turn it is.
    [[nodiscard]] std::int64_t first() const noexcept { return first_; }
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

/// The numbers by which the service knows the requests of a model: from one, and without a gap,
/// since it waits for each (R-TRAIN-10). Given when a request is about to be submitted: whoever
/// comes to nothing before that needs none. Loop thread only.
class SeqIds {
public:
    /// The lowest that the service does not have.
    [[nodiscard]] std::int64_t take();
    /// The service did not get what was to be sent under this number.
    void give_back(std::int64_t seq_id) { open_.insert(seq_id); }

private:
    std::int64_t next_{1};
    std::set<std::int64_t> open_{};
};

/// The places, turns and numbers of one model. Held by `std::shared_ptr`.
class TurnDesk final : public std::enable_shared_from_this<TurnDesk> {
public:
    /// A request of which nobody knows whether the service has it. Its number can neither be used
    /// for another nor left out, so whoever is next sends it again first.
    struct Unsettled {
        /// As it was sent first, if it was sent in two encodings.
        SubmitOrder order{};
        std::shared_ptr<RequestExtras const> extras{};
        /// Writes it in another encoding, on the callback executor. Empty if there is no choice.
        std::function<Result<SubmitOrder>(wire::Encoding)> recode{};
        /// It may have arrived in the other encoding, too.
        bool in_both{false};
    };

    /// The scheduler outlives this.
    explicit TurnDesk(Scheduler& scheduler) noexcept : scheduler_{&scheduler} {}

    /// The next `count` places. Any thread.
    [[nodiscard]] TurnRange take(std::int64_t count) noexcept {
        return {.first = next_.fetch_add(count), .count = count};
    }
    /// How many were taken. Any thread.
    [[nodiscard]] std::int64_t taken() const noexcept { return next_.load(); }
    /// The number of the request at this place, if nothing before it comes to nothing from here
    /// on. Any thread.
    [[nodiscard]] std::int64_t foreseen(std::int64_t place) const;
    /// Loop thread only.
    [[nodiscard]] Turns& turns() noexcept { return turns_; }
    [[nodiscard]] std::deque<Unsettled>& unsettled() noexcept { return unsettled_; }
    /// The first of these is known now; whether the service has it. Loop thread only.
    void settled(bool taken);

private:
    friend class Ticket;
    void give_up(TurnRange range, std::vector<std::int64_t> unused, std::int64_t without_number);
    /// A call at this place is over, and used so many numbers less than places.
    void skip(std::int64_t place, std::int64_t count);

    Scheduler* const scheduler_;
    std::atomic<std::int64_t> next_{0};
    Turns turns_{};
    SeqIds seq_ids_{};
    std::deque<Unsettled> unsettled_{};
    std::mutex mutable mutex_{};
    /// How many places of calls that are over have no number, by the first place of the call; those
    /// of calls that are behind everybody under -1. Guarded by mutex_.
    std::map<std::int64_t, std::int64_t> skipped_{};
};

/// The right to submit at some places. Whatever becomes of its owner, the places are given up when
/// it goes, and the numbers that were not used are given back, so that neither those behind it nor
/// the service wait for them (R-TRAIN-13). Moved by any thread.
class Ticket {
public:
    /// Whether its requests have numbers.
    enum class Numbers : std::uint8_t { yes, none };

    Ticket() noexcept = default;
    Ticket(std::shared_ptr<TurnDesk> desk, TurnRange range, Numbers numbers = Numbers::yes) noexcept
        : desk_{std::move(desk)}, range_{range}, left_{range.count}, numbers_{numbers} {}
    Ticket(Ticket&& other) noexcept = default;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { reset(); }

    explicit operator bool() const noexcept { return desk_ != nullptr; }
    [[nodiscard]] TurnRange range() const noexcept { return range_; }
    /// What the service knows a submit by (R-TRAIN-10): foreseen, until `begin`.
    [[nodiscard]] std::int64_t seq_id(std::size_t submit) const;
    [[nodiscard]] TurnDesk& desk() const noexcept { return *desk_; }

    // Loop thread only.
    [[nodiscard]] bool enter(TurnWaiter& waiter, std::string who) {
        return desk_->turns().enter(range_, waiter, std::move(who));
    }
    /// Its turn has come: gives each submit its number.
    void begin();
    /// A submit has ended, and its number is used; after the last the ticket is used up.
    void ended(std::size_t submit);
    /// The number of a submit is used up, though it did not end well.
    void use(std::size_t submit) noexcept { seq_ids_[submit] = used; }
    /// Now, if on the loop thread; else from there.
    void reset() noexcept;

private:
    static constexpr std::int64_t used = 0;

    std::shared_ptr<TurnDesk> desk_{};
    TurnRange range_{};
    std::int64_t left_{0};
    Numbers numbers_{Numbers::yes};
    /// By submit, once it has begun.
    std::vector<std::int64_t> seq_ids_{};
};

}  // namespace tinkxx::service
