#include "service/text/http_date.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdio>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

WallTime const now{1'800'000'000s};  // Fri, 15 Jan 2027 08:00:00 GMT

TEST(HttpDate, ReadsAllThreeForms) {  // R-RETRY-71
    WallTime const expected{784'111'777s};
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", now), expected);
    EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", now), expected);
    EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994", now), expected);
}

TEST(HttpDate, ReadsOtherZonesAndNone) {
    WallTime const expected{784'111'777s};
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 10:49:37 +0200", now), expected);
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 03:19:37 -0530", now), expected);
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37", now), expected);
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 UTC", now), expected);
}

TEST(HttpDate, PutsTwoDigitYearsAtMostFiftyYearsAhead) {
    EXPECT_EQ(parse_http_date("Friday, 01-Jan-77 00:00:00 GMT", now), WallTime{3'376'684'800s});
    EXPECT_EQ(parse_http_date("Sunday, 01-Jan-78 00:00:00 GMT", now), WallTime{252'460'800s});
}

TEST(HttpDate, RefusesWhatIsNoDate) {
    for (auto const* bad : {"",
                            "x",
                            "Sun",
                            "Sun,",
                            "Sun, 06",
                            "Sun, 06 Nov",
                            "Sun, 06 Nov 1994",
                            "10",
                            "Sun, 06 Nov 1994 08:49",
                            "Sun, 06 Nov 1994 24:00:00 GMT",
                            "Sun, 06 Nov 1994 08:60:00 GMT",
                            "Sun, 06 Nov 1994 08:49:61 GMT",
                            "Sun, 31 Feb 1994 08:49:37 GMT",
                            "Sun, 00 Nov 1994 08:49:37 GMT",
                            "Sun, 06 Foo 1994 08:49:37 GMT",
                            "Sun, 06 Nov 994 08:49:37 GMT",
                            "Sun, 06 Nov 19940 08:49:37 GMT",
                            "Sun, 06 Nov 1994 08:49:37 CET",
                            "Sun, 06 Nov 1994 08:49:37 GMT x",
                            "Sun, 06 Nov 1994 08:49:37 +02",
                            "Sun, 06-Nov 94 08:49:37 GMT",
                            "Sun Nov 6 08:49:37 94",
                            "2027-01-15T08:00:30Z",
                            "Sun, 06 Nov 9999 08:49:37 GMT"}) {
        EXPECT_FALSE(parse_http_date(bad, now)) << bad;
    }
}

TEST(HttpDate, ReadsBackEveryMoment) {
    EXPECT_TRUE(rc::check("a printed date is read as what was printed", [] {
        auto const seconds = *rc::gen::inRange<std::int64_t>(-5'000'000'000, 7'000'000'000);
        WallTime const moment{std::chrono::seconds{seconds}};
        auto const day = std::chrono::floor<std::chrono::days>(moment);
        std::chrono::year_month_day const date{day};
        std::chrono::hh_mm_ss const time{
            std::chrono::duration_cast<std::chrono::seconds>(moment - day)};
        static constexpr char const* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        char text[64];
        std::snprintf(
            text, sizeof text, "Mon, %02u %s %04d %02d:%02d:%02d GMT",
            static_cast<unsigned>(date.day()), months[static_cast<unsigned>(date.month()) - 1],
            static_cast<int>(date.year()), static_cast<int>(time.hours().count()),
            static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
        RC_ASSERT(parse_http_date(text, now) == moment);
    }));
}

TEST(HttpDate, SurvivesAnyText) {
    EXPECT_TRUE(rc::check("no text breaks it", [](std::string const& text) {
        (void)parse_http_date(text, now);
        (void)parse_http_date("Sun, 06 Nov 1994 " + text, now);
    }));
}

}  // namespace
}  // namespace tinkxx::service
