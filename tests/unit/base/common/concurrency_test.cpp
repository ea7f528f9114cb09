#include <tinkxx/concurrency.hpp>

#include "support/held_executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Error service_error(std::string message) {
    return Error{{.kind = ErrorKind::status, .message = std::move(message), .http_status = 500}};
}

/// Calls that a test ends one by one. Callbacks run where it does so.
class ConcurrencyTest : public ::testing::Test {
protected:
    struct Call {
        Promise<int> promise;
        bool cancelled{false};
    };

    Future<int> begin() {
        calls.push_back(std::make_unique<Call>(Promise<int>{runtime}));
        auto& call = *calls.back();
        call.promise.on_cancel([&call] { call.cancelled = true; });
        return call.promise.get_future();
    }
    std::vector<Future<int>> begin(std::size_t count) {
        std::vector<Future<int>> futures;
        for (std::size_t i = 0; i < count; ++i) futures.push_back(begin());
        return futures;
    }
    [[nodiscard]] std::size_t pending() const {
        return static_cast<std::size_t>(std::count_if(
            calls.begin(), calls.end(), [](auto const& call) { return !call->promise.done(); }));
    }

    std::shared_ptr<support::HeldExecutor> executor{std::make_shared<support::HeldExecutor>()};
    Runtime runtime{{.executor = executor}};
    std::vector<std::unique_ptr<Call>> calls;
};

TEST_F(ConcurrencyTest, SettledCollectsValuesAndErrorsInOrder) {
    auto all = when_all_settled(begin(3));
    calls[2]->promise.set_value(2);
    calls[0]->promise.set_error(service_error("bad"));
    EXPECT_FALSE(all.ready());
    EXPECT_FALSE(calls[1]->cancelled);
    calls[1]->promise.set_value(1);
    auto const results = all.get();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_STREQ(results[0].error().what(), "bad");
    EXPECT_EQ(*results[1], 1);
    EXPECT_EQ(*results[2], 2);
}

TEST_F(ConcurrencyTest, SettledTakesVoidsAndNothing) {
    std::vector<Future<void>> futures;
    futures.push_back(make_ready_future());
    futures.push_back(make_failed_future<void>(service_error("bad")));
    auto const results = when_all_settled(std::move(futures)).get();
    EXPECT_TRUE(results.at(0).has_value());
    EXPECT_FALSE(results.at(1).has_value());
    EXPECT_TRUE(when_all_settled(std::vector<Future<int>>{}).get().empty());
}

TEST_F(ConcurrencyTest, CancellingSettledCancelsEveryPart) {
    auto all = when_all_settled(begin(2));
    all.cancel();
    EXPECT_TRUE(calls[0]->cancelled && calls[1]->cancelled);
    EXPECT_THROW((void)all.get(), CancelledError);
}

TEST_F(ConcurrencyTest, AnyGivesTheFirstAndCancelsTheOthers) {
    auto first = when_any(begin(3));
    calls[1]->promise.set_value(7);
    auto const arrival = first.get();
    EXPECT_EQ(arrival.index, 1U);
    EXPECT_EQ(*arrival.result, 7);
    EXPECT_TRUE(calls[0]->cancelled && calls[2]->cancelled);
}

TEST_F(ConcurrencyTest, AnyCanEndWithAnError) {
    auto first = when_any(begin(2));
    calls[0]->promise.set_error(service_error("bad"));
    EXPECT_STREQ(first.get().result.error().what(), "bad");
}

TEST_F(ConcurrencyTest, AnyOfNothingFails) {
    EXPECT_THROW((void)when_any(std::vector<Future<int>>{}).get(), UsageError);
}

TEST_F(ConcurrencyTest, ArrivalsComeInTheOrderInWhichTheyEnd) {
    Arrivals arrivals{begin(3)};
    calls[2]->promise.set_value(2);
    calls[0]->promise.set_error(service_error("bad"));
    calls[1]->promise.set_value(1);
    std::vector<std::size_t> order;
    for (auto& [index, result] : arrivals) {
        order.push_back(index);
        EXPECT_EQ(result.has_value(), index != 0);
    }
    EXPECT_THAT(order, ElementsAre(2, 0, 1));
    EXPECT_EQ(arrivals.left(), 0U);
    EXPECT_THROW((void)arrivals.next(), UsageError);
}

TEST_F(ConcurrencyTest, ArrivalsCanBeWaitedForBeforeTheyCome) {
    Arrivals arrivals{begin(2)};
    auto first = arrivals.next();
    auto second = arrivals.next();
    EXPECT_THROW((void)arrivals.next(), UsageError) << "two are left, and two wait for them";
    calls[1]->promise.set_value(1);
    EXPECT_EQ(first.get().index, 1U);
    EXPECT_FALSE(second.ready());
    calls[0]->promise.set_value(0);
    EXPECT_EQ(second.get().index, 0U);
}

TEST_F(ConcurrencyTest, AnArrivalThatNobodyWaitsForAnyMoreIsKept) {
    Arrivals arrivals{begin(1)};
    arrivals.next().cancel();
    EXPECT_FALSE(calls[0]->cancelled);
    calls[0]->promise.set_value(5);
    EXPECT_EQ(arrivals.left(), 1U);
    EXPECT_EQ(*arrivals.next().get().result, 5);
}

