#include "service/http/http_retry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

WallTime const now{1'800'000'000s};
Operation const op{.method = "POST", .path = "/x"};

struct HttpRetryTest : ::testing::Test {
    RejectionBudget budget{};

    HttpRetry machine(HttpRetry::Rules rules = HttpRetry::Rules{}) {
        return HttpRetry{rules, op, budget};
    }
    static Head head(int status, Headers headers = Headers{{"content-length", "2"}}) {
        Head made;
        made.status = status;
        made.headers = std::move(headers);
        return made;
    }
    static HttpRetry::Action reply(HttpRetry& retry, Head const& head, double chance = 0.5) {
        return retry.on_reply(head, "{}", now, chance, {});
    }
    static HttpRetry::Action fail(HttpRetry& retry, FailureKind kind) {
        return retry.on_failure({.kind = kind}, false, 0.5, {});
    }
    static bool retried(HttpRetry::Action const& action) {
        return std::holds_alternative<HttpRetry::Retry>(action);
    }
};

TEST_F(HttpRetryTest, DeliversEverySuccess) {  // R-RETRY-70
    for (int const status : {200, 202, 204, 299}) {
        auto retry = machine();
        auto const action = reply(retry, head(status, {{"x-should-retry", "true"}}));
        EXPECT_TRUE(std::holds_alternative<HttpRetry::Deliver>(action)) << status;
    }
}

TEST_F(HttpRetryTest, RetriesPassingStatuses) {  // R-RETRY-70
    for (int const status : {408, 409, 429, 500, 501, 503, 599, 600}) {
        auto retry = machine();
        EXPECT_TRUE(retried(reply(retry, head(status)))) << status;
    }
    for (int const status : {302, 400, 401, 402, 403, 404, 410, 418, 422, 425, 499}) {
        auto retry = machine();
        EXPECT_FALSE(retried(reply(retry, head(status)))) << status;
    }
}

TEST_F(HttpRetryTest, ObeysTheServersWishInBothDirections) {  // R-RETRY-70
    auto wanted = machine();
    EXPECT_TRUE(retried(reply(wanted, head(404, {{"X-Should-Retry", "true"}}))));
    auto unwanted = machine();
    auto const action = reply(unwanted, head(503, {{"x-should-retry", "false"}}));
    ASSERT_FALSE(retried(action));
    auto const& error = std::get<HttpRetry::Fail>(action).error;
    EXPECT_EQ(error.stopped, RetryEnd::permanent);
    EXPECT_FALSE(error.retryable);
}

TEST_F(HttpRetryTest, AFailureThatCannotHealEndsTheCallAtOnce) {
    for (auto const kind : {FailureKind::tls, FailureKind::resolve, FailureKind::proxy}) {
        auto retry = machine();
        auto const action = retry.on_failure(
            {.kind = kind, .message = "no; do this", .seen = Seen::no, .permanent = true}, false,
            0.5, {});
        ASSERT_TRUE(std::holds_alternative<HttpRetry::Fail>(action)) << to_string(kind);
        Error const error{std::get<HttpRetry::Fail>(action).error};
        EXPECT_FALSE(error.retryable());
        EXPECT_EQ(error.stopped(), RetryEnd::permanent);
        EXPECT_EQ(error.details().attempts, 1);
        EXPECT_TRUE(cannot_heal(error));
        EXPECT_THAT(error.what(), HasSubstr("POST /x: no; do this"));
    }
}

TEST_F(HttpRetryTest, RetriesTransportFailuresIncludingTimeouts) {  // R-RETRY-70
    for (auto const kind :
         {FailureKind::resolve, FailureKind::connect, FailureKind::proxy, FailureKind::tls,
          FailureKind::reset, FailureKind::protocol, FailureKind::decoding,
          FailureKind::connect_timeout, FailureKind::read_timeout, FailureKind::write_timeout,
          FailureKind::pool_timeout, FailureKind::total_timeout}) {
        auto retry = machine();
        EXPECT_TRUE(retried(fail(retry, kind))) << to_string(kind);
    }
    for (auto const kind :
         {FailureKind::invalid_request, FailureKind::closed, FailureKind::too_large}) {
        auto retry = machine();
        EXPECT_FALSE(retried(fail(retry, kind))) << to_string(kind);
    }
}

TEST_F(HttpRetryTest, WaitsAsTheServerAsks) {  // R-RETRY-71
    auto retry = machine();
    auto const action = reply(retry, head(429, {{"retry-after", "7"}}));
    EXPECT_EQ(std::get<HttpRetry::Retry>(action).delay, 7s);
}

TEST_F(HttpRetryTest, WaitsExponentiallyOtherwise) {  // R-RETRY-71
    auto retry = machine({.max_retries = 6});
    for (auto const expected : {500ms, 1000ms, 2000ms, 4000ms, 8000ms, 10000ms}) {
        EXPECT_EQ(std::get<HttpRetry::Retry>(reply(retry, head(500), 0.0)).delay, expected);
    }
}

TEST_F(HttpRetryTest, DelayStaysWithinItsBounds) {  // R-TEST-03, R-RETRY-71
    EXPECT_TRUE(rc::check("0.75 to 1 of min(0.5·2^n, 10) s", [] {
        auto const n = *rc::gen::inRange(0, 5000);
        auto const chance = static_cast<double>(*rc::gen::inRange(0, 1'000'000)) / 1e6;
        auto const full = n < 5 ? 500ms * (1 << n) : 10000ms;
        auto const delay = HttpRetry::backoff(n, chance);
        RC_ASSERT(delay <= full);
        RC_ASSERT(delay >= full * 3 / 4);
    }));
}

TEST_F(HttpRetryTest, GivesUpWhenTheAttemptsAreSpent) {  // R-RETRY-74
    auto retry = machine({.max_retries = 2});
    EXPECT_TRUE(retried(reply(retry, head(503))));
    EXPECT_TRUE(retried(fail(retry, FailureKind::reset)));
    auto const action = reply(retry, head(503));
    ASSERT_TRUE(std::holds_alternative<HttpRetry::Fail>(action));
    auto const& error = std::get<HttpRetry::Fail>(action).error;
    EXPECT_EQ(error.kind, ErrorKind::status);
    EXPECT_EQ(error.stopped, RetryEnd::attempts_spent);
    EXPECT_EQ(error.attempts, 3);
    EXPECT_TRUE(error.retryable);
    EXPECT_THAT(error.message, HasSubstr("gave up after 3 attempts"));
}

TEST_F(HttpRetryTest, FailsAtOnceWithoutRetries) {  // R-RETRY-74
    auto retry = machine({.max_retries = 0});
    auto const action = fail(retry, FailureKind::read_timeout);
    auto const& error = std::get<HttpRetry::Fail>(action).error;
    EXPECT_EQ(error.kind, ErrorKind::timeout);
    EXPECT_EQ(error.attempts, 1);
}

TEST_F(HttpRetryTest, DeliversAnyStatusIfAskedToOnceRetriesAreSpent) {  // R-EXT-90
    auto retry = machine({.max_retries = 1, .fail_on_status = false});
    EXPECT_TRUE(retried(reply(retry, head(503))));
    EXPECT_TRUE(std::holds_alternative<HttpRetry::Deliver>(reply(retry, head(503))));
    auto other = machine({.fail_on_status = false});
    EXPECT_TRUE(std::holds_alternative<HttpRetry::Deliver>(reply(other, head(404))));
}

TEST_F(HttpRetryTest, DoesNotBeginAnewOnceDataWasDelivered) {
    auto retry = machine();
    auto const action = retry.on_failure({.kind = FailureKind::reset}, true, 0.5, {});
    auto const& error = std::get<HttpRetry::Fail>(action).error;
    EXPECT_EQ(error.stopped, RetryEnd::not_repeatable);
}

TEST_F(HttpRetryTest, TakesAnEmpty400ForAProxysRejection) {  // R-RETRY-75
    for (Headers const& headers : {Headers{}, Headers{{"Content-Length", "0"}}}) {
        auto retry = machine();
        auto const action = reply(retry, head(400, headers));
        ASSERT_TRUE(std::holds_alternative<HttpRetry::Fail>(action));
        auto const& error = std::get<HttpRetry::Fail>(action).error;
        EXPECT_EQ(error.kind, ErrorKind::connection);
        EXPECT_TRUE(error.retryable);
        EXPECT_EQ(error.attempts, 1);
    }
    auto genuine = machine();
    auto const action = reply(genuine, head(400));
    EXPECT_EQ(std::get<HttpRetry::Fail>(action).error.kind, ErrorKind::status);
    EXPECT_EQ(budget.left(Purpose::rest), RejectionBudget::full - 2);
}

TEST_F(HttpRetryTest, ARejectionAfterOtherFailuresCountsThem) {  // R-RETRY-75
    auto retry = machine();
    EXPECT_TRUE(retried(reply(retry, head(503))));
    auto const action = reply(retry, head(400, {}));
    auto const& error = std::get<HttpRetry::Fail>(action).error;
    EXPECT_EQ(error.kind, ErrorKind::connection);
    EXPECT_EQ(error.attempts, 2);
    EXPECT_THAT(error.message, HasSubstr("gave up after 2 attempts"));
}

TEST_F(HttpRetryTest, SpentRejectionBudgetMakesItAPlain400) {  // R-RETRY-75
    auto const kind = [this](Purpose purpose) {
        auto retry = machine({.purpose = purpose});
        auto const action = reply(retry, head(400, {}));
        return std::get<HttpRetry::Fail>(action).error.kind;
    };
    for (int i = 0; i < RejectionBudget::full; ++i) {
        EXPECT_EQ(kind(Purpose::rest), ErrorKind::connection);
    }
    EXPECT_EQ(kind(Purpose::rest), ErrorKind::status);
    EXPECT_EQ(kind(Purpose::train), ErrorKind::connection) << "each purpose has its own budget";
}

TEST_F(HttpRetryTest, APlain500EndsACallThatWasTriedInAnotherEncoding) {  // R-WIRE-10
    Headers const plain{{"content-type", "text/plain; charset=utf-8"}, {"content-length", "2"}};
    auto usual = machine();
    EXPECT_TRUE(retried(reply(usual, head(500, plain))));
    auto tried = machine({.plain_500_ends = true});
    EXPECT_TRUE(retried(reply(tried, head(500)))) << "only a plain text says so";
    EXPECT_TRUE(retried(reply(tried, head(503, plain))));
    auto const action = reply(tried, head(500, plain));
    ASSERT_TRUE(std::holds_alternative<HttpRetry::Fail>(action));
    auto const& error = std::get<HttpRetry::Fail>(action).error;
    EXPECT_EQ(error.http_status, 500);
    EXPECT_EQ(error.stopped, RetryEnd::not_repeatable) << "nor does the submit loop repeat it";
}

TEST_F(HttpRetryTest, WhatMayHaveBeenAppliedIsNotRepeatedIfThatMatters) {  // R-TRAIN-14
    HttpRetry::Rules const careful{.repeat_if_seen = false};
    for (int const status : {409, 429}) {
        auto retry = machine(careful);
        EXPECT_TRUE(retried(reply(retry, head(status)))) << status << " is a refusal";
    }
    for (int const status : {408, 500, 502, 503}) {
        auto retry = machine(careful);
        auto const action = reply(retry, head(status));
        ASSERT_TRUE(std::holds_alternative<HttpRetry::Fail>(action)) << status;
        EXPECT_EQ(std::get<HttpRetry::Fail>(action).error.stopped, RetryEnd::not_repeatable);
    }
    for (auto const seen : {Seen::no, Seen::partly}) {
        auto retry = machine(careful);
        EXPECT_TRUE(
            retried(retry.on_failure({.kind = FailureKind::reset, .seen = seen}, false, 0.5, {})));
    }
    auto retry = machine(careful);
    auto const action =
        retry.on_failure({.kind = FailureKind::reset, .seen = Seen::maybe}, false, 0.5, {});
    auto const& error = std::get<HttpRetry::Fail>(action).error;
    EXPECT_EQ(error.stopped, RetryEnd::not_repeatable);
    EXPECT_THAT(error.message, HasSubstr("may have been applied"));
}

TEST_F(HttpRetryTest, EverySuccessRestoresOneUnit) {  // R-RETRY-75
    auto retry = machine();
    (void)reply(retry, head(400, {}));
    (void)reply(retry, head(400, {}));
    (void)reply(retry, head(200));
    EXPECT_EQ(budget.left(Purpose::rest), RejectionBudget::full - 1);
    (void)reply(retry, head(200));
    (void)reply(retry, head(200));
    EXPECT_EQ(budget.left(Purpose::rest), RejectionBudget::full);
}

}  // namespace
}  // namespace tinkxx::service
