#include <tinkxx/future.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;

/// Keeps callbacks until a test runs them, so that a test sees what has not run yet.
class ManualExecutor final : public Executor {
public:
    void run(Task task) override { tasks_.push_back(std::move(task)); }
    std::size_t run_all() {
        std::size_t ran = 0;
        for (; !tasks_.empty(); ++ran) {
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            task();
        }
        return ran;
    }
    [[nodiscard]] std::size_t waiting() const { return tasks_.size(); }

private:
    std::deque<Task> tasks_;
};

class FutureTest : public ::testing::Test {
protected:
    std::shared_ptr<ManualExecutor> executor{std::make_shared<ManualExecutor>()};
    Runtime runtime{{.executor = executor}};
};

Error failure(std::string message) {
    return Error{{.kind = ErrorKind::status, .message = std::move(message), .http_status = 500}};
}

TEST_F(FutureTest, GetGivesTheValueOnce) {
    Promise<std::unique_ptr<int>> promise{runtime};
    auto future = promise.get_future();
    EXPECT_FALSE(future.ready());
    EXPECT_TRUE(promise.set_value(std::make_unique<int>(7)));
    EXPECT_TRUE(future.ready());

    EXPECT_EQ(*future.get(), 7);
    EXPECT_FALSE(future.valid());
    EXPECT_THROW((void)future.get(), UsageError);
    EXPECT_THROW((void)future.ready(), UsageError);
    EXPECT_THROW((void)future.then([](std::unique_ptr<int>) {}), UsageError);
}

TEST_F(FutureTest, GetThrowsAndResultReturnsTheError) {
    Promise<int> first{runtime};
    Promise<int> second{runtime};
    first.set_error(failure("no"));
    second.set_error(failure("no"));
    EXPECT_THROW((void)first.get_future().get(), StatusError);
    auto const result = second.get_future().result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().http_status(), 500);
}

TEST_F(FutureTest, HoldsNothingAtAll) {
    Promise<void> promise{runtime};
    auto future = promise.get_future();
    promise.set_value();
    future.wait();
    future.get();

    EXPECT_TRUE(make_ready_future().result());
    EXPECT_FALSE(make_failed_future<void>(failure("no")).result());
}

TEST_F(FutureTest, BlocksUntilAnotherThreadCompletesIt) {
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    std::thread other{[&] { promise.set_value(3); }};
    EXPECT_EQ(future.get(), 3);
    other.join();
}

TEST_F(FutureTest, AnExpiredGetConsumesNothing) {  // R-FUT-20, C-60
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    EXPECT_THROW((void)future.get(1ms), TimeoutError);
    EXPECT_FALSE(future.wait_for(0ms));
    promise.set_value(3);
    EXPECT_TRUE(future.wait_for(0ms));
    EXPECT_EQ(future.get(1ms), 3);
}

TEST_F(FutureTest, TakesALimitBeyondAllClocks) {
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    std::thread other{[&] { promise.set_value(3); }};
    EXPECT_EQ(future.get(std::chrono::milliseconds::max()), 3);
    other.join();
}

TEST_F(FutureTest, CompletesOnce) {
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    EXPECT_THROW((void)promise.get_future(), UsageError);
    EXPECT_TRUE(promise.set_value(1));
    EXPECT_FALSE(promise.set_value(2));
    EXPECT_FALSE(promise.set_error(failure("late")));
    EXPECT_TRUE(promise.done());
    EXPECT_EQ(future.get(), 1);
}

TEST_F(FutureTest, ADroppedPromiseEndsItsFutureAsCancelled) {
    Future<int> future;
    {
        Promise<int> promise{runtime};
        future = promise.get_future();
    }
    auto const dropped = future.result();
    ASSERT_FALSE(dropped);
    EXPECT_EQ(dropped.error().kind(), ErrorKind::cancelled);

    Promise<int> late{runtime};
    future = late.get_future();
    runtime.shutdown();
    late = Promise<int>{runtime};
    EXPECT_STREQ(future.result().error().what(),
                 "the call was abandoned: its runtime was shut down");
}