TEST_F(ConcurrencyTest, CancelledArrivalsArriveAsCancelled) {
    Arrivals arrivals{begin(2)};
    calls[0]->promise.set_value(1);
    arrivals.cancel();
    EXPECT_TRUE(arrivals.next().get().result.has_value());
    EXPECT_EQ(arrivals.next().get().result.error().kind(), ErrorKind::cancelled);
}

TEST_F(ConcurrencyTest, LimitedKeepsSoManyUnderWayAndNoMore) {
    std::vector<int> const items{10, 20, 30, 40, 50};
    std::vector<int> seen;
    auto all = for_each_limited(items, 2, [&](int const& item) {
        seen.push_back(item);
        return begin();
    });
    EXPECT_THAT(seen, ElementsAre(10, 20));
    for (std::size_t i = 0; i < items.size(); ++i) {
        EXPECT_EQ(pending(), std::min<std::size_t>(2, items.size() - i));
        EXPECT_FALSE(all.ready());
        calls[i]->promise.set_value(0);
    }
    EXPECT_THAT(seen, ElementsAre(10, 20, 30, 40, 50));
    all.get();
}

TEST_F(ConcurrencyTest, MapLimitedGivesValuesInTheOrderOfTheElements) {
    auto all = map_limited(std::vector{1, 2, 3}, 3, [&](int) { return begin(); });
    for (std::size_t const i : {2U, 0U, 1U}) {
        calls[i]->promise.set_value(static_cast<int>(100 + i));
    }
    EXPECT_THAT(all.get(), ElementsAre(100, 101, 102));
}

TEST_F(ConcurrencyTest, LimitedOverNothingIsReady) {
    for_each_limited(std::vector<int>{}, 4, [&](int) { return begin(); }).get();
    EXPECT_TRUE(map_limited(std::vector<int>{}, 4, [&](int) { return begin(); }).get().empty());
}

TEST_F(ConcurrencyTest, LimitedOverFuturesThatAreReadyDoesNotRecurse) {
    std::vector<int> const items(200'000, 1);
    int sum = 0;
    for_each_limited(items, 1, [&](int item) {
        sum += item;
        return make_ready_future(item);
    }).get();
    EXPECT_EQ(sum, 200'000);
}

TEST_F(ConcurrencyTest, LimitedEndsByTheFirstFailureOnceNothingIsUnderWay) {
    executor->held = true;
    std::vector<int> const items{1, 2, 3, 4};
    auto all = for_each_limited(items, 2, [&](int) { return begin(); });
    calls[1]->promise.set_error(service_error("bad"));
    EXPECT_FALSE(all.ready());
    executor->release();
    EXPECT_EQ(calls.size(), 2U) << "no more are started";
    EXPECT_TRUE(calls[0]->cancelled);
    EXPECT_STREQ(all.result().error().what(), "bad");
}

TEST_F(ConcurrencyTest, WhatTheFunctionThrowsEndsIt) {
    auto all = for_each_limited(std::vector{1, 2, 3}, 2, [&](int item) {
        if (item == 2) throw std::runtime_error{"no such prompt"};
        return begin();
    });
    EXPECT_TRUE(calls[0]->cancelled);
    auto const error = all.result().error();
    EXPECT_EQ(error.kind(), ErrorKind::callback);
    EXPECT_THAT(error.what(), HasSubstr("no such prompt"));
}

TEST_F(ConcurrencyTest, CancellingLimitedCancelsWhatIsUnderWay) {
    auto all = for_each_limited(std::vector{1, 2, 3}, 2, [&](int) { return begin(); });
    all.cancel();
    EXPECT_EQ(calls.size(), 2U);
    EXPECT_TRUE(calls[0]->cancelled && calls[1]->cancelled);
    EXPECT_THROW((void)all.get(), CancelledError);
}

TEST_F(ConcurrencyTest, ALimitOfZeroIsRefused) {
    EXPECT_THROW((void)for_each_limited(std::vector{1}, 0, [&](int) { return begin(); }),
                 UsageError);
}

/// A range that can be read once, and makes its elements as it goes.
struct Counting {
    struct Iterator {
        int* made;
        int operator*() const { return *made; }
        Iterator& operator++() {
            ++*made;
            return *this;
        }
        bool operator==(int last) const { return *made == last; }
    };
    int made{0};
    Iterator begin() { return {&made}; }
    [[nodiscard]] int end() const { return 1'000'000; }
};

TEST_F(ConcurrencyTest, ARangeIsReadOnlyWhenThereIsRoom) {
    Counting range;
    auto all = for_each_limited(range, 3, [&](int) { return begin(); });
    EXPECT_EQ(range.made, 2);
    calls[0]->promise.set_value(0);
    EXPECT_EQ(range.made, 3);
    all.cancel();
}

Future<std::vector<int>> in_a_coroutine(std::vector<Future<int>> futures) {
    Arrivals arrivals{std::move(futures)};
    std::vector<int> values;
    while (arrivals.left() > 0) {
        auto next = arrivals.next();
        auto arrival = co_await next;
        values.push_back(*arrival.result);
    }
    co_return values;
}

TEST_F(ConcurrencyTest, ArrivalsCanBeAwaited) {
    auto all = in_a_coroutine(begin(3));
    for (std::size_t const i : {1U, 2U, 0U}) {
        calls[i]->promise.set_value(static_cast<int>(i));
    }
    EXPECT_THAT(all.get(), ElementsAre(1, 2, 0));
}

}  // namespace
}  // namespace tinkxx
