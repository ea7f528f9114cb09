#include "service/auth/token_clock.hpp"

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

WallTime const now{std::chrono::seconds{1'800'000'000}};

TEST(TokenClock, RenewsFiveMinutesBeforeTheEnd) {  // R-AUTH-12
    TokenClock clock;
    EXPECT_EQ(clock.on_token(now + 1000s, now), 700s);
    EXPECT_EQ(clock.due_in(now + 699s), 1s);
    EXPECT_EQ(clock.due_in(now + 700s), 0s);
}

TEST(TokenClock, RenewsAtOnceIfThatIsPast) {  // R-AUTH-12
    TokenClock clock;
    EXPECT_EQ(clock.on_token(now + 299s, now), 0s);
}

TEST(TokenClock, DoesNotAskWithoutEndForTokensThatAreNearlyOver) {  // R-AUTH-12
    TokenClock clock;
    EXPECT_EQ(clock.on_token(now + 200s, now), 0s);
    EXPECT_EQ(clock.on_token(now + 200s, now + 1s), 60s);
    EXPECT_EQ(clock.on_token(now + 261s, now + 61s), 0s);
}

TEST(TokenClock, WaitsAMinuteAfterAFailureOrAnUnreadableEnd) {  // R-AUTH-12
    TokenClock clock;
    EXPECT_EQ(clock.on_token(std::nullopt, now), 60s);
    EXPECT_EQ(clock.due_in(now + 60s), 0s);
    EXPECT_EQ(clock.on_failure(), 60s);
    EXPECT_FALSE(clock.fresh(now)) << "nobody knows";
}

TEST(TokenClock, ATokenIsFreshWithMoreThanAMinuteLeft) {  // R-AUTH-13
    TokenClock clock;
    EXPECT_FALSE(clock.fresh(now));
    (void)clock.on_token(now + 100s, now);
    EXPECT_TRUE(clock.fresh(now + 39s));
    EXPECT_FALSE(clock.fresh(now + 40s));
}

TEST(TokenClock, MakesLongWaitsOfSeveral) {
    TokenClock clock;
    EXPECT_EQ(clock.on_token(now + 87600h, now), 1h) << "the time of day may be set meanwhile";
    EXPECT_EQ(clock.due_in(now + 87600h), 0s);
}

}  // namespace
}  // namespace tinkxx::service
