#include "service/passes/turns.hpp"

#include "base/loop/loop_rule.hpp"

#include <algorithm>

namespace tinkxx::service {

bool Turns::enter(TurnRange range, TurnWaiter& waiter, std::string who) {
    bool const now = range.first == first_;
    ranges_.insert_or_assign(range.first, Entry{.count = range.count,
                                                .left = range.count,
                                                .waiter = now ? nullptr : &waiter,
                                                .who = std::move(who)});
    return now;
}

void Turns::ended(TurnRange range) {
    auto const at = ranges_.find(range.first);
    if (at == ranges_.end() || at->second.left == 0) return;
    --at->second.left;
    settle();
}

void Turns::give_up(TurnRange range) {
    if (range.first < first_) return;  // over
    auto& entry = ranges_[range.first];
    entry.count = range.count;
    entry.left = 0;
    entry.waiter = nullptr;
    settle();
}

/// Goes on to the first range that has something left. Not recursive: a range that ends inside
/// `on_turn` is passed over by the loop that called it.
void Turns::settle() {
    if (std::exchange(settling_, true)) return;
    for (auto at = ranges_.find(first_); at != ranges_.end(); at = ranges_.find(first_)) {
        if (at->second.left == 0) {
            first_ += at->second.count;
            ranges_.erase(at);
            continue;
        }
        auto* const waiter = std::exchange(at->second.waiter, nullptr);
        if (waiter == nullptr) break;  // under way
        waiter->on_turn();
    }
    settling_ = false;
}

std::int64_t Turns::turn() const noexcept {
    auto const at = ranges_.find(first_);
    return at == ranges_.end() ? first_ : first_ + at->second.count - at->second.left;
}

std::size_t Turns::waiting() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        ranges_, [](auto const& entry) { return entry.second.waiter != nullptr; }));
}

std::string_view Turns::holder() const noexcept {
    auto const at = ranges_.find(first_);
    return at == ranges_.end() ? std::string_view{} : std::string_view{at->second.who};
}

std::int64_t SeqIds::take() {
    if (open_.empty()) return next_++;
    return open_.extract(open_.begin()).value();
}

std::int64_t TurnDesk::foreseen(std::int64_t place) const {
    std::lock_guard const lock{mutex_};
    auto number = place + 1;
    for (auto const& [first, count] : skipped_) {
        if (first < place) number -= count;
    }
    return number;
}

void TurnDesk::skip(std::int64_t place, std::int64_t count) {
    TINKXX_ASSERT_LOOP(*scheduler_);
    std::lock_guard const lock{mutex_};
    skipped_[place] += count;
    // Nobody is before the one whose turn it is.
    auto const turn = turns_.first();
    std::int64_t passed = 0;
    for (auto at = skipped_.begin(); at != skipped_.end() && at->first < turn;) {
        passed += at->second;
        at = skipped_.erase(at);
    }
    skipped_[-1] += passed;
}

void TurnDesk::settled(bool taken) {
    TINKXX_ASSERT_LOOP(*scheduler_);
    if (!taken) {
        seq_ids_.give_back(unsettled_.front().order.seq_id);
        skip(-1, 1);
    }
    unsettled_.pop_front();
}

void TurnDesk::give_up(TurnRange range, std::vector<std::int64_t> unused,
                       std::int64_t without_number) {
    if (!scheduler_->on_loop()) {
        scheduler_->post([desk = shared_from_this(), range, unused = std::move(unused),
                          without_number] { desk->give_up(range, unused, without_number); });
        return;
    }
    skip(range.first, without_number);
    for (auto const seq_id : unused) seq_ids_.give_back(seq_id);
    turns_.give_up(range);
}

Ticket& Ticket::operator=(Ticket&& other) noexcept {
    if (this != &other) {
        reset();
        desk_ = std::move(other.desk_);
        range_ = other.range_;
        left_ = other.left_;
        numbers_ = other.numbers_;
        seq_ids_ = std::move(other.seq_ids_);
    }
    return *this;
}

std::int64_t Ticket::seq_id(std::size_t submit) const {
    if (!seq_ids_.empty()) return seq_ids_[submit];
    return desk_->foreseen(range_.first + static_cast<std::int64_t>(submit));
}

void Ticket::begin() {
    if (numbers_ == Numbers::none) return;
    for (std::int64_t i = 0; i < range_.count; ++i) seq_ids_.push_back(desk_->seq_ids_.take());
}

void Ticket::ended(std::size_t submit) {
    if (numbers_ == Numbers::yes) {
        use(submit);
    } else {
        desk_->skip(range_.first, 1);
    }
    auto const desk = desk_;  // whoever is next may destroy this
    if (--left_ == 0) desk_.reset();
    desk->turns().ended(range_);
}

void Ticket::reset() noexcept {
    auto const desk = std::exchange(desk_, nullptr);
    if (!desk) return;
    auto unused = std::exchange(seq_ids_, {});
    // Places that never began are without a number, too.
    auto without_number = unused.empty() ? left_ : std::int64_t{0};
    std::erase(unused, used);
    without_number += static_cast<std::int64_t>(unused.size());
    desk->give_up(range_, std::move(unused), without_number);
}

}  // namespace tinkxx::service
