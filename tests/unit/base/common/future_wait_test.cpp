// Where waiting is refused, and how it works without threads.
#include <tinkxx/future.hpp>

#include <tinkxx/testing/manual_clock.hpp>

#include "support/test_timer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::TestTimer;

/// The words of the refusal, or empty if waiting was not refused.
template <class Wait>
std::string refusal(Wait wait) {
    try {
        wait();
        return "";
    } catch (UsageError const& error) {
        return error.what();
    }
}

TEST(Waiting, IsRefusedInsideACallbackAndOnTheLoop) {  // R-CONV-03
    Runtime runtime;
    Promise<int> never{runtime};
    auto pending = never.get_future();
    std::string get;
    std::string wait_for;
    Promise<void> in_callback{runtime};
    auto done = in_callback.get_future().then([&] {
        get = refusal([&] { (void)pending.get(); });
        wait_for = refusal([&] { (void)pending.wait_for(1h); });
    });
    in_callback.set_value();
    done.get();
    EXPECT_NE(get.find("then()"), std::string::npos) << get;
    EXPECT_NE(wait_for.find("co_await"), std::string::npos) << wait_for;
    EXPECT_TRUE(pending.valid());

    Promise<std::string> on_loop{runtime};
    auto answer = on_loop.get_future();
    runtime.scheduler().post([&] { on_loop.set_value(refusal([&] { pending.wait(); })); });
    EXPECT_NE(answer.get(), "");
}

TEST(Waiting, ForAReadyFutureIsFineAnywhere) {  // R-CONV-03
    Runtime runtime;
    Promise<int> promise{runtime};
    promise.set_value(1);
    auto ready = promise.get_future();
    Promise<void> start{runtime};
    auto done = start.get_future().then([&] { return ready.get(); });
    start.set_value();
    EXPECT_EQ(done.get(), 1);
}

TEST(Waiting, ForAnotherRuntimesFutureIsAllowed) {
    Runtime one;
    Runtime two;
    Promise<int> promise{two};
    auto pending = promise.get_future();
    Promise<void> start{one};
    auto done = start.get_future().then([&] { return pending.get(); });
    start.set_value();
    promise.set_value(4);
    EXPECT_EQ(done.get(), 4);
}

TEST(Waiting, PumpsARuntimeWithoutThreads) {
    Runtime runtime{{.threads = 0}};
    Promise<int> promise{runtime};
    auto next = promise.get_future().then([](int x) { return x + 1; });
    runtime.scheduler().post([&] { promise.set_value(1); });
    EXPECT_EQ(next.get(), 2);
}

TEST(Waiting, WithoutThreadsStillExpires) {
    Runtime runtime{{.threads = 0}};
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    EXPECT_FALSE(future.wait_for(2ms));
    EXPECT_THROW((void)future.get(1ms), TimeoutError);
    EXPECT_TRUE(future.valid());
}

TEST(Waiting, WithoutThreadsEndsWhenAnotherThreadCompletesOrCancels) {
    Runtime runtime{{.threads = 0}};
    Promise<int> completed{runtime};
    Promise<int> cancelled{runtime};
    auto first = completed.get_future();
    auto second = cancelled.get_future().share();
    std::thread other{[&completed] { completed.set_value(5); }};
    EXPECT_EQ(first.get(), 5);
    other.join();
    std::thread canceller{[second] { second.cancel(); }};
    EXPECT_THROW((void)second.get(), CancelledError);
    canceller.join();
}

TEST(Waiting, WithoutThreadsWorksFromSeveralThreadsAtOnce) {
    Runtime runtime{{.threads = 0}};
    constexpr int count = 8;
    std::vector<Promise<int>> promises;
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) promises.emplace_back(runtime);
    for (auto& promise : promises) {
        threads.emplace_back(
            [future = promise.get_future()]() mutable { EXPECT_EQ(future.get(), 1); });
    }
    for (auto& promise : promises) {
        runtime.scheduler().post([&promise] { promise.set_value(1); });
    }
    for (auto& thread : threads) thread.join();
}

TEST(Waiting, IsRefusedInsideACallbackWithoutThreads) {  // R-CONV-03
    Runtime runtime{{.threads = 0}};
    Promise<int> never{runtime};
    auto pending = never.get_future();
    Promise<void> start{runtime};
    auto answer = start.get_future().then([&] { return refusal([&] { (void)pending.get(); }); });
    start.set_value();
    EXPECT_NE(answer.get(), "");
}

TEST(Waiting, SaysSoWhenOnlyTheClockCouldHelp) {
    auto const clock = std::make_shared<testing::ManualClock>();
    Runtime runtime{{.threads = 0, .scheduler = clock}};
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    TestTimer alarm{[&] { promise.set_value(1); }};
    clock->arm(alarm, clock->now() + 1h, Precision::exact);

    EXPECT_NE(refusal([&] { (void)future.get(); }).find("advance the clock"), std::string::npos);
    EXPECT_FALSE(future.wait_for(1ms));
    EXPECT_TRUE(future.valid());
    clock->advance(1h);
    EXPECT_EQ(future.get(), 1);
}

TEST(Waiting, LetsAClockThatAdvancesByItselfRunForHours) {
    auto const clock =
        std::make_shared<testing::ManualClock>(testing::ManualClockOptions{.auto_advance = true});
    Runtime runtime{{.threads = 0, .scheduler = clock}};
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    TestTimer alarm{[&] { promise.set_value(1); }};
    auto const when = clock->now() + 30h;
    clock->arm(alarm, when, Precision::exact);

    auto const before = clock->now();
    EXPECT_THROW((void)future.get(1min), TimeoutError);  // limits count in its own time
    EXPECT_EQ(clock->now(), before + 1min);
    EXPECT_EQ(future.get(), 1);
    EXPECT_EQ(clock->now(), when);
    EXPECT_EQ(clock->pending_tasks(), 0U);  // waiting leaves nothing behind
}

TEST(Waiting, FindsThatNothingWillEverHappen) {
    auto const clock =
        std::make_shared<testing::ManualClock>(testing::ManualClockOptions{.auto_advance = true});
    Runtime runtime{{.threads = 0, .scheduler = clock}};
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    EXPECT_THROW((void)future.get(), UsageError);
}

TEST(Waiting, EndsWithTheRuntime) {
    Runtime runtime{{.threads = 0}};
    auto promise = std::make_unique<Promise<int>>(runtime);
    auto next = promise->get_future().then([](int x) { return x; });
    promise->set_value(1);
    runtime.shutdown();
    EXPECT_THROW((void)next.get(), CancelledError);
}

TEST(Waiting, ASchedulerOfOnesOwnNeedsARuntimeWithoutThreads) {
    try {
        Runtime runtime{{.scheduler = std::make_shared<testing::ManualClock>()}};
        FAIL();
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "scheduler");
    }
}

}  // namespace
}  // namespace tinkxx
