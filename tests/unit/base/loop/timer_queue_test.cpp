#include "base/loop/timer_queue.hpp"

#include "support/test_timer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace tinkxx::base {
namespace {

using namespace std::chrono_literals;
using support::TestTimer;

/// A clock that a test moves by hand, with nothing but timers.
class HandClock final : public Scheduler {
public:
    TimePoint now() const noexcept override { return now_; }
    WallTime wall() const noexcept override { return {}; }
    std::uint64_t entropy(std::string_view) override { return 0; }
    void arm(Timer& timer, TimePoint when, Precision precision) noexcept override {
        timers.arm(timer, when, precision);
    }
    void disarm(Timer& timer) noexcept override { timers.disarm(timer); }
    void post(Task) override {}
    bool on_loop() const noexcept override { return true; }
    bool turn(std::chrono::nanoseconds) override { return timers.fire(now_); }

    bool advance(std::chrono::nanoseconds by) {
        now_ += by;
        return timers.fire(now_);
    }

private:
    TimePoint now_{1000h};

public:
    TimerQueue timers{*this, now_};
};

TEST(TimerQueue, FiresAnExactTimerAtItsTimeAndNotBefore) {  // R-CONV-01
    HandClock clock;
    TestTimer alarm;
    clock.arm(alarm, clock.now() + 10ms, Precision::exact);

    EXPECT_FALSE(clock.advance(10ms - 1ns));
    EXPECT_EQ(alarm.fired, 0);
    EXPECT_TRUE(clock.advance(1ns));
    EXPECT_EQ(alarm.fired, 1);
    EXPECT_FALSE(alarm.armed());
    EXPECT_FALSE(clock.advance(1h));
}

TEST(TimerQueue, FiresACoarseTimerWithinOneTick) {
    HandClock clock;
    clock.advance(5ms);
    TestTimer alarm;
    clock.arm(alarm, clock.now() + 100ms, Precision::coarse);

    EXPECT_FALSE(clock.advance(100ms - 1ns));
    EXPECT_TRUE(clock.advance(TimerQueue::tick));
    EXPECT_EQ(alarm.fired, 1);
}

TEST(TimerQueue, FiresEqualTimesInArmingOrder) {
    for (auto const precision : {Precision::exact, Precision::coarse}) {
        HandClock clock;
        std::vector<int> order;
        std::vector<std::unique_ptr<TestTimer>> alarms;
        for (int i = 0; i < 100; ++i) {
            alarms.push_back(std::make_unique<TestTimer>([&order, i] { order.push_back(i); }));
        }
        auto const when = clock.now() + 2min;
        for (int i = 0; i < 50; ++i)
            clock.arm(*alarms[static_cast<std::size_t>(i)], when, precision);
        clock.advance(119s);  // the rest is armed when the first ones are close already
        for (int i = 50; i < 100; ++i) {
            clock.arm(*alarms[static_cast<std::size_t>(i)], when, precision);
        }
        clock.advance(2s);

        ASSERT_EQ(order.size(), 100U);
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    }
}

TEST(TimerQueue, MovesATimerThatIsArmedAgain) {
    HandClock clock;
    TestTimer alarm;
    clock.arm(alarm, clock.now() + 1s, Precision::exact);
    clock.arm(alarm, clock.now() + 1h, Precision::coarse);
    clock.arm(alarm, clock.now() + 2s, Precision::exact);

    EXPECT_FALSE(clock.advance(1999ms));
    EXPECT_TRUE(clock.advance(1ms));
    EXPECT_FALSE(clock.advance(2h));
}

TEST(TimerQueue, ATimerMayArmItselfForNowWithoutStarvingTheTurn) {
    HandClock clock;
    for (auto const precision : {Precision::exact, Precision::coarse}) {
        TestTimer* self = nullptr;
        TestTimer alarm{[&] { clock.arm(*self, TimePoint::min(), precision); }};
        self = &alarm;
        clock.arm(alarm, clock.now(), precision);

        EXPECT_TRUE(clock.advance(16ms));
        EXPECT_EQ(alarm.fired, 1);
        ASSERT_TRUE(clock.timers.next_due());
        EXPECT_LE(*clock.timers.next_due(), clock.now());
        EXPECT_TRUE(clock.advance(0ms));
        EXPECT_EQ(alarm.fired, 2);
    }
}

TEST(TimerQueue, ATimerMayDestroyItselfAndOthersThatAreDue) {
    HandClock clock;
    for (auto const precision : {Precision::exact, Precision::coarse}) {
        auto first = std::make_unique<TestTimer>();
        auto second = std::make_unique<TestTimer>();
        auto last = std::make_unique<TestTimer>();
        TestTimer* watched = last.get();
        auto killer = std::make_unique<TestTimer>([&] {
            second.reset();
            first.reset();
            clock.disarm(*watched);
        });
        first = std::make_unique<TestTimer>([&] { killer->on_time(); });
        for (auto* alarm : {first.get(), second.get(), last.get()}) {
            clock.arm(*alarm, clock.now() + 1s, precision);
        }

        EXPECT_TRUE(clock.advance(2s));
        EXPECT_EQ(first, nullptr);
        EXPECT_EQ(last->fired, 0);
        EXPECT_FALSE(clock.timers.next_due());
    }
}

TEST(TimerQueue, LosesNoTimerWhenOneThrows) {
    HandClock clock;
    TestTimer thrower{[] { throw 1; }};
    TestTimer after;
    clock.arm(thrower, clock.now() + 1s, Precision::exact);
    clock.arm(after, clock.now() + 1s, Precision::exact);

    EXPECT_THROW(clock.advance(1s), int);
    EXPECT_LE(*clock.timers.next_due(), clock.now());
    EXPECT_TRUE(clock.advance(0s));
    EXPECT_EQ(after.fired, 1);
}

TEST(TimerQueue, OrphansItsTimersWhenItEnds) {
    TestTimer exact;
    TestTimer coarse;
    TestTimer far;
    {
        HandClock clock;
        clock.arm(exact, clock.now() + 1s, Precision::exact);
        clock.arm(coarse, clock.now() + 1s, Precision::coarse);
        clock.arm(far, clock.now() + 10000h, Precision::coarse);
    }
    EXPECT_FALSE(exact.armed() || coarse.armed() || far.armed());
}

TEST(TimerQueue, TakesATimerOverFromAnotherScheduler) {
    HandClock one;
    HandClock two;
    TestTimer alarm;
    one.arm(alarm, one.now() + 1s, Precision::exact);
    two.arm(alarm, two.now() + 1s, Precision::exact);

    EXPECT_FALSE(one.advance(1s));
    one.disarm(alarm);  // not its timer any more
    EXPECT_TRUE(two.advance(1s));
}

TEST(TimerQueue, NeverWakesForACascade) {
    HandClock clock;
    TestTimer alarm;
    for (auto const delay : {20ms, 3000ms, 90000ms}) {
        clock.arm(alarm, clock.now() + delay, Precision::coarse);
        auto const next = clock.timers.next_due();
        ASSERT_TRUE(next);
        EXPECT_GE(*next, clock.now() + delay);
        EXPECT_LT(*next, clock.now() + delay + TimerQueue::tick);
    }
}

TEST(TimerQueue, WaitsForTheEndOfTime) {
    HandClock clock;
    TestTimer exact;
    TestTimer coarse;
    clock.arm(exact, TimePoint::max(), Precision::exact);
    clock.arm(coarse, TimePoint::max(), Precision::coarse);

    EXPECT_FALSE(clock.advance(10000h));
    ASSERT_TRUE(clock.timers.next_due());
    EXPECT_GT(*clock.timers.next_due(), clock.now() + 100000h);
    clock.disarm(exact);
    clock.disarm(coarse);
    EXPECT_TRUE(clock.timers.empty());
}

// What a timer queue must do, written down as plainly as possible.
class Model {
public:
    struct Armed {
        std::size_t id{};
        TimePoint when{};
        Precision precision{};
        std::uint64_t order{};
    };

