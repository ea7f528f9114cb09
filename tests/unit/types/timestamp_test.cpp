#include <tinkxx/types/timestamp.hpp>

#include <gtest/gtest.h>

#include <string>

namespace tinkxx {
namespace {

std::string again(std::string_view text) {
    auto const time = parse_timestamp(text);
    return time ? to_string(*time) : "none";
}

TEST(Timestamp, IsWrittenAsItWasRead) {  // R-WIRE-07
    for (std::string const text :
         {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678901+05:30", "2026-01-02T03:04:05",
          "1969-12-31T23:59:59.999999-08:00", "2024-02-29T00:00:00Z"}) {
        EXPECT_EQ(again(text), text);
    }
}

TEST(Timestamp, ComesInManyForms) {  // R-WIRE-07
    EXPECT_EQ(again("2026-01-02"), "2026-01-02T00:00:00");
    EXPECT_EQ(again("2026-01-02 03:04:05.5Z"), "2026-01-02T03:04:05.500000Z");
    EXPECT_EQ(again("2026-01-02T03:04"), "2026-01-02T03:04:00");
    EXPECT_EQ(again("2026-01-02T03:04:05.1234567Z"), "2026-01-02T03:04:05.123456Z");
    EXPECT_EQ(again("2026-01-02T03:04:05-0130"), "2026-01-02T03:04:05-01:30");
    EXPECT_EQ(again("1767322805"), "2026-01-02T03:00:05Z");
    EXPECT_EQ(again("1767322805.25"), "2026-01-02T03:00:05.250000Z");
    EXPECT_EQ(again("1767322805123"), "2026-01-02T03:00:05.123000Z");
    EXPECT_EQ(parse_timestamp("2026-01-02T03:04:05+05:30")->time,
              parse_timestamp("2026-01-01T21:34:05Z")->time);
}

TEST(Timestamp, IsNotMadeOfJustAnything) {  // R-WIRE-07
    for (auto const* text :
         {"", "02/01/2026", "2026-13-01", "2026-02-30", "0000-01-01", "2026-01-02T", "yesterday",
          "2026-01-02T25:00:00Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05+5", "nan", "inf",
          "1e400", "2026-01-02T03:04:05ZZ", "9999999999999999999"}) {
        EXPECT_FALSE(parse_timestamp(text)) << text;
    }
}

}  // namespace
}  // namespace tinkxx
