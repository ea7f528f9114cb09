#include <tinkxx/circuit_breaker.hpp>

#include "thread/crew.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <stdexcept>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Error error_of(ErrorKind kind, std::optional<int> status = {}) {
    ErrorDetails details;
    details.kind = kind;
    details.http_status = status;
    return Error{std::move(details)};
}

struct CircuitBreakerTest : ::testing::Test {
    CircuitBreakerOptions options() {
        return {.clock = [this] { return now.load(); }};
    }
    static void fail_times(CircuitBreaker breaker, int times) {
        for (int i = 0; i < times; ++i) breaker.admit()->failed(error_of(ErrorKind::connection));
    }

    std::atomic<TimePoint> now{TimePoint{1h}};
};

TEST_F(CircuitBreakerTest, RefusesWithoutCallingWhenOpen) {  // R-EXT-01
    CircuitBreaker breaker{"sampling", options()};
    fail_times(breaker, 5);
    now = now.load() + 10s;
    int calls = 0;
    auto const result = breaker.call([&]() -> Result<int> { return ++calls; });
    EXPECT_EQ(calls, 0);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::circuit_open);
    EXPECT_EQ(result.error().retry_after(), 20s);
    EXPECT_TRUE(result.error().retryable());
    EXPECT_THAT(result.error().what(), HasSubstr("'sampling'"));
    EXPECT_THAT(result.error().what(), HasSubstr("20 s"));
    EXPECT_THROW(result.error().raise(), CircuitOpenError);
}

TEST_F(CircuitBreakerTest, SaysThatATrialIsUnderWay) {  // R-EXT-01
    CircuitBreaker breaker{"x", options()};
    fail_times(breaker, 5);
    now = now.load() + 30s;
    auto const trial = breaker.admit();
    ASSERT_TRUE(trial);
    auto const refused = breaker.admit();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::circuit_open);
    EXPECT_THAT(refused.error().what(), HasSubstr("trial"));
    EXPECT_FALSE(refused.error().retry_after());
}

TEST_F(CircuitBreakerTest, TakesNoteOfHowACallEnds) {  // R-EXT-01
    CircuitBreaker breaker{"x", options()};
    auto const failing = [&]() -> Result<int> { return error_of(ErrorKind::timeout); };
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(breaker.call(failing));
    EXPECT_EQ(breaker.status().failures, 4);
    EXPECT_EQ(breaker.call([]() -> Result<int> { return 7; }).value(), 7);
    EXPECT_EQ(breaker.status().failures, 0);
    EXPECT_THROW(
        (void)breaker.call([]() -> Result<int> { throw error_of(ErrorKind::status, 500); }), Error);
    EXPECT_EQ(breaker.status().failures, 1);
    EXPECT_THROW((void)breaker.call([]() -> Result<int> { throw std::runtime_error{"mine"}; }),
                 std::runtime_error);
    EXPECT_EQ(breaker.status().failures, 1);
}

TEST_F(CircuitBreakerTest, AsksThePredicateWhatAFailureIs) {  // R-EXT-02
    auto with_predicate = options();
    with_predicate.is_failure = is_service_trouble;
    CircuitBreaker breaker{"x", with_predicate};
    breaker.admit()->failed(error_of(ErrorKind::status, 503));
    EXPECT_EQ(breaker.status().failures, 1);
    breaker.admit()->failed(error_of(ErrorKind::status, 404));
    EXPECT_EQ(breaker.status().failures, 0) << "the service answered, so it works";
}

TEST_F(CircuitBreakerTest, TakesTroubleOfTheServiceForAFailureByDefault) {  // R-EXT-02
    CircuitBreaker breaker{"x", options()};
    breaker.admit()->failed(error_of(ErrorKind::connection));
    EXPECT_EQ(breaker.status().failures, 1);
    breaker.admit()->failed(error_of(ErrorKind::validation));
    EXPECT_EQ(breaker.status().failures, 0) << "the user's";
}

TEST_F(CircuitBreakerTest, TakesAPredicateThatThrowsForAYes) {  // R-EXT-02
    auto throwing = options();
    throwing.is_failure = [](Error const&) -> bool { throw std::runtime_error{"predicate"}; };
    CircuitBreaker breaker{"x", throwing};
    breaker.admit()->failed(error_of(ErrorKind::validation));
    EXPECT_EQ(breaker.status().failures, 1);
}

TEST(IsServiceTrouble, IsNoConnectionOrAStatusFromFiveHundred) {  // R-EXT-02
    EXPECT_TRUE(is_service_trouble(error_of(ErrorKind::connection)));
    EXPECT_TRUE(is_service_trouble(error_of(ErrorKind::timeout)));
    EXPECT_TRUE(is_service_trouble(error_of(ErrorKind::status, 500)));
    EXPECT_TRUE(is_service_trouble(error_of(ErrorKind::status, 529)));
    EXPECT_TRUE(is_service_trouble(error_of(ErrorKind::status, 408)));
    EXPECT_TRUE(is_service_trouble(error_of(ErrorKind::status, 429)));
    EXPECT_FALSE(is_service_trouble(error_of(ErrorKind::status, 499)));
    EXPECT_FALSE(is_service_trouble(
        Error{{.kind = ErrorKind::status, .http_status = 500, .category = ErrorCategory::user}}));
    EXPECT_FALSE(is_service_trouble(error_of(ErrorKind::validation)));
    EXPECT_FALSE(is_service_trouble(error_of(ErrorKind::cancelled)));
}

