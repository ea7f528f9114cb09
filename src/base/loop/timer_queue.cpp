#include "base/loop/timer_queue.hpp"

#include <algorithm>
#include <bit>

namespace tinkxx {

Timer::~Timer() {
    if (owner_ != nullptr) owner_->disarm(*this);
}

}  // namespace tinkxx

namespace tinkxx::base {
namespace {

Timer::Links& links(Timer& timer) noexcept { return TimerAccess::links(timer); }
Timer::Links& links(Timer* timer) noexcept { return TimerAccess::links(*timer); }

constexpr std::int64_t tick_ns = TimerQueue::tick.count();

std::uint64_t tick_before(TimePoint when) noexcept {
    auto const ns = std::chrono::nanoseconds{when.time_since_epoch()}.count();
    return ns <= 0 ? 0 : static_cast<std::uint64_t>(ns / tick_ns);
}

std::uint64_t tick_after(TimePoint when) noexcept {
    auto const ns = std::chrono::nanoseconds{when.time_since_epoch()}.count();
    if (ns <= 0) return 0;
    return static_cast<std::uint64_t>(ns / tick_ns) + (ns % tick_ns != 0 ? 1 : 0);
}

TimePoint time_of(std::uint64_t ticks) noexcept {
    constexpr auto most =
        static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count() / tick_ns);
    if (ticks > most) return TimePoint::max();
    return TimePoint{std::chrono::nanoseconds{static_cast<std::int64_t>(ticks) * tick_ns}};
}

bool earlier(Timer* a, Timer* b) noexcept {
    auto const& x = links(a);
    auto const& y = links(b);
    return x.when != y.when ? x.when < y.when : x.order < y.order;
}

// In the heap `child` is the first child, `next` the next sibling, and `previous` the previous
// sibling or, for a first child, the parent. The root has neither.

Timer* meld(Timer* a, Timer* b) noexcept {
    if (a == nullptr) return b;
    if (b == nullptr) return a;
    if (earlier(b, a)) std::swap(a, b);
    auto* const first = links(a).child;
    links(b).next = first;
    links(b).previous = a;
    if (first != nullptr) links(first).previous = b;
    links(a).child = b;
    return a;
}

/// Melds a list of siblings: in pairs from the left, then the pairs from the right.
Timer* meld_siblings(Timer* first) noexcept {
    Timer* pairs = nullptr;
    while (first != nullptr) {
        auto* const a = first;
        auto* const b = links(a).next;
        first = b != nullptr ? links(b).next : nullptr;
        links(a).next = links(a).previous = nullptr;
        if (b != nullptr) links(b).next = links(b).previous = nullptr;
        auto* const pair = meld(a, b);
        links(pair).next = pairs;
        pairs = pair;
    }
    Timer* root = nullptr;
    while (pairs != nullptr) {
        auto* const pair = pairs;
        pairs = links(pair).next;
        links(pair).next = nullptr;
        root = meld(root, pair);
    }
    return root;
}

}  // namespace

TimerQueue::TimerQueue(Scheduler& owner, TimePoint now) noexcept
    : owner_{&owner}, current_{tick_before(now)} {}

TimerQueue::~TimerQueue() {
    while (heap_ != nullptr) disarm(*heap_);
    for (auto& list : lists_) {
        while (list.first != nullptr) disarm(*list.first);
    }
}

void TimerQueue::arm(Timer& timer, TimePoint when, Precision precision) noexcept {
    auto*& owner = TimerAccess::owner(timer);
    if (owner != nullptr) owner->disarm(timer);
    owner = owner_;
    auto& own = links(timer);
    own = {.when = when, .order = order_++ & TimerAccess::most_order};
    if (precision == Precision::exact) {
        own.slot = in_heap;
        heap_ = meld(heap_, &timer);
    } else {
        place(timer);
    }
}

void TimerQueue::disarm(Timer& timer) noexcept {
    auto*& owner = TimerAccess::owner(timer);
    if (owner != owner_) return;
    owner = nullptr;
    if (links(timer).slot == in_heap) {
        heap_remove(timer);
    } else {
        unlink(timer);
    }
}

bool TimerQueue::fire(TimePoint now) {
    // Everything that is due is set aside before the first call, so that a timer that arms
    // itself for this very moment does not keep the loop from its other work. What a call
    // disarms or destroys leaves the list like any other.
    while (heap_ != nullptr && links(heap_).when <= now) {
        auto& timer = *heap_;
        heap_remove(timer);
        append(due, timer);
    }
    make_due(ready);
    if (auto const target = tick_before(now); target > current_) advance(target);

    auto& list = lists_[due];
    if (list.first == nullptr) return false;
    while (list.first != nullptr) {
        auto& timer = *list.first;
        disarm(timer);
        timer.on_time();
    }
    return true;
}