TEST_F(FutureTest, AValueWhoseMoveThrowsIsAnError) {
    struct Bad {
        Bad() = default;
        Bad(Bad const&) { throw std::runtime_error{"copy"}; }
        Bad& operator=(Bad const&) = default;
    };
    Promise<Bad> promise{runtime};
    auto future = promise.get_future();
    Bad const bad;
    EXPECT_TRUE(promise.set_value(bad));
    ASSERT_TRUE(future.ready());
    EXPECT_THROW((void)future.get(), CallbackError);
}

TEST_F(FutureTest, ThenRunsOnTheExecutorAndNeverOnThisStack) {
    for (bool const ready_before : {true, false}) {
        Promise<int> promise{runtime};
        auto future = promise.get_future();
        if (ready_before) promise.set_value(2);
        bool ran = false;
        auto next = future.then([&](int x) {
            ran = true;
            return std::to_string(x);
        });
        EXPECT_FALSE(future.valid());
        if (!ready_before) {
            EXPECT_EQ(executor->waiting(), 0U);
            promise.set_value(2);
        }
        EXPECT_FALSE(ran);
        EXPECT_EQ(executor->run_all(), 1U);
        EXPECT_EQ(next.get(), "2");
    }
}

TEST_F(FutureTest, ThenTakesAndReturnsMoveOnlyValues) {
    Promise<std::unique_ptr<int>> promise{runtime};
    auto next = promise.get_future().then(
        [extra = std::make_unique<int>(1)](std::unique_ptr<int> x) mutable {
            *x += *extra;
            return x;
        });
    promise.set_value(std::make_unique<int>(1));
    executor->run_all();
    EXPECT_EQ(*next.get(), 2);
}

TEST_F(FutureTest, ErrorsPassThenByAndReachThenResult) {
    Promise<int> promise{runtime};
    bool ran = false;
    auto next =
        promise.get_future().then([&](int) { ran = true; }).then_result([](Result<void> result) {
            return std::string{result.error().what()};
        });
    promise.set_error(failure("broken"));
    executor->run_all();
    EXPECT_FALSE(ran);
    EXPECT_EQ(next.get(), "broken");
}

TEST_F(FutureTest, ThenResultGetsValuesToo) {
    Promise<int> promise{runtime};
    auto next =
        promise.get_future().then_result([](Result<int> result) { return result.value() + 1; });
    promise.set_value(1);
    executor->run_all();
    EXPECT_EQ(next.get(), 2);
}

TEST_F(FutureTest, WhatAContinuationThrowsIsInsideTheError) {
    Promise<int> promise{runtime};
    auto next = promise.get_future().then([](int) -> int { throw std::out_of_range{"far"}; });
    promise.set_value(1);
    executor->run_all();
    auto const result = next.result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::callback);
    EXPECT_THROW(std::rethrow_exception(result.error().exception()), std::out_of_range);
    EXPECT_NE(std::string{result.error().what()}.find("far"), std::string::npos);
}

TEST_F(FutureTest, AnErrorThrownByAContinuationStaysItself) {
    Promise<int> promise{runtime};
    auto next = promise.get_future().then([](int) -> int { failure("mine").raise(); });
    promise.set_value(1);
    executor->run_all();
    EXPECT_THROW((void)next.get(), StatusError);
}

TEST_F(FutureTest, AFutureFromAContinuationIsFlattened) {
    Promise<int> outer{runtime};
    Promise<std::string> inner{runtime};
    Future<std::string> next = outer.get_future().then([&](int) { return inner.get_future(); });
    outer.set_value(1);
    executor->run_all();
    EXPECT_FALSE(next.ready());
    inner.set_value("deep");
    EXPECT_EQ(next.get(), "deep");
}

TEST_F(FutureTest, AnEmptyFutureFromAContinuationIsMisuse) {
    // (Not made where it is returned: g++ 12 would warn of the use that is refused.)
    Future<int> empty;
    auto next = make_ready_future(1).then([&](int) { return std::move(empty); });
    EXPECT_THROW((void)next.get(), UsageError);
}