    void arm(std::size_t id, TimePoint when, Precision precision) {
        disarm(id);
        armed_.push_back({id, when, precision, order_++});
    }
    void disarm(std::size_t id) {
        std::erase_if(armed_, [id](Armed const& a) { return a.id == id; });
    }
    [[nodiscard]] Armed const* find(std::size_t id) const {
        auto const it =
            std::find_if(armed_.begin(), armed_.end(), [id](Armed const& a) { return a.id == id; });
        return it == armed_.end() ? nullptr : &*it;
    }
    [[nodiscard]] std::vector<Armed> const& all() const { return armed_; }

private:
    std::vector<Armed> armed_;
    std::uint64_t order_{0};
};

struct Fired {
    std::size_t id;
    TimePoint when;
    Precision precision;
    std::uint64_t order;
};

// Arms, disarms and advances at random, over delays from nothing to beyond the wheel; from within
// timers too.
void behaves_like_the_model() {
    constexpr std::size_t count = 24;
    HandClock clock;
    Model model;
    std::vector<std::unique_ptr<TestTimer>> alarms(count);
    std::vector<Fired> fired;
    std::vector<std::size_t> victims(count);

    auto const draw_delay = [] {
        auto const magnitude = *rc::gen::inRange(0, 50);
        auto const ns = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << magnitude);
        return std::chrono::nanoseconds{ns - (magnitude < 20 ? 1000 : 0)};
    };
    for (std::size_t i = 0; i < count; ++i) {
        victims[i] = *rc::gen::inRange<std::size_t>(0, 4 * count);
        alarms[i] = std::make_unique<TestTimer>([&, i] {
            auto const* const armed = model.find(i);
            RC_ASSERT(armed != nullptr);
            fired.push_back({i, armed->when, armed->precision, armed->order});
            model.disarm(i);
            auto const victim = victims[i];
            if (victim < count) {  // some timers disarm another, some arm one
                model.disarm(victim);
                clock.disarm(*alarms[victim]);
            } else if (victim < 2 * count) {
                auto const when = clock.now() + 50ms;
                model.arm(victim - count, when, Precision::coarse);
                clock.arm(*alarms[victim - count], when, Precision::coarse);
            }
        });
    }

