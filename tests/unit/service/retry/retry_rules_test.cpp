#include "service/retry/retry_rules.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

double seconds(std::chrono::nanoseconds span) {
    return std::chrono::duration<double>{span}.count();
}

TEST(RetryDelay, DoublesUpToTheLimitWithinItsJitter) {  // R-RETRY-30, R-RETRY-32
    RetryConfig const config;
    double const plain[] = {0.5, 1, 2, 4, 8, 10, 10};
    for (int k = 0; k < 7; ++k) {
        EXPECT_NEAR(seconds(retry_delay(config, k, 0.5)), plain[k], 1e-9) << k;
        EXPECT_NEAR(seconds(retry_delay(config, k, 0)), plain[k] * 0.75, 1e-9) << k;
        EXPECT_NEAR(seconds(retry_delay(config, k, 1 - 1e-12)), std::min(plain[k] * 1.25, 10.0),
                    1e-9)
            << k;
    }
}

TEST(RetryDelay, AboutHalfTheDrawsAtTheLimitAreExactlyTheLimit) {  // R-RETRY-32
    RetryConfig const config;
    int at_limit = 0;
    for (int i = 0; i < 1000; ++i) {
        if (retry_delay(config, 20, i / 1000.0) == 10s) ++at_limit;
    }
    EXPECT_NEAR(at_limit, 500, 2);
}

TEST(RetryDelay, WithoutJitterIsExact) {  // R-RETRY-32
    RetryConfig const config{.jitter_factor = 0};
    EXPECT_EQ(retry_delay(config, 2, 0.123), 2s);
}

TEST(RetryDelay, AnyNumberOfAttemptsIsFine) {  // R-RETRY-31
    RetryConfig const config{.jitter_factor = 0};
    EXPECT_EQ(retry_delay(config, 2000, 0.5), 10s);
    EXPECT_EQ(retry_delay(config, std::numeric_limits<std::int64_t>::max(), 0.5), 10s);
}

RC_GTEST_PROP(RetryDelay, StaysWithinItsBoundsEverywhere, ()) {  // R-RETRY-30, R-TEST-03
    auto const base = *rc::gen::inRange<std::int64_t>(1, 1'000'000);
    auto const most = *rc::gen::inRange<std::int64_t>(base, 100'000'000);
    auto const jitter = *rc::gen::inRange(0, 1001) / 1000.0;
    auto const k = *rc::gen::inRange<std::int64_t>(0, 3000);
    auto const chance = *rc::gen::inRange(0, 1'000'000) / 1e6;
    RetryConfig const config{.retry_delay_base = std::chrono::milliseconds{base},
                             .retry_delay_max = std::chrono::milliseconds{most},
                             .jitter_factor = jitter};
    auto const plain = std::min(std::ldexp(static_cast<double>(base),
                                           static_cast<int>(std::min<std::int64_t>(k, 900))),
                                static_cast<double>(most)) /
                       1000;
    auto const delay = seconds(retry_delay(config, k, chance));
    RC_ASSERT(delay >= 0);
    RC_ASSERT(delay <= static_cast<double>(most) / 1000 + 1e-9);
    RC_ASSERT(delay >= plain * (1 - jitter) - 1e-9);
    RC_ASSERT(delay <= plain * (1 + jitter) + 1e-9);
}

}  // namespace
}  // namespace tinkxx::service
