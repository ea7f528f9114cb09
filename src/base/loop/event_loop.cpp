#include "base/loop/event_loop.hpp"

#include "base/common/entropy.hpp"
#include "base/common/fork.hpp"
#include "base/loop/loop_rule.hpp"
#include "base/loop/socket_events.hpp"
#include "base/loop/timer_queue.hpp"

#include <tinkxx/detail/process.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace tinkxx::base {
namespace {

// Tasks that take longer than this together wait until sockets and timers had their turn.
constexpr std::chrono::milliseconds longest_drain{1};
// As long for what is new on sockets, and for those that have more to do.
constexpr std::chrono::milliseconds longest_poll{2};
constexpr std::size_t tasks_between_looks = 64;
// A burst of tasks does not hold memory for ever.
constexpr std::size_t most_kept = 4096;

/// A turn that this thread is in; there are several if one loop's work turns another.
struct Turn {
    EventLoop const* loop;
    Turn* outer;
};
thread_local Turn* innermost = nullptr;

class InTurn {
public:
    /// `threads`: how many are inside, which only the loop rule asks for.
    InTurn(EventLoop const& loop, std::atomic<int>& threads) noexcept
        : turn_{&loop, innermost}, threads_{threads} {
        innermost = &turn_;
        if constexpr (loop_rule_asserted) ++threads_;
    }
    ~InTurn() {
        innermost = turn_.outer;
        if constexpr (loop_rule_asserted) --threads_;
    }
    InTurn(InTurn const&) = delete;
    InTurn& operator=(InTurn const&) = delete;

private:
    Turn turn_;
    std::atomic<int>& threads_;
};

}  // namespace

struct EventLoop::Impl {
    explicit Impl(EventLoop& loop, std::uint64_t seed)
        : entropy{seed}, now{std::chrono::steady_clock::now()}, timers{loop, now} {}

    std::uint32_t const born{detail::forks()};
    std::atomic<int> inside{0};  ///< turns, of any thread
    SocketEvents sockets;
    Entropy entropy;
    TimePoint now;
    /// The loop may have slept since `now`: whoever wants it next looks at the clock again.
    bool slept{false};
    std::chrono::nanoseconds slept_time{0};
    TimerQueue timers;
    TurnEnd* first_end{};
    TurnEnd* last_end{};
    std::function<void(std::exception_ptr)> handler;
    std::vector<Task> batch;  ///< taken from `posted`; run up to `begun`
    std::size_t begun{0};

    // Guards the queue between the posting threads and the loop. `asleep` is set, under the lock
    // and with an empty queue, before the loop blocks; whoever clears it owes one wake-up. So a
    // burst of posts costs one, and a running loop costs none.
    std::mutex mutex;
    std::vector<Task> posted;
    bool asleep{false};
    bool closed{false};

    void refresh() noexcept {
        auto const before = std::exchange(now, std::chrono::steady_clock::now());
        if (std::exchange(slept, false)) slept_time += now - before;
    }

    void report() noexcept {
        try {
            if (handler) handler(std::current_exception());
        } catch (...) {
            // Nobody is left to tell.
        }
    }

    /// Runs what was posted before this call, or as much of it as a turn has time for: whoever
    /// posts a million tasks must not keep the sockets from being read.
    bool drain() {
        if (begun == batch.size()) {
            batch.clear();
            begun = 0;
            if (batch.capacity() > most_kept) batch = std::vector<Task>{};
            std::scoped_lock const lock{mutex};
            asleep = false;
            if (posted.empty()) return false;
            std::swap(posted, batch);
        }
        auto const until = now + longest_drain;
        while (begun < batch.size()) {
            auto own = std::move(batch[begun++]);  // gone before the next one runs
            try {
                own();
            } catch (...) {
                report();
            }
            own = nullptr;
            if (begun % tasks_between_looks == 0 && std::chrono::steady_clock::now() >= until) {
                break;
            }
        }
        return true;
    }

    bool fire() {
        bool fired = false;
        for (;;) {
            try {
                return timers.fire(now) || fired;
            } catch (...) {
                fired = true;
                report();
            }
        }
    }

    bool end_turn() {
        if (first_end == nullptr) return false;
        while (first_end != nullptr) {
            auto& work = *first_end;
            unlink(work);
            try {
                work.on_turn_end();
            } catch (...) {
                report();
            }
        }
        return true;
    }

    bool run_due() {
        bool const drained = drain();
        bool const fired = fire();
        return end_turn() || drained || fired;
    }

    /// Runs what sockets have to say, or as much of it as a turn has time for.
    bool poll() {
        try {
            return sockets.tell(longest_poll);
        } catch (...) {
            report();
            return true;
        }
    }

    /// From here on a post wakes who waits for the sockets. False if there is one already.
    bool fall_asleep() {
        {
            std::scoped_lock const lock{mutex};
            if (!posted.empty()) return false;
            asleep = true;
        }
        slept = true;
        return true;
    }

    /// Blocks until a socket, a post, a timer or `deadline` calls.
    bool wait(TimePoint deadline) {
        auto const until = std::min(deadline, timers.next_due().value_or(TimePoint::max()));
        if (until <= now || begun < batch.size()) return poll();
        if (!fall_asleep()) return true;
        auto const limit = until == TimePoint::max() ? std::nullopt : std::optional{until - now};
        if (!sockets.wait(limit)) return false;
        poll();
        return true;
    }