std::optional<TimePoint> TimerQueue::next_due() const noexcept {
    if (lists_[ready].first != nullptr || lists_[due].first != nullptr) return TimePoint{};
    std::optional<TimePoint> best;
    if (heap_ != nullptr) best = std::max(links(heap_).when, TimePoint{});
    auto const consider = [&best](List const& list) {
        auto const when = time_of(list.earliest);
        if (!best || when < *best) best = when;
    };
    // Lower levels hold earlier timers than higher ones, and lower slots than higher ones.
    for (std::size_t level = 0; level < levels; ++level) {
        if (occupied_[level] == 0) continue;
        auto const slot = static_cast<std::size_t>(std::countr_zero(occupied_[level]));
        consider(lists_[level * slots + slot]);
        return best;
    }
    if (lists_[overflow].first != nullptr) consider(lists_[overflow]);
    return best;
}

bool TimerQueue::empty() const noexcept { return !next_due(); }

void TimerQueue::append(Slot slot, Timer& timer) noexcept {
    auto& list = lists_[slot];
    auto& own = links(timer);
    own.slot = slot;
    own.next = nullptr;
    own.previous = list.last;
    auto const at = tick_after(own.when);
    if (list.last != nullptr) {
        links(list.last).next = &timer;
        list.earliest = std::min(list.earliest, at);
    } else {
        list.first = &timer;
        list.earliest = at;
        if (slot < overflow) occupied_[slot / slots] |= std::uint64_t{1} << (slot % slots);
    }
    list.last = &timer;
}

void TimerQueue::unlink(Timer& timer) noexcept {
    auto& own = links(timer);
    auto& list = lists_[own.slot];
    (own.previous != nullptr ? links(own.previous).next : list.first) = own.next;
    (own.next != nullptr ? links(own.next).previous : list.last) = own.previous;
    if (list.first == nullptr && own.slot < overflow) {
        occupied_[own.slot / slots] &= ~(std::uint64_t{1} << (own.slot % slots));
    }
    own.next = own.previous = nullptr;
}

void TimerQueue::place(Timer& timer) noexcept {
    auto const at = tick_after(links(timer).when);
    if (at <= current_) return append(ready, timer);
    auto const level =
        static_cast<std::size_t>(std::bit_width(at ^ current_) - 1) / std::size_t{bits};
    if (level >= levels) return append(overflow, timer);
    auto const slot = (at >> (level * bits)) & (slots - 1);
    append(static_cast<Slot>(level * slots + slot), timer);
}

void TimerQueue::scatter(Slot slot) noexcept {
    auto& list = lists_[slot];
    auto* timer = list.first;
    list.first = list.last = nullptr;
    if (slot < overflow) occupied_[slot / slots] &= ~(std::uint64_t{1} << (slot % slots));
    while (timer != nullptr) {
        auto* const next = links(timer).next;
        if (tick_after(links(timer).when) == current_) {
            append(due, *timer);
        } else {
            place(*timer);
        }
        timer = next;
    }
}

void TimerQueue::make_due(Slot slot) noexcept {
    while (auto* const timer = lists_[slot].first) {
        unlink(*timer);
        append(due, *timer);
    }
}

void TimerQueue::advance(Tick target) noexcept {
    constexpr auto wheel_bits = levels * bits;
    for (;;) {
        // The next slot that begins: the first occupied one of the lowest occupied level, since
        // every slot of a level begins after all of the levels below it are over.
        std::size_t level = 0;
        while (level < levels && occupied_[level] == 0) ++level;
        if (level == levels) {
            auto const& far = lists_[overflow];
            auto const begin = (far.earliest >> wheel_bits) << wheel_bits;
            if (far.first == nullptr || begin > target) break;
            current_ = std::max(current_, begin);
            scatter(overflow);
            continue;
        }
        auto const slot = static_cast<std::size_t>(std::countr_zero(occupied_[level]));
        auto const shift = level * bits;
        auto const block = (current_ >> (shift + bits)) << (shift + bits);
        auto const begin = block | (Tick{slot} << shift);
        if (begin > target) break;
        current_ = begin;
        scatter(static_cast<Slot>(level * slots + slot));
    }
    current_ = target;
}

void TimerQueue::heap_remove(Timer& timer) noexcept {
    auto& own = links(timer);
    auto* const children = meld_siblings(own.child);
    if (&timer == heap_) {
        heap_ = children;
    } else {
        auto& before = links(own.previous);
        (before.child == &timer ? before.child : before.next) = own.next;
        if (own.next != nullptr) links(own.next).previous = own.previous;
        heap_ = meld(heap_, children);
    }
    own.child = own.next = own.previous = nullptr;
}

}  // namespace tinkxx::base