    auto const steps = *rc::gen::inRange(1, 200);
    for (int step = 0; step < steps; ++step) {
        auto const id = *rc::gen::inRange<std::size_t>(0, count);
        switch (*rc::gen::inRange(0, 6)) {
            case 0:
                model.disarm(id);
                clock.disarm(*alarms[id]);
                break;
            case 1:
            case 2: {
                auto const before = clock.now();
                fired.clear();
                auto const order_before = model.all();
                // Half of the steps go exactly to where the queue says that work is.
                auto by = draw_delay();
                if (auto const next = clock.timers.next_due();
                    next && *rc::gen::arbitrary<bool>()) {
                    if (*next < before + 20000h) by = *next - before;
                }
                by = std::max(by, std::chrono::nanoseconds::zero());
                auto const next = clock.timers.next_due();
                bool const any = clock.advance(by);
                RC_ASSERT(any == !fired.empty());
                if (any) RC_ASSERT(next && *next <= clock.now());
                for (auto const& f : fired) RC_ASSERT(f.when <= clock.now());
                // Of equal precision: by time (exact) and by arming order (equal times).
                for (std::size_t i = 0; i < fired.size(); ++i) {
                    for (std::size_t j = i + 1; j < fired.size(); ++j) {
                        auto const& a = fired[i];
                        auto const& b = fired[j];
                        if (a.precision != b.precision) continue;
                        if (a.precision == Precision::exact) RC_ASSERT(a.when <= b.when);
                        if (a.when == b.when) RC_ASSERT(a.order < b.order);
                    }
                }
                // What stays was not due, or was armed by a timer of this very turn.
                for (auto const& armed : model.all()) {
                    auto const slack = armed.precision == Precision::exact ? 0ns : TimerQueue::tick;
                    bool const old =
                        std::any_of(order_before.begin(), order_before.end(),
                                    [&](Model::Armed const& a) { return a.order == armed.order; });
                    if (old && armed.when < TimePoint::max() - slack) {
                        RC_ASSERT(armed.when + slack > clock.now());
                    }
                }
                break;
            }
            default: {
                auto const when = clock.now() + draw_delay();
                auto const precision =
                    *rc::gen::arbitrary<bool>() ? Precision::exact : Precision::coarse;
                model.arm(id, when, precision);
                clock.arm(*alarms[id], when, precision);
            }
        }
        auto const next = clock.timers.next_due();
        RC_ASSERT(next.has_value() == !model.all().empty());
        for (auto const& armed : model.all()) {
            RC_ASSERT(alarms[armed.id]->armed());
            // It is not overslept.
            auto const slack = armed.precision == Precision::exact ? 0ns : TimerQueue::tick;
            RC_ASSERT(*next < armed.when + slack + 1ns);
        }
    }
}

TEST(TimerQueue, BehavesLikeANaiveModelForAnySequence) {  // R-TEST-03
    EXPECT_TRUE(rc::check("timer queue against its model", behaves_like_the_model));
}

}  // namespace
}  // namespace tinkxx::base
