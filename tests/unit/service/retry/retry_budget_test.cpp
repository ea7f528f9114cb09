#include "service/retry/retry_budget.hpp"

#include <tinkxx/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TimePoint const start{1h};

int taken_at_once(RetryBudgetState& state, TimePoint now) {
    int taken = 0;
    while (taken < 1000 && state.take(now, 1s)) ++taken;
    return taken;
}

std::string refused_field(RetryBudget const& budget) {
    try {
        budget.validate();
    } catch (ValidationError const& error) {
        EXPECT_THAT(error.what(), HasSubstr(std::string{error.field()}));
        EXPECT_THAT(error.what(), HasSubstr(std::string{error.value()}));
        return std::string{error.field()};
    }
    return {};
}

TEST(RetryBudget, AllowsAsManyRetriesAsItsCapacity) {  // R-RETRY-23
    RetryBudgetState state{{.capacity = 3}};
    EXPECT_EQ(taken_at_once(state, start), 3);
    EXPECT_FALSE(state.take(start + 24h, 1s)) << "nothing is given back without a refill";
}

TEST(RetryBudget, GivesRetriesBackAtItsRate) {  // R-RETRY-23
    RetryBudgetState state{{.capacity = 10, .refill_per_second = 2}};
    EXPECT_EQ(taken_at_once(state, start), 10);
    EXPECT_FALSE(state.take(start + 499ms, 1s));
    EXPECT_TRUE(state.take(start + 500ms, 1s));
    EXPECT_FALSE(state.take(start + 500ms, 1s));
    EXPECT_EQ(taken_at_once(state, start + 2500ms), 4);
}

TEST(RetryBudget, IsNeverFullerThanItsCapacity) {  // R-RETRY-23
    RetryBudgetState state{{.capacity = 4, .refill_per_second = 100}};
    EXPECT_TRUE(state.take(start, 1s));
    EXPECT_EQ(taken_at_once(state, start + 1h), 4);
}

TEST(RetryBudget, DoesNotCountTimeBeforeItsFirstRetry) {  // R-RETRY-23
    RetryBudgetState state{{.capacity = 1, .refill_per_second = 1}};
    EXPECT_EQ(state.tokens(start), 1);
    EXPECT_EQ(taken_at_once(state, start), 1);
}

TEST(RetryBudget, AllowsWaitsUpToTheirTotal) {  // R-RETRY-23
    RetryBudgetState state{{.total_delay = 10s}};
    EXPECT_TRUE(state.take(start, 6s));
    EXPECT_FALSE(state.take(start, 4001ms));
    EXPECT_TRUE(state.take(start, 4s)) << "what was refused is not paid for";
    EXPECT_FALSE(state.take(start, 1ns));
    EXPECT_EQ(state.delayed(), 10s);
}

TEST(RetryBudget, NeedsBothLimitsToAgree) {  // R-RETRY-23
    RetryBudgetState state{{.capacity = 2, .total_delay = 10s}};
    EXPECT_FALSE(state.take(start, 11s));
    EXPECT_TRUE(state.take(start, 1s));
    EXPECT_TRUE(state.take(start, 1s)) << "the refusal took no token";
    EXPECT_FALSE(state.take(start, 1s));
    EXPECT_EQ(state.delayed(), 2s);
}

TEST(RetryBudget, RefusesSettingsThatCannotWork) {  // R-RETRY-23
    EXPECT_EQ(refused_field({}), "capacity");
    EXPECT_EQ(refused_field({.capacity = -1}), "capacity");
    EXPECT_EQ(refused_field({.capacity = 1, .refill_per_second = -0.5}), "refill_per_second");
    EXPECT_EQ(refused_field(
                  {.capacity = 1, .refill_per_second = std::numeric_limits<double>::quiet_NaN()}),
              "refill_per_second");
    EXPECT_EQ(refused_field({.total_delay = -1ms}), "total_delay");
    EXPECT_EQ(refused_field({.capacity = 0}), "");
    EXPECT_EQ(refused_field({.total_delay = 0ms}), "");
}

RC_GTEST_PROP(RetryBudgetProperty, NeverAllowsMoreThanCapacityAndRefill, ()) {  // R-RETRY-23
    auto const capacity = *rc::gen::inRange<std::int64_t>(0, 50);
    auto const rate = static_cast<double>(*rc::gen::inRange(0, 40)) / 4;
    auto const steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 2000));
    RetryBudgetState state{{.capacity = capacity, .refill_per_second = rate}};
    std::int64_t taken = 0;
    auto now = start;
    for (auto const step : steps) {
        now += std::chrono::milliseconds{step};
        if (state.take(now, 0ns)) ++taken;
        auto const most = static_cast<double>(capacity) +
                          rate * std::chrono::duration<double>{now - start}.count();
        RC_ASSERT(static_cast<double>(taken) <= most + 1e-6);
    }
}

}  // namespace
}  // namespace tinkxx::service
