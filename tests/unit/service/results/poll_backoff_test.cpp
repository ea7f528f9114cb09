#include "service/results/poll_backoff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <stdexcept>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(PollBackoff, IsNoneUnlessSet) {  // R-EXT-80
    EXPECT_EQ(poll_backoff_delay(PollBackoff{}, 7, 7), 0s);
    EXPECT_FALSE(poll_backoff_problem(PollBackoff{}));
}

TEST(PollBackoff, DoublesUpToItsMaximum) {  // R-EXT-80
    PollBackoff const backoff = ExponentialPollBackoff{};
    EXPECT_EQ(poll_backoff_delay(backoff, 100, 0), 1s);
    EXPECT_EQ(poll_backoff_delay(backoff, 100, 1), 2s);
    EXPECT_EQ(poll_backoff_delay(backoff, 100, 4), 16s);
    EXPECT_EQ(poll_backoff_delay(backoff, 100, 5), 30s);
    EXPECT_EQ(poll_backoff_delay(backoff, 100, 1'000'000), 30s);
}

TEST(PollBackoff, StaysWithinItsBoundsForAllNumbers) {  // R-TEST-03
    EXPECT_TRUE(rc::check("initial <= delay <= max", [] {
        auto const initial = *rc::gen::inRange<std::int64_t>(1, 100'000'000);
        auto const more = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
        ExponentialPollBackoff const backoff{.initial = milliseconds{initial},
                                             .max = milliseconds{initial + more}};
        auto const delay = poll_backoff_delay(backoff, 0, *rc::gen::inRange(0, 5000));
        RC_ASSERT(delay >= std::min<std::chrono::nanoseconds>(backoff.initial, 24h));
        RC_ASSERT(delay <= backoff.max);
    }));
}

TEST(PollBackoff, SurvivesAnythingThatAFunctionDoes) {  // R-EXT-80
    auto const delay = [](PollBackoffFunction function) {
        return poll_backoff_delay(std::move(function), 3, 0);
    };
    EXPECT_EQ(delay([](std::int64_t i) { return milliseconds{i}; }), 3ms);
    EXPECT_EQ(delay([](std::int64_t) { return -5ms; }), 0ms);
    EXPECT_EQ(delay([](std::int64_t) { return milliseconds::max(); }), 24h);
    EXPECT_EQ(delay([](std::int64_t) -> milliseconds { throw std::runtime_error{"no"}; }), 0ms);
    EXPECT_EQ(delay({}), 0ms);
}

TEST(PollBackoff, IsRefusedIfItMakesNoSense) {  // R-EXT-80
    auto problem = poll_backoff_problem(ExponentialPollBackoff{.initial = 0ms});
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->kind, ErrorKind::validation);
    EXPECT_EQ(problem->field, "poll_backoff.initial");
    EXPECT_EQ(problem->value, "0 ms");
    problem = poll_backoff_problem(ExponentialPollBackoff{.initial = 2s, .max = 1s});
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->field, "poll_backoff.max");
    EXPECT_THAT(problem->message, HasSubstr("1000 ms"));
    EXPECT_THAT(problem->message, HasSubstr("2000 ms"));
    EXPECT_TRUE(poll_backoff_problem(PollBackoffFunction{}));
    EXPECT_FALSE(poll_backoff_problem(ExponentialPollBackoff{.initial = 1s, .max = 1s}));
}

}  // namespace
}  // namespace tinkxx::service
