#include "service/requests/submit_retry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

TimePoint const start = TimePoint{} + 1h;

Error status(int code) {
    return Error{{.kind = code == 402 ? ErrorKind::billing : ErrorKind::status,
                  .message = "x",
                  .http_status = code}};
}
Error lost() { return Error{{.kind = ErrorKind::connection, .retryable = true}}; }

std::optional<std::chrono::nanoseconds> delay(SubmitRetry::Action const& action) {
    auto const* wait = std::get_if<SubmitRetry::Wait>(&action);
    return wait != nullptr ? std::optional{wait->delay} : std::nullopt;
}

TEST(SubmitRetry, RepeatsWhatMayGoAway) {  // R-RETRY-80
    for (int const code : {408, 409, 429, 500, 501, 503, 599}) {
        EXPECT_TRUE(repeats_submit(status(code))) << code;
    }
    for (int const code : {302, 400, 401, 402, 403, 404, 410, 418, 422, 425, 499, 600}) {
        EXPECT_FALSE(repeats_submit(status(code))) << code;
    }
    EXPECT_TRUE(repeats_submit(lost()));
    EXPECT_TRUE(repeats_submit(Error{{.kind = ErrorKind::timeout, .retryable = true}}));
    EXPECT_FALSE(repeats_submit(Error{{.kind = ErrorKind::connection}})) << "an answer too large";
    EXPECT_FALSE(repeats_submit(Error{{.kind = ErrorKind::promise_lost, .retryable = true}}));
    EXPECT_FALSE(repeats_submit(Error{{.kind = ErrorKind::validation}}));
    EXPECT_FALSE(repeats_submit(Error{{.kind = ErrorKind::cancelled}}));
    EXPECT_FALSE(repeats_submit(Error{
        {.kind = ErrorKind::connection, .retryable = true, .stopped = RetryEnd::not_repeatable}}));
}

TEST(SubmitRetry, DoublesItsWaitUpToThirtySeconds) {  // R-RETRY-81
    SubmitRetry retry{start};
    auto now = start;
    std::vector<std::chrono::nanoseconds> waits;
    while (auto const wait = delay(retry.on_error(status(503), now))) {
        waits.push_back(*wait);
        now += *wait;
    }
    std::vector<std::chrono::nanoseconds> expected{1s, 2s, 4s, 8s, 16s};
    expected.insert(expected.end(), 8, 30s);
    expected.emplace_back(29s);  // cut: the last attempt starts at the 300 s mark
    EXPECT_EQ(waits, expected);
    EXPECT_EQ(now, start + 300s);
    EXPECT_EQ(retry.attempts(), 15);
}

TEST(SubmitRetry, FailsWhenTheTimeIsOver) {  // R-RETRY-80
    SubmitRetry retry{start};
    EXPECT_EQ(delay(retry.on_error(lost(), start + 299s)), 1s);
    auto const action = retry.on_error(lost(), start + 300s);
    ASSERT_TRUE(std::holds_alternative<SubmitRetry::Fail>(action));
    EXPECT_TRUE(std::get<SubmitRetry::Fail>(action).out_of_time);
}

TEST(SubmitRetry, FailsAtOnceWhenRepeatingCannotHelp) {  // R-RETRY-80
    SubmitRetry retry{start};
    auto const action = retry.on_error(status(404), start);
    ASSERT_TRUE(std::holds_alternative<SubmitRetry::Fail>(action));
    EXPECT_FALSE(std::get<SubmitRetry::Fail>(action).out_of_time);
}

TEST(SubmitRetry, BillingPausesCountNeitherAsAttemptNorAsTime) {  // R-RETRY-82
    SubmitRetry retry{start};
    EXPECT_EQ(delay(retry.on_error(status(503), start)), 1s);
    auto now = start + 1s;
    for (int i = 0; i < 700; ++i) {
        now += 400ms;  // the attempt that was refused is no time of its own either
        EXPECT_EQ(retry.on_billing_pause(now).delay, 5s);
        now += 5s;
    }
    EXPECT_EQ(retry.attempts(), 1);
    EXPECT_EQ(retry.elapsed(now), 1s);
    EXPECT_EQ(delay(retry.on_error(status(503), now)), 2s);
}

RC_GTEST_PROP(SubmitRetry, NeverWaitsBeyondItsTime, ()) {  // R-RETRY-81, R-TEST-03
    SubmitRetry retry{start};
    auto now = start;
    for (int i = 0; i < 400; ++i) {
        now += std::chrono::milliseconds{*rc::gen::inRange(0, 60'000)};
        auto const wait = delay(retry.on_error(lost(), now));
        RC_ASSERT(wait.has_value() == (now < start + 300s));
        if (!wait) return;
        RC_ASSERT(*wait > 0s && *wait <= 30s);
        now += *wait;
        RC_ASSERT(now <= start + 300s);
    }
    RC_FAIL("never ended");
}

}  // namespace
}  // namespace tinkxx::service
