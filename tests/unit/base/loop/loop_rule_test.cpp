#include "base/loop/loop_rule.hpp"

#include "support/test_timer.hpp"

#include <tinkxx/runtime.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <memory>
#include <thread>

namespace tinkxx::base {
namespace {

using namespace std::chrono_literals;
using support::TestTimer;

/// Keeps a loop inside a task for as long as it lives.
class HeldLoop {
public:
    explicit HeldLoop(Scheduler& scheduler) {
        scheduler.post([this] {
            inside_.count_down();
            release_.wait();
        });
    }
    ~HeldLoop() { release_.count_down(); }
    HeldLoop(HeldLoop const&) = delete;
    HeldLoop& operator=(HeldLoop const&) = delete;

    void wait() { inside_.wait(); }

private:
    std::latch inside_{1};
    std::latch release_{1};
};

class LoopRuleDeathTest : public ::testing::Test {
protected:
    void SetUp() override {
        if (!loop_rule_asserted) GTEST_SKIP() << "this build does not assert the rule";
        // A child that is only forked would have the loop of its parent, and no thread that turns
        // it.
        GTEST_FLAG_SET(death_test_style, "threadsafe");
    }
};

void arm_while_the_io_thread_is_inside() {
    Runtime const runtime{{.log = silent_log()}};
    auto& scheduler = runtime.scheduler();
    HeldLoop held{scheduler};
    held.wait();
    TestTimer alarm;
    scheduler.arm(alarm, TimePoint{}, Precision::exact);
}

TEST_F(LoopRuleDeathTest, AMemberThatAnotherThreadEntersEndsTheProcess) {
    EXPECT_DEATH(arm_while_the_io_thread_is_inside(),
                 "EventLoop::arm.*is for the loop thread only");
}

void arm_while_another_thread_polls() {
    Runtime runtime{{.threads = 0, .log = silent_log()}};
    auto& scheduler = runtime.scheduler();
    std::jthread other;
    HeldLoop held{scheduler};
    other = std::jthread{[&] { runtime.poll(1h); }};
    held.wait();
    TestTimer alarm;
    scheduler.arm(alarm, TimePoint{}, Precision::exact);
}

TEST_F(LoopRuleDeathTest, WhoPollsIsTheLoopThreadOfARuntimeWithoutThreads) {
    EXPECT_DEATH(arm_while_another_thread_polls(), "EventLoop::arm.*is for the loop thread only");
}

void arm_while_another_thread_advances() {
    testing::ManualClock clock;
    std::jthread other;
    HeldLoop held{clock};
    other = std::jthread{[&] { clock.advance(1s); }};
    held.wait();
    TestTimer alarm;
    clock.arm(alarm, TimePoint{}, Precision::exact);
}

TEST_F(LoopRuleDeathTest, WhoAdvancesAManualClockIsItsLoopThread) {
    EXPECT_DEATH(arm_while_another_thread_advances(),
                 "ManualClock::arm.*is for the loop thread only");
}

/// Arms a timer that is due, and sees it go off.
void use(Scheduler& scheduler, TestTimer& alarm) {
    assert_loop(scheduler);
    scheduler.arm(alarm, scheduler.now(), Precision::exact);
    scheduler.disarm(alarm);
}

TEST(LoopRule, WithoutThreadsAnybodyMayEnterWhileNobodyPolls) {
    Runtime runtime{{.threads = 0, .log = silent_log()}};
    auto& scheduler = runtime.scheduler();
    TestTimer alarm;
    use(scheduler, alarm);
    bool inside = false;
    scheduler.post([&] {
        use(scheduler, alarm);
        inside = true;
    });
    std::thread{[&] { runtime.poll(0ns); }}.join();
    EXPECT_TRUE(inside);
    std::thread{[&] { use(scheduler, alarm); }}.join();
    use(scheduler, alarm);
}

TEST(LoopRule, AManualClockBelongsToNobodyBetweenItsAdvances) {
    testing::ManualClock clock;
    TestTimer alarm;
    use(clock, alarm);
    clock.post([&] { use(clock, alarm); });
    std::thread{[&] { clock.advance(1s); }}.join();
    use(clock, alarm);
    EXPECT_EQ(clock.pending_tasks(), 0U);
}

TEST(LoopRule, TheLoopThreadMayEnterInsideItsTurn) {
    Runtime const runtime{{.log = silent_log()}};
    auto& scheduler = runtime.scheduler();
    TestTimer alarm;
    std::latch done{1};
    scheduler.post([&] {
        use(scheduler, alarm);
        done.count_down();
    });
    done.wait();
}

}  // namespace
}  // namespace tinkxx::base
