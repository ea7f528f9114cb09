#include "service/text/retry_after.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

WallTime const now{1'800'000'000s};

std::optional<std::chrono::nanoseconds> hint(Headers const& headers) {
    return retry_after(headers, now, longest_retry_after);
}

TEST(RetryAfter, PrefersMillisecondsThenSecondsThenDates) {  // R-RETRY-71
    EXPECT_EQ(hint({{"retry-after", "3"}, {"retry-after-ms", "1500"}}), 1500ms);
    EXPECT_EQ(hint({{"retry-after", "0.25"}}), 250ms);
    EXPECT_EQ(hint({{"retry-after", "Fri, 15 Jan 2027 08:00:30 GMT"}}), 30s);
    EXPECT_EQ(hint({}), std::nullopt);
}

TEST(RetryAfter, ReadsOnWhenAFormMakesNoSense) {  // R-RETRY-71; C-46: the official SDK stops here
    for (auto const* ms : {"0", "-5", "nan", "inf", "x", ""}) {
        EXPECT_EQ(hint({{"retry-after-ms", ms}, {"retry-after", "3"}}), 3s) << ms;
    }
}

// R-RETRY-71, C-46: the official SDK drops such a hint, and asks a server that wants to be left
// alone for an hour again after half a second.
TEST(RetryAfter, AHintOfMoreThanAMinuteMeansAMinute) {
    EXPECT_EQ(hint({{"retry-after", "60.001"}}), 60s);
    EXPECT_EQ(hint({{"retry-after", "3600"}}), 60s);
    EXPECT_EQ(hint({{"retry-after", "1e300"}}), 60s);
    EXPECT_EQ(hint({{"retry-after-ms", "60001"}}), 60s);
    EXPECT_EQ(hint({{"retry-after-ms", "60001"}, {"retry-after", "3"}}), 60s);
    EXPECT_EQ(hint({{"retry-after", "Fri, 15 Jan 2027 08:01:01 GMT"}}), 60s);
    EXPECT_EQ(hint({{"retry-after", "Sat, 31 Dec 2250 23:59:59 GMT"}}), 60s);
}

TEST(RetryAfter, IsUsedOnlyAboveZero) {  // R-RETRY-71
    EXPECT_EQ(hint({{"retry-after", "60"}}), 60s);
    EXPECT_EQ(hint({{"retry-after", "0"}}), std::nullopt);
    EXPECT_EQ(hint({{"retry-after", "-1"}}), std::nullopt);
    EXPECT_EQ(hint({{"retry-after", "Fri, 15 Jan 2027 08:00:00 GMT"}}), std::nullopt);
    EXPECT_EQ(hint({{"retry-after", "Sun, 15 Jan 1713 08:00:30 GMT"}}), std::nullopt);
}

TEST(RetryAfter, IsAlwaysInRangeWhateverTheServerSays) {  // R-TEST-03
    EXPECT_TRUE(rc::check("0 < wait <= 60 s", [](std::string const& ms, std::string const& s) {
        if (auto const wait = hint({{"retry-after-ms", ms}, {"retry-after", s}})) {
            RC_ASSERT(*wait > 0s);
            RC_ASSERT(*wait <= 60s);
        }
    }));
    EXPECT_TRUE(rc::check("numbers are kept", [] {
        auto const ms = *rc::gen::inRange(1, 60001);
        RC_ASSERT(hint({{"retry-after-ms", std::to_string(ms)}}) == std::chrono::milliseconds{ms});
    }));
}

}  // namespace
}  // namespace tinkxx::service