TEST_F(CircuitBreakerTest, GivesBackATrialWhosePermitGoesAway) {  // R-EXT-02
    CircuitBreaker breaker{"x", options()};
    fail_times(breaker, 5);
    now = now.load() + 30s;
    {
        auto const dropped = breaker.admit();
        EXPECT_EQ(breaker.status().trials, 1);
    }
    EXPECT_EQ(breaker.status().trials, 0);
    EXPECT_TRUE(breaker.admit());
}

TEST_F(CircuitBreakerTest, CountsAPermitOnce) {  // R-EXT-02
    CircuitBreaker breaker{"x", options()};
    auto first = breaker.admit();
    auto moved = std::move(*first);
    moved.failed(error_of(ErrorKind::timeout));
    moved.failed(error_of(ErrorKind::timeout));
    first->failed(error_of(ErrorKind::timeout));
    moved.succeeded();
    EXPECT_EQ(breaker.status().failures, 1);
}

TEST_F(CircuitBreakerTest, MayGoAwayBeforeItsPermits) {  // R-EXT-02
    auto permit = [&] { return CircuitBreaker{"x", options()}.admit(); }();
    permit->failed(error_of(ErrorKind::timeout));
}

TEST_F(CircuitBreakerTest, RefusesOptionsThatCannotWork) {  // R-EXT-01
    auto const refused = [](CircuitBreakerOptions bad) -> std::string {
        try {
            CircuitBreaker const breaker{"x", std::move(bad)};
        } catch (ValidationError const& error) {
            EXPECT_THAT(error.what(), HasSubstr(std::string{error.value()}));
            return std::string{error.field()};
        }
        return {};
    };
    EXPECT_EQ(refused({.failure_threshold = 0}), "failure_threshold");
    EXPECT_EQ(refused({.open_duration = 0ms}), "open_duration");
    EXPECT_EQ(refused({.open_duration = std::chrono::milliseconds::max()}), "open_duration");
    EXPECT_EQ(refused({.trial_calls = 0}), "trial_calls");
    EXPECT_EQ(refused({}), "");
}

TEST_F(CircuitBreakerTest, KnowsBreakersByName) {  // R-EXT-02
    CircuitBreakers breakers{options()};
    fail_times(breakers.get("b"), 5);
    EXPECT_EQ(breakers.get("b").state(), CircuitState::open) << "the same one as before";
    EXPECT_EQ(breakers.get("a").state(), CircuitState::closed);
    EXPECT_THAT(breakers.list(),
                ElementsAre(Pair("a", CircuitState::closed), Pair("b", CircuitState::open)));
    EXPECT_EQ(breakers.state("b"), CircuitState::open);
    EXPECT_EQ(breakers.state("unknown"), CircuitState::closed);
    EXPECT_FALSE(breakers.find("unknown"));
    EXPECT_EQ(breakers.list().size(), 2U) << "asking makes none";

    EXPECT_TRUE(breakers.reset("b"));
    EXPECT_EQ(breakers.state("b"), CircuitState::closed);
    EXPECT_FALSE(breakers.reset("unknown"));

    auto const kept = breakers.get("a");
    EXPECT_TRUE(breakers.remove("a"));
    EXPECT_FALSE(breakers.remove("a"));
    EXPECT_EQ(kept.name(), "a");
    EXPECT_THAT(breakers.list(), ElementsAre(Pair("b", CircuitState::closed)));
}

TEST_F(CircuitBreakerTest, UsesTheOptionsOfWhoeverAsksFirst) {  // R-EXT-02
    CircuitBreakers breakers;
    auto eager = options();
    eager.failure_threshold = 1;
    fail_times(breakers.get("x", eager), 1);
    EXPECT_EQ(breakers.get("x", options()).state(), CircuitState::open);
    fail_times(breakers.get("y"), 1);
    EXPECT_EQ(breakers.state("y"), CircuitState::closed);
}

TEST_F(CircuitBreakerTest, LetsOneTrialThroughHoweverManyAsk) {  // R-EXT-02
    CircuitBreakers breakers{options()};
    for (int round = 0; round < 50; ++round) {
        breakers.get("x").reset();
        fail_times(breakers.get("x"), 5);
        now = now.load() + 30s;
        std::atomic<int> admitted{0};
        std::vector<std::optional<Result<CircuitBreaker::Permit>>> permits(testing::crew);
        testing::race(testing::crew, [&](int i) {
            auto& permit = permits[static_cast<std::size_t>(i)];
            permit.emplace(breakers.get("x").admit());
            if (*permit) ++admitted;
        });
        EXPECT_EQ(admitted, 1);
    }
}

TEST_F(CircuitBreakerTest, CountsEveryFailureOfManyThreads) {  // R-EXT-02
    auto patient = options();
    patient.failure_threshold = std::numeric_limits<int>::max();
    CircuitBreaker breaker{"x", patient};
    testing::race(testing::crew, [&](int) { fail_times(breaker, 500); });
    EXPECT_EQ(breaker.status().failures, testing::crew * 500);
}

}  // namespace
}  // namespace tinkxx