TEST_F(FutureTest, FlattensLongChainsWithoutDeepRecursion) {
    // Each step returns the next one's future; all of them complete at once, at the end.
    constexpr int steps = 100'000;
    std::vector<Promise<void>> gates(steps);
    std::function<Future<int>(int)> walk = [&](int i) -> Future<int> {
        if (i == steps) return make_ready_future(i);
        return gates[static_cast<std::size_t>(i)].get_future().then(
            [&walk, i] { return walk(i + 1); });
    };
    auto end = walk(0);
    for (auto& gate : gates) gate.set_value();
    EXPECT_EQ(end.get(), steps);
}

TEST_F(FutureTest, CancelCompletesAtOnceAndTellsTheProducerOnce) {
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    int told = 0;
    promise.on_cancel([&] { ++told; });
    future.cancel();
    future.cancel();
    EXPECT_EQ(told, 1);
    EXPECT_TRUE(future.ready());
    EXPECT_FALSE(promise.set_value(1));
    EXPECT_THROW((void)future.get(), CancelledError);

    int late = 0;
    promise.on_cancel([&] { ++late; });
    EXPECT_EQ(late, 1);
    future.cancel();  // empty: harmless
}

TEST_F(FutureTest, AConsumedFutureCannotBeAwaitedOrMovedBackToLife) {
    auto future = make_ready_future(1);
    EXPECT_EQ(future.get(), 1);
    auto moved = std::move(future);
    EXPECT_FALSE(moved.valid());
    EXPECT_THROW((void)moved.get(), UsageError);
    auto const body = [](Future<int> source) -> Future<int> { co_return co_await source; };
    EXPECT_THROW((void)body(std::move(moved)).get(), UsageError);
}

TEST_F(FutureTest, CancellingACompleteFutureHasNoEffect) {
    Promise<int> promise{runtime};
    auto future = promise.get_future();
    auto const token = std::make_shared<int>();
    bool told = false;
    promise.on_cancel([&told, token] { told = true; });
    promise.set_value(1);
    EXPECT_EQ(token.use_count(), 1);  // the handler is gone
    future.cancel();
    promise.on_cancel([&told] { told = true; });
    EXPECT_FALSE(told);
    EXPECT_EQ(future.get(), 1);
}

TEST_F(FutureTest, CancellingADerivedFutureCancelsItsSource) {  // R-FUT-22
    Promise<int> promise{runtime};
    bool told = false;
    bool ran = false;
    promise.on_cancel([&] { told = true; });
    auto next = promise.get_future().then([&](int) { ran = true; }).then([] {});
    next.cancel();
    EXPECT_TRUE(told);
    EXPECT_THROW(next.get(), CancelledError);
    executor->run_all();
    EXPECT_FALSE(ran);
}

TEST_F(FutureTest, CancellingAFlattenedFutureCancelsTheInnerOne) {
    Promise<int> outer{runtime};
    Promise<int> inner{runtime};
    bool told = false;
    inner.on_cancel([&] { told = true; });
    auto next = outer.get_future().then([&](int) { return inner.get_future(); });
    outer.set_value(1);
    executor->run_all();
    next.cancel();
    EXPECT_TRUE(told);

    // And when the cancellation comes first, the inner one is cancelled as it appears.
    Promise<int> second{runtime};
    Promise<int> late{runtime};
    bool late_told = false;
    late.on_cancel([&] { late_told = true; });
    auto other = second.get_future().then_result([&](Result<int>) { return late.get_future(); });
    other.cancel();
    executor->run_all();
    EXPECT_TRUE(late_told);
}

TEST_F(FutureTest, AContinuationOfACancelledFutureIsNotRun) {
    Promise<int> promise{runtime};
    bool ran = false;
    auto next = promise.get_future().then([&](int) { ran = true; });
    promise.set_value(1);  // on its way to the executor
    next.cancel();
    executor->run_all();
    EXPECT_FALSE(ran);
}

TEST_F(FutureTest, DroppingAFutureDoesNotCancel) {
    Promise<int> promise{runtime};
    bool told = false;
    promise.on_cancel([&] { told = true; });
    { auto const dropped = promise.get_future(); }
    EXPECT_FALSE(told);
    EXPECT_TRUE(promise.set_value(1));
}