    void link(EventLoop& loop, TurnEnd& work) noexcept {
        work.loop_ = &loop;
        work.previous_ = last_end;
        work.next_ = nullptr;
        (last_end != nullptr ? last_end->next_ : first_end) = &work;
        last_end = &work;
    }

    void unlink(TurnEnd& work) noexcept {
        (work.previous_ != nullptr ? work.previous_->next_ : first_end) = work.next_;
        (work.next_ != nullptr ? work.next_->previous_ : last_end) = work.previous_;
        work.loop_ = nullptr;
        work.previous_ = work.next_ = nullptr;
    }
};

TurnEnd::~TurnEnd() {
    if (loop_ != nullptr) loop_->impl_->unlink(*this);
}

EventLoop::EventLoop(std::optional<std::uint64_t> seed)
    : impl_{std::make_unique<Impl>(*this, seed ? *seed : random_seed())} {}

EventLoop::~EventLoop() {
    close();
    while (impl_->first_end != nullptr) impl_->unlink(*impl_->first_end);
}

TimePoint EventLoop::now() const noexcept {
    TINKXX_ASSERT_LOOP(*this);
    if (impl_->slept) impl_->refresh();
    return impl_->now;
}

WallTime EventLoop::wall() const noexcept { return std::chrono::system_clock::now(); }

std::uint64_t EventLoop::entropy(std::string_view stream) {
    TINKXX_ASSERT_LOOP(*this);
    return impl_->entropy.draw(stream);
}

void EventLoop::arm(Timer& timer, TimePoint when, Precision precision) noexcept {
    TINKXX_ASSERT_LOOP(*this);
    impl_->timers.arm(timer, when, precision);
}

void EventLoop::disarm(Timer& timer) noexcept {
    TINKXX_ASSERT_LOOP(*this);
    impl_->timers.disarm(timer);
}

void EventLoop::post(Task task) {
    if (impl_->born != detail::forks()) return strand(std::move(task));
    // The wake-up is sent under the lock, which the loop needs to see the task: a task that ends
    // the loop cannot do so before this thread is done with it.
    std::scoped_lock const lock{impl_->mutex};
    if (impl_->closed) return;  // the caller destroys `task`, after the lock is released
    impl_->posted.push_back(std::move(task));
    if (std::exchange(impl_->asleep, false)) impl_->sockets.wake();
}

bool EventLoop::on_loop() const noexcept {
    for (auto const* turn = innermost; turn != nullptr; turn = turn->outer) {
        if (turn->loop == this) return true;
    }
    return false;
}

bool EventLoop::turned_elsewhere() const noexcept {
    // In a child of the process nobody turns any more, whatever was counted when it was forked.
    return impl_->inside > 0 && !on_loop() && impl_->born == detail::forks();
}

bool EventLoop::turn(std::chrono::nanoseconds limit) {
    InTurn const guard{*this, impl_->inside};
    auto& impl = *impl_;
    impl.refresh();
    bool worked = impl.run_due();
    if (worked || limit <= std::chrono::nanoseconds::zero()) {
        worked = impl.poll() || worked;
        impl.refresh();
        return impl.run_due() || worked;
    }
    auto const deadline = limit < TimePoint::max() - impl.now ? impl.now + limit : TimePoint::max();
    // More than once only if the wait ended for a timer that has been disarmed.
    do {
        worked = impl.wait(deadline);
        impl.refresh();
        worked = impl.run_due() || worked;
    } while (!worked && impl.now < deadline);
    return worked;
}

void EventLoop::at_turn_end(TurnEnd& work) noexcept {
    TINKXX_ASSERT_LOOP(*this);
    if (work.loop_ == nullptr) impl_->link(*this, work);
}

int EventLoop::descriptor() const noexcept { return impl_->sockets.descriptor(); }

std::optional<std::chrono::nanoseconds> EventLoop::wait_time() {
    constexpr std::chrono::nanoseconds at_once{0};
    auto& impl = *impl_;
    if (impl.begun < impl.batch.size() || impl.sockets.pending()) return at_once;
    if (!impl.fall_asleep()) return at_once;
    auto const due = impl.timers.next_due();
    if (!due) return std::nullopt;
    return std::max<std::chrono::nanoseconds>(*due - std::chrono::steady_clock::now(), at_once);
}

std::chrono::nanoseconds EventLoop::slept() const noexcept { return impl_->slept_time; }

SocketEvents& EventLoop::sockets() noexcept {
    TINKXX_ASSERT_LOOP(*this);
    return impl_->sockets;
}

void EventLoop::on_exception(std::function<void(std::exception_ptr)> handler) {
    impl_->handler = std::move(handler);
}

void EventLoop::close() noexcept {
    auto const begun = std::exchange(impl_->batch, {});
    impl_->begun = 0;
    std::vector<Task> unrun;
    {
        std::scoped_lock const lock{impl_->mutex};
        impl_->closed = true;
        std::swap(unrun, impl_->posted);
    }
}

}  // namespace tinkxx::base
