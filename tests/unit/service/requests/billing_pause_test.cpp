#include "service/requests/billing_pause.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TimePoint at(std::chrono::seconds time) { return TimePoint{} + 1h + time; }

TEST(BillingPause, PausesAndWarnsWithWhatTheServerSaid) {  // R-SAMP-51
    BillingPause billing;
    auto const verdict = billing.on_402(at(0s), "card expired");
    EXPECT_TRUE(verdict.pause);
    EXPECT_EQ(verdict.level, LogLevel::warning);
    EXPECT_THAT(verdict.line, HasSubstr("card expired"));
    EXPECT_EQ(billing.since(), at(0s));
    EXPECT_EQ(billing.last_warning(), at(0s));
}

TEST(BillingPause, WarnsOnceAMinute) {  // R-SAMP-51
    BillingPause billing;
    (void)billing.on_402(at(0s), "x");
    EXPECT_EQ(billing.on_402(at(59s), "x").line, "");
    EXPECT_NE(billing.on_402(at(60s), "x").line, "");
    EXPECT_EQ(billing.on_402(at(119s), "x").line, "");
    EXPECT_EQ(billing.since(), at(0s)) << "the incident is still the first one";
}

TEST(BillingPause, FailsOnceTheIncidentIsOlderThanTheLimit) {  // R-SAMP-51
    BillingPause billing;
    billing.set_limit(60s);
    (void)billing.on_402(at(0s), "x");
    EXPECT_TRUE(billing.on_402(at(60s), "x").pause);
    auto const verdict = billing.on_402(at(61s), "unpaid");
    EXPECT_FALSE(verdict.pause);
    EXPECT_EQ(verdict.level, LogLevel::error);
    EXPECT_THAT(verdict.line, HasSubstr("for 61 s"));
    EXPECT_THAT(verdict.line, HasSubstr("unpaid"));
}

TEST(BillingPause, WaitsForAnHourUnlessTheServerSaysOtherwise) {  // R-SAMP-51
    BillingPause billing;
    for (auto t = 0s; t <= 3600s; t += 5s) ASSERT_TRUE(billing.on_402(at(t), "x").pause);
    EXPECT_FALSE(billing.on_402(at(3605s), "x").pause);
}

TEST(BillingPause, ForgetsAnIncidentFiveMinutesAfterItsLastWarning) {  // R-SAMP-50, R-SAMP-51
    BillingPause billing;
    billing.set_limit(60s);
    (void)billing.on_402(at(0s), "x");
    EXPECT_FALSE(billing.on_402(at(300s), "x").pause) << "not older yet";
    EXPECT_TRUE(billing.on_402(at(301s), "x").pause);
    EXPECT_EQ(billing.since(), at(301s));
}

}  // namespace
}  // namespace tinkxx::service