TEST_F(FutureTest, ShutdownEndsWhatContinuationsWouldHaveDone) {
    Promise<int> promise{runtime};
    bool ran = false;
    auto next = promise.get_future().then([&](int) { ran = true; }).then([] { return 1; });
    promise.set_value(1);
    runtime.shutdown();
    auto const result = next.result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::cancelled);
    EXPECT_STREQ(result.error().what(), "the call was abandoned: its runtime was shut down");
    executor->run_all();
    EXPECT_FALSE(ran);
}

TEST_F(FutureTest, ThenResultIsCalledEvenAfterTheRuntimeWasShutDown) {
    std::vector<std::string> told;
    auto const note = [&told](Result<int> const& result) {
        told.push_back(result ? std::to_string(*result)
                              : std::string{to_string(result.error().kind())});
    };
    Promise<int> waiting{runtime};
    Promise<int> abandoned{runtime};
    Promise<int> later{runtime};
    auto first = waiting.get_future().then_result(note);
    auto second = abandoned.get_future().then_result(note);
    auto third = later.get_future().then_result(note);
    waiting.set_value(1);
    ASSERT_EQ(executor->waiting(), 1U);

    runtime.shutdown();
    EXPECT_EQ(told, std::vector<std::string>{"1"}) << "the callback that waited for the executor";
    { auto const gone = std::move(abandoned); }
    later.set_value(3);
    EXPECT_EQ(told, (std::vector<std::string>{"1", "cancelled", "3"}));
    EXPECT_TRUE(first.ready() && second.ready() && third.ready());

    Promise<int> last{runtime};
    bool then_called = false;
    auto ended = last.get_future().then([&](int) { then_called = true; });
    last.set_value(4);
    EXPECT_FALSE(then_called);
    EXPECT_EQ(ended.result().error().kind(), ErrorKind::cancelled);
}

TEST_F(FutureTest, ACallbackForAResultIsCalledEvenAfterTheRuntimeWasShutDown) {
    int told = 0;
    Promise<int> promise{runtime};
    detail::notify(promise.get_future(), [&](Result<int> const&) {
        ++told;
        throw std::runtime_error{"ouch"};
    });
    runtime.shutdown();
    promise.set_value(1);
    EXPECT_EQ(told, 1);
}

TEST_F(FutureTest, WithoutARuntimeContinuationsRunAtOnce) {
    EXPECT_EQ(make_ready_future(1).then([](int x) { return x + 1; }).get(), 2);

    Promise<int> promise;
    auto const here = std::this_thread::get_id();
    std::thread::id there;
    auto next = promise.get_future().then([&](int) { there = std::this_thread::get_id(); });
    promise.set_value(1);
    EXPECT_TRUE(next.ready());
    EXPECT_EQ(there, here);
    // Waiting inside such a continuation for what is complete works, however deep.
    auto deep = make_ready_future(1).then([](int) {
        return make_ready_future(2).then([](int) {
            return make_ready_future(make_ready_future(3).then([](int x) { return x; }).get());
        });
    });
    EXPECT_EQ(deep.get(), 3);
}

TEST_F(FutureTest, ASharedFutureIsReadManyTimes) {  // R-FUT-02, C-60
    Promise<std::string> promise{runtime};
    SharedFuture<std::string> const shared = promise.get_future();
    auto const copy = shared;
    std::vector<std::string> seen;
    auto first = shared.then([&](std::string const& s) { seen.push_back("1" + s); });
    auto second = copy.then([&](std::string const& s) { seen.push_back("2" + s); });
    promise.set_value("x");
    executor->run_all();
    EXPECT_EQ(seen, (std::vector<std::string>{"1x", "2x"}));
    EXPECT_EQ(&shared.get(), &copy.get());
    EXPECT_EQ(shared.result().value(), "x");
    EXPECT_EQ(shared.get(0ms), "x");
    first.get();
    second.get();
}

TEST_F(FutureTest, CancellingWhatDerivesFromASharedFutureLeavesItAlone) {
    Promise<int> promise{runtime};
    auto const shared = promise.get_future().share();
    auto next = shared.then([](int x) { return x; });
    next.cancel();
    EXPECT_FALSE(shared.ready());
    shared.cancel();
    EXPECT_THROW((void)shared.get(), CancelledError);
    EXPECT_THROW((void)SharedFuture<int>{}.get(), UsageError);
}

