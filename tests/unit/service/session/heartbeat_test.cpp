#include "service/session/heartbeat.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TimePoint const created = TimePoint{} + 1h;

Error failure(int code = 503) {
    return Error{{.kind = ErrorKind::status, .message = "server is down", .http_status = code}};
}

TEST(Heartbeat, BeatsEveryTenSecondsAndFirstAfterTen) {  // R-SESS-10
    Heartbeat beat{"s-1", {}, created};
    EXPECT_EQ(beat.first(), created + 10s);
    beat.on_sent(created + 10s);
    EXPECT_EQ(beat.on_success(created + 12s).at, created + 20s);
    beat.on_sent(created + 20s);
    EXPECT_EQ(beat.on_error(failure(), created + 31s).at, created + 31s) << "never in the past";
}

TEST(Heartbeat, KeepsItsIntervalWhenTold) {  // R-SESS-13
    Heartbeat const beat{"s-1", {.heartbeat = 3s}, created};
    EXPECT_EQ(beat.first(), created + 3s);
}

TEST(Heartbeat, SwallowsFailuresForTwoMinutes) {  // R-SESS-11
    Heartbeat beat{"s-1", {}, created};
    EXPECT_EQ(beat.on_error(failure(), created + 120s).line, "");
    auto const next = beat.on_error(failure(), created + 130s);
    EXPECT_EQ(next.level, LogLevel::warning);
    EXPECT_THAT(next.line, HasSubstr("130 s"));
    EXPECT_THAT(next.line, HasSubstr("s-1"));
    EXPECT_THAT(next.line, HasSubstr("server is down"));
    EXPECT_THAT(next.line, HasSubstr("may have ended the session"));
    EXPECT_NE(beat.on_error(failure(), created + 140s).line, "") << "repeated";
    EXPECT_EQ(beat.on_success(created + 150s).line, "");
    EXPECT_EQ(beat.on_error(failure(), created + 160s).line, "");
    EXPECT_EQ(beat.last_success(), created + 150s);
}

TEST(Heartbeat, EndsForGoodWhenTheSessionHasFinished) {  // R-SESS-14
    Heartbeat beat{"s-1", {}, created};
    auto const next = beat.on_error(failure(410), created + 500s);
    EXPECT_FALSE(next.at);
    EXPECT_EQ(next.level, LogLevel::info);
    EXPECT_THAT(next.line, HasSubstr("finished"));
}

TEST(Heartbeat, GivesUpAfterTooManyFailuresIfToldTo) {  // R-SESS-12
    Heartbeat beat{"s-1", {.heartbeat_max_failures = 3}, created};
    EXPECT_TRUE(beat.on_error(failure(), created + 10s).at);
    EXPECT_TRUE(beat.on_error(failure(), created + 20s).at);
    (void)beat.on_success(created + 30s);
    EXPECT_TRUE(beat.on_error(failure(), created + 40s).at) << "in a row, that is";
    EXPECT_TRUE(beat.on_error(failure(), created + 50s).at);
    auto const next = beat.on_error(failure(), created + 60s);
    EXPECT_FALSE(next.at);
    EXPECT_EQ(next.level, LogLevel::warning);
    EXPECT_THAT(next.line, HasSubstr("given up after 3 failures"));
}

TEST(Heartbeat, GivesUpAfterTooLongASilenceIfToldTo) {  // R-SESS-12
    Heartbeat beat{"s-1", {.heartbeat_max_silence = 60s}, created};
    EXPECT_TRUE(beat.on_error(failure(), created + 59s).at);
    EXPECT_FALSE(beat.on_error(failure(), created + 60s).at);
}

TEST(Heartbeat, NeverGivesUpByItself) {  // R-SESS-12
    Heartbeat beat{"s-1", {}, created};
    for (int i = 1; i < 1000; ++i) EXPECT_TRUE(beat.on_error(failure(), created + i * 10s).at);
}

}  // namespace
}  // namespace tinkxx::service
