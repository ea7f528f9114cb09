#include <tinkxx/testing/manual_clock.hpp>

#include <tinkxx/error.hpp>
#include <tinkxx/net_transport.hpp>
#include <tinkxx/runtime.hpp>

#include "support/test_timer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::testing {
namespace {

using namespace std::chrono_literals;
using support::TestTimer;

TEST(ManualClock, StandsStillUntilItIsAdvanced) {  // R-CONV-02, R-TEST-02
    ManualClock clock;
    auto const start = clock.now();
    clock.run_ready();
    EXPECT_EQ(clock.now(), start);
    clock.advance(7s);
    EXPECT_EQ(clock.now(), start + 7s);
}

TEST(ManualClock, CallsATimerAtItsTimeAndNotBefore) {  // R-TEST-02
    ManualClock clock;
    int rings = 0;
    TestTimer alarm{[&] { ++rings; }};
    clock.arm(alarm, clock.now() + 7s, Precision::coarse);
    clock.advance(6999ms);
    EXPECT_EQ(rings, 0);
    clock.advance(1ms);
    EXPECT_EQ(rings, 1);
    clock.advance(1h);
    EXPECT_EQ(rings, 1);
}

TEST(ManualClock, RunsTimersInOrderEachAtItsOwnTime) {  // R-TEST-02
    ManualClock clock;
    auto const start = clock.now();
    std::vector<std::pair<std::string, std::chrono::nanoseconds>> seen;
    auto const note = [&](char const* name) { seen.emplace_back(name, clock.now() - start); };
    TestTimer late{[&] { note("late"); }};
    TestTimer first{[&] { note("first"); }};
    TestTimer second{[&] { note("second"); }};
    clock.arm(late, start + 2s, Precision::exact);
    clock.arm(first, start + 1s, Precision::exact);
    clock.arm(second, start + 1s, Precision::exact);
    clock.advance(3s);
    EXPECT_EQ(seen, (decltype(seen){{"first", 1s}, {"second", 1s}, {"late", 2s}}));
}

TEST(ManualClock, RunsPostedWorkBeforeTheNextTimer) {  // R-TEST-02
    ManualClock clock;
    std::vector<std::string> seen;
    TestTimer one{[&] {
        seen.emplace_back("one");
        clock.post([&] { seen.emplace_back("posted"); });
    }};
    TestTimer two{[&] { seen.emplace_back("two"); }};
    clock.arm(one, clock.now() + 1s, Precision::exact);
    clock.arm(two, clock.now() + 1001ms, Precision::exact);
    clock.advance(2s);
    EXPECT_EQ(seen, (std::vector<std::string>{"one", "posted", "two"}));
}

TEST(ManualClock, RunsATimerThatIsArmedOnTheWay) {  // R-TEST-02
    ManualClock clock;
    auto const start = clock.now();
    std::vector<std::chrono::nanoseconds> rings;
    TestTimer alarm{[&] {
        rings.push_back(clock.now() - start);
        if (rings.size() < 3) clock.arm(alarm, clock.now() + 1s, Precision::exact);
    }};
    clock.arm(alarm, start + 1s, Precision::exact);
    clock.advance(10s);
    EXPECT_EQ(rings, (std::vector<std::chrono::nanoseconds>{1s, 2s, 3s}));
    EXPECT_EQ(clock.now(), start + 10s);
}

TEST(ManualClock, ForgetsTimersThatAreDisarmedMovedOrDestroyed) {  // R-TEST-02
    ManualClock clock;
    int rings = 0;
    TestTimer disarmed{[&] { ++rings; }};
    TestTimer moved{[&] { rings += 10; }};
    {
        TestTimer destroyed{[&] { rings += 100; }};
        clock.arm(destroyed, clock.now() + 1s, Precision::exact);
        clock.arm(disarmed, clock.now() + 1s, Precision::exact);
        clock.arm(moved, clock.now() + 1s, Precision::exact);
        clock.arm(moved, clock.now() + 3s, Precision::exact);
        EXPECT_EQ(clock.pending_timers(), 3U);
    }
    clock.disarm(disarmed);
    EXPECT_FALSE(disarmed.armed());
    EXPECT_EQ(clock.pending_timers(), 1U);
    EXPECT_EQ(clock.next_due(), clock.now() + 3s);
    clock.advance(2s);
    EXPECT_EQ(rings, 0);
    clock.advance(1s);
    EXPECT_EQ(rings, 10);
}

TEST(ManualClock, OutlivedTimersAreUnarmed) {
    TestTimer alarm{[] {}};
    {
        ManualClock clock;
        clock.arm(alarm, clock.now() + 1s, Precision::exact);
        EXPECT_TRUE(alarm.armed());
    }
    EXPECT_FALSE(alarm.armed());
}

TEST(ManualClock, NeverRunsPostedWorkInsidePost) {
    ManualClock clock;
    std::vector<int> seen;
    clock.post([&] {
        clock.post([&] { seen.push_back(2); });
        seen.push_back(1);
    });
    EXPECT_TRUE(seen.empty());
    EXPECT_EQ(clock.pending_tasks(), 1U);
    EXPECT_TRUE(clock.run_ready());
    EXPECT_EQ(seen, (std::vector<int>{1, 2}));
    EXPECT_FALSE(clock.run_ready());
}

TEST(ManualClock, TurnRunsOneRoundOnly) {
    ManualClock clock;
    std::vector<int> seen;
    clock.post([&] {
        seen.push_back(1);
        clock.post([&] { seen.push_back(2); });
    });
    EXPECT_TRUE(clock.turn(0s));
    EXPECT_EQ(seen, (std::vector<int>{1}));
    EXPECT_TRUE(clock.turn(0s));
    EXPECT_EQ(seen, (std::vector<int>{1, 2}));
    EXPECT_FALSE(clock.turn(0s));
}

TEST(ManualClock, TakesWorkFromOtherThreads) {
    ManualClock clock;
    int runs = 0;
    std::thread poster{[&] { clock.post([&] { ++runs; }); }};
    while (runs == 0) clock.turn(1h);
    poster.join();
    EXPECT_EQ(runs, 1);
}

TEST(ManualClock, JumpsToTheNextTimerWhenAskedTo) {  // R-CONV-02
    ManualClock clock{{.auto_advance = true}};
    auto const start = clock.now();
    int rings = 0;
    TestTimer alarm{[&] { ++rings; }};
    clock.arm(alarm, start + 2h, Precision::exact);
    EXPECT_FALSE(clock.turn(0s));
    EXPECT_EQ(clock.now(), start);
    EXPECT_FALSE(clock.turn(30min)) << "the limit is virtual time";
    EXPECT_EQ(clock.now(), start + 30min);
    EXPECT_TRUE(clock.turn(std::chrono::nanoseconds::max()));
    EXPECT_EQ(clock.now(), start + 2h);
    EXPECT_EQ(rings, 1);
}

TEST(ManualClock, WallTimeMovesAlongAndCanBeSetApart) {  // R-CONV-01
    ManualClock clock{{.wall = WallTime{1000s}}};
    EXPECT_EQ(clock.wall(), WallTime{1000s});
    clock.advance(5s);
    EXPECT_EQ(clock.wall(), WallTime{1005s});
    auto const before = clock.now();
    clock.set_wall(WallTime{5000s});
    EXPECT_EQ(clock.now(), before) << "the steady clock does not see the jump";
    clock.advance(1s);
    EXPECT_EQ(clock.wall(), WallTime{5001s});
}

TEST(ManualClock, ChanceDependsOnSeedAndStreamAlone) {  // R-CONV-02
    ManualClock one{{.seed = 1}};
    ManualClock same{{.seed = 1}};
    ManualClock other{{.seed = 2}};
    auto const first = one.entropy("a");
    (void)same.entropy("b");
    EXPECT_EQ(same.entropy("a"), first) << "another stream's draw does not shift this one";
    EXPECT_NE(one.entropy("a"), first);
    EXPECT_NE(other.entropy("a"), first);
    EXPECT_NE(one.entropy("b"), first);
}

TEST(ManualClock, IsTheLoopOnlyWhileItRuns) {
    ManualClock clock;
    EXPECT_FALSE(clock.on_loop());
    bool inside = false;
    bool elsewhere = true;
    clock.post([&] {
        inside = clock.on_loop();
        std::thread{[&] { elsewhere = clock.on_loop(); }}.join();
    });
    clock.run_ready();
    EXPECT_TRUE(inside);
    EXPECT_FALSE(elsewhere);
}

TEST(ManualClock, RefusesToBeMovedFromWithin) {
    ManualClock clock;
    bool refused = false;
    clock.post([&] {
        try {
            clock.advance(1s);
        } catch (UsageError const&) {
            refused = true;
        }
    });
    clock.run_ready();
    EXPECT_TRUE(refused);
}

TEST(ManualClock, GivesARuntimeNoSockets) {
    Runtime runtime{RuntimeOptions{.threads = 0, .scheduler = std::make_shared<ManualClock>()}};
    try {
        (void)net_transport(runtime);
        FAIL() << "accepted";
    } catch (UsageError const& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("RuntimeOptions::scheduler"));
    }
}

}  // namespace
}  // namespace tinkxx::testing
