#include "service/training/turns.hpp"

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

void TurnDesk::give_up(TurnRange range) {
    if (scheduler_->on_loop()) return turns_.give_up(range);
    scheduler_->post([desk = shared_from_this(), range] { desk->turns_.give_up(range); });
}

Ticket& Ticket::operator=(Ticket&& other) noexcept {
    if (this != &other) {
        reset();
        desk_ = std::move(other.desk_);
        range_ = other.range_;
        left_ = other.left_;
    }
    return *this;
}

void Ticket::ended() {
    auto const desk = desk_;  // whoever is next may destroy this
    if (--left_ == 0) desk_.reset();
    desk->turns().ended(range_);
}

void Ticket::reset() noexcept {
    auto const desk = std::exchange(desk_, nullptr);
    if (desk) desk->give_up(range_);
}

}  // namespace tinkxx::service