TEST_F(FutureTest, WhenAllCollectsValuesInOrder) {  // R-FUT-50
    std::vector<Promise<std::unique_ptr<int>>> promises;
    std::vector<Future<std::unique_ptr<int>>> futures;
    for (int i = 0; i < 3; ++i) {
        promises.emplace_back(runtime);
        futures.push_back(promises.back().get_future());
    }
    auto all = when_all(std::move(futures));
    for (int const i : {2, 0}) {
        promises[static_cast<std::size_t>(i)].set_value(std::make_unique<int>(i));
    }
    EXPECT_FALSE(all.ready());
    promises[1].set_value(std::make_unique<int>(1));
    auto const values = all.get();
    ASSERT_EQ(values.size(), 3U);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(*values[static_cast<std::size_t>(i)], i);
}

TEST_F(FutureTest, WhenAllOfNothingIsReady) {
    EXPECT_TRUE(when_all(std::vector<Future<int>>{}).get().empty());
    when_all(std::vector<Future<void>>{}).get();
    EXPECT_EQ(when_all().get(), std::tuple<>{});
}

TEST_F(FutureTest, WhenAllOfVoids) {
    Promise<void> promise{runtime};
    std::vector<Future<void>> futures;
    futures.push_back(promise.get_future());
    futures.push_back(make_ready_future());
    Future<void> all = when_all(std::move(futures));
    EXPECT_FALSE(all.ready());
    promise.set_value();
    all.get();
}

TEST_F(FutureTest, WhenAllMixesTypes) {
    Promise<void> promise{runtime};
    auto all =
        when_all(make_ready_future(1), promise.get_future(), make_ready_future(std::string{"x"}));
    promise.set_value();
    EXPECT_EQ(all.get(), (std::tuple{1, std::monostate{}, std::string{"x"}}));
}

TEST_F(FutureTest, WhenAllEndsByTheFirstFailureAndCancelsTheRest) {  // R-FUT-50, C-55
    Promise<int> bad{runtime};
    Promise<std::string> other{runtime};
    bool told = false;
    other.on_cancel([&] { told = true; });
    auto all = when_all(bad.get_future(), other.get_future());
    bad.set_error(failure("first"));
    EXPECT_TRUE(told);
    EXPECT_STREQ(all.result().error().what(), "first");
}

TEST_F(FutureTest, CancellingWhenAllCancelsEveryPart) {
    Promise<int> one{runtime};
    Promise<int> two{runtime};
    int told = 0;
    one.on_cancel([&] { ++told; });
    two.on_cancel([&] { ++told; });
    std::vector<Future<int>> futures;
    futures.push_back(one.get_future());
    futures.push_back(two.get_future());
    auto all = when_all(std::move(futures));
    all.cancel();
    EXPECT_EQ(told, 2);
    EXPECT_THROW((void)all.get(), CancelledError);
}

TEST_F(FutureTest, ContinuationsOfACombinedFutureRunOnTheExecutor) {
    Promise<int> promise{runtime};
    bool ran = false;
    auto all = when_all(make_ready_future(0), promise.get_future()).then([&](auto) { ran = true; });
    promise.set_value(1);
    EXPECT_FALSE(ran);
    executor->run_all();
    EXPECT_TRUE(ran);
    all.get();
}

TEST_F(FutureTest, NoLockIsHeldWhileUserCodeRuns) {
    // Each of these would deadlock if the state were locked: destructors and handlers that look
    // at the very future they belong to.
    Promise<int> promise{runtime};
    auto const shared = promise.get_future().share();
    struct Looks {
        SharedFuture<int> future;
        ~Looks() {
            if (future.valid()) {
                EXPECT_TRUE(future.ready());
                EXPECT_TRUE(future.wait_for(0ms));
                future.cancel();
            }
        }
    };
    promise.on_cancel([looks = std::make_unique<Looks>(shared)] {});
    auto next = shared.then([looks = std::make_unique<Looks>(shared)](int) {});
    promise.set_value(1);
    executor->run_all();
    next.get();
}

}  // namespace
}  // namespace tinkxx
