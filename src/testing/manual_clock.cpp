#include <tinkxx/testing/manual_clock.hpp>

#include <tinkxx/error.hpp>

#include "base/common/entropy.hpp"
#include "base/loop/loop_rule.hpp"
#include "base/loop/timer_queue.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace tinkxx::testing {

namespace {

// Not the epoch: `TimePoint{}` stands for "never" in places such as `Timing`.
constexpr TimePoint first_moment{std::chrono::hours{1}};

TimePoint later(TimePoint from, std::chrono::nanoseconds step) noexcept {
    return step > TimePoint::max() - from ? TimePoint::max() : from + step;
}

}  // namespace

struct ManualClock::Impl {
    using Key = std::pair<TimePoint, std::uint64_t>;

    explicit Impl(ManualClockOptions start)
        : options{start}, wall_offset{start.wall - wall_at(first_moment)}, entropy{start.seed} {}

    static WallTime wall_at(TimePoint when) {
        return WallTime{std::chrono::duration_cast<WallTime::duration>(when.time_since_epoch())};
    }

    /// Marks the calling thread as the loop for as long as it runs things.
    class Running {
    public:
        explicit Running(Impl& impl) : impl_{&impl} {
            if (impl.loop == std::this_thread::get_id()) {
                throw UsageError{{.kind = ErrorKind::usage,
                                  .message = "ManualClock: time cannot be moved from within a task "
                                             "or timer that it runs"}};
            }
            impl.loop = std::this_thread::get_id();
        }
        ~Running() { impl_->loop = std::thread::id{}; }
        Running(Running const&) = delete;
        Running& operator=(Running const&) = delete;

    private:
        Impl* impl_;
    };

    // One round: the tasks that wait now, then the timers that are due now. What they add waits
    // for the next round.
    bool round() {
        bool ran = false;
        for (auto left = count_tasks(); left > 0; --left) {
            Task task;
            {
                std::lock_guard const lock{mutex};
                task = std::move(tasks.front());
                tasks.pop_front();
            }
            ran = true;
            task();
        }
        auto const newest = order;
        while (!timers.empty()) {
            // Equal times are in arming order, so the first that is due and old enough is next.
            auto found = timers.begin();
            while (found != timers.end() && found->first.first <= now &&
                   found->first.second > newest) {
                ++found;
            }
            if (found == timers.end() || found->first.first > now) break;
            auto& timer = *found->second;
            TimerAccess::owner(timer) = nullptr;
            timers.erase(found);
            ran = true;
            timer.on_time();
        }
        return ran;
    }

    std::size_t count_tasks() const {
        std::lock_guard const lock{mutex};
        return tasks.size();
    }

    void advance_to(TimePoint when) {
        Running const running{*this};
        for (;;) {
            while (round()) {
            }
            if (timers.empty() || timers.begin()->first.first > when) break;
            now = timers.begin()->first.first;
        }
        now = std::max(now, when);
    }

    ManualClockOptions options;
    TimePoint now{first_moment};
    WallTime::duration wall_offset;
    std::map<Key, Timer*> timers{};
    std::uint64_t order{0};
    base::Entropy entropy;
    std::atomic<std::thread::id> loop{};

    mutable std::mutex mutex{};  // guards tasks, the one thing that other threads touch
    std::condition_variable posted{};
    std::deque<Task> tasks{};
};

ManualClock::ManualClock() : ManualClock{ManualClockOptions{}} {}
ManualClock::ManualClock(ManualClockOptions options) : impl_{std::make_unique<Impl>(options)} {}

ManualClock::~ManualClock() {
    // Destroying a task may post another.
    for (;;) {
        std::deque<Task> unrun;
        {
            std::lock_guard const lock{impl_->mutex};
            unrun.swap(impl_->tasks);
        }
        if (unrun.empty()) break;
    }
    for (auto& [key, timer] : impl_->timers) TimerAccess::owner(*timer) = nullptr;
}

void ManualClock::advance(std::chrono::nanoseconds step) {
    impl_->advance_to(later(impl_->now, step));
}

void ManualClock::advance_to(TimePoint when) { impl_->advance_to(when); }

bool ManualClock::run_ready() {
    Impl::Running const running{*impl_};
    bool ran = false;
    while (impl_->round()) ran = true;
    return ran;
}

void ManualClock::set_wall(WallTime wall) noexcept {
    impl_->wall_offset = wall - Impl::wall_at(impl_->now);
}
void ManualClock::set_auto_advance(bool on) noexcept { impl_->options.auto_advance = on; }

std::size_t ManualClock::pending_timers() const noexcept { return impl_->timers.size(); }
std::size_t ManualClock::pending_tasks() const { return impl_->count_tasks(); }

std::optional<TimePoint> ManualClock::next_due() const noexcept {
    if (impl_->timers.empty()) return std::nullopt;
    return impl_->timers.begin()->first.first;
}

TimePoint ManualClock::now() const noexcept { return impl_->now; }
WallTime ManualClock::wall() const noexcept {
    return Impl::wall_at(impl_->now) + impl_->wall_offset;
}

std::uint64_t ManualClock::entropy(std::string_view stream) {
    TINKXX_ASSERT_LOOP(*this);
    return impl_->entropy.draw(stream);
}

void ManualClock::arm(Timer& timer, TimePoint when, Precision /*precision*/) noexcept {
    TINKXX_ASSERT_LOOP(*this);
    disarm(timer);
    auto& links = TimerAccess::links(timer);
    links.when = when;
    links.order = ++impl_->order & TimerAccess::most_order;
    TimerAccess::owner(timer) = this;
    impl_->timers.emplace(Impl::Key{when, std::uint64_t{links.order}}, &timer);
}

void ManualClock::disarm(Timer& timer) noexcept {
    if (TimerAccess::owner(timer) != this) return;
    TINKXX_ASSERT_LOOP(*this);
    auto const& links = TimerAccess::links(timer);
    impl_->timers.erase({links.when, std::uint64_t{links.order}});
    TimerAccess::owner(timer) = nullptr;
}

void ManualClock::post(Task task) {
    {
        std::lock_guard const lock{impl_->mutex};
        impl_->tasks.push_back(std::move(task));
    }
    impl_->posted.notify_one();
}

bool ManualClock::on_loop() const noexcept { return impl_->loop == std::this_thread::get_id(); }

bool ManualClock::turned_elsewhere() const noexcept {
    auto const loop = impl_->loop.load();
    return loop != std::thread::id{} && loop != std::this_thread::get_id();
}

bool ManualClock::turn(std::chrono::nanoseconds limit) {
    Impl::Running const running{*impl_};
    if (impl_->round()) return true;
    if (limit <= std::chrono::nanoseconds{0}) return false;
    auto const end = later(impl_->now, limit);
    if (impl_->options.auto_advance) {
        auto const next = next_due();
        if (next && *next <= end) {
            impl_->now = *next;
            return impl_->round();
        }
        if (end != TimePoint::max()) {
            impl_->now = end;
            return false;
        }
    }
    std::unique_lock lock{impl_->mutex};
    auto const any = [this] { return !impl_->tasks.empty(); };
    if (end == TimePoint::max()) {
        impl_->posted.wait(lock, any);
    } else if (!impl_->posted.wait_for(lock, limit, any)) {
        return false;
    }
    lock.unlock();
    return impl_->round();
}

}  // namespace tinkxx::testing
