#include <tinkxx/log.hpp>

#include <gtest/gtest.h>

namespace tinkxx {
namespace {

TEST(Log, ReadsLevelsInAnyCase) {
    EXPECT_EQ(parse_log_level("debug"), LogLevel::debug);
    EXPECT_EQ(parse_log_level("INFO"), LogLevel::info);
    EXPECT_EQ(parse_log_level("warn"), LogLevel::warning);
    EXPECT_EQ(parse_log_level("Warning"), LogLevel::warning);
    EXPECT_EQ(parse_log_level("error"), LogLevel::error);
    EXPECT_EQ(parse_log_level("off"), LogLevel::off);
    EXPECT_EQ(parse_log_level("loud"), std::nullopt);
    EXPECT_EQ(parse_log_level(""), std::nullopt);
}

TEST(Log, WritesOneLineToStderrEach) {  // C-68
    ::testing::internal::CaptureStderr();
    stderr_log()(LogLevel::warning, "two\nlines");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tinkxx: warning: two lines\n");
}

TEST(Log, ShowsNothingThatATerminalWouldObey) {
    EXPECT_EQ(one_line("a\x1b[2Jb\x07\x7f"), "a?[2Jb??");
    EXPECT_EQ(one_line("tab\tand\r\nbreak"), "tab and  break");
    EXPECT_EQ(one_line("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"),
              "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82");
    // A control character of two bytes, a byte alone, too long a form, half of a pair, out of
    // range.
    EXPECT_EQ(one_line("\xc2\x9b|\xff|\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82"),
              "??|?|??|???|????|??");
    ::testing::internal::CaptureStderr();
    stderr_log()(LogLevel::error, "\x1b]0;title\x07");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tinkxx: error: ?]0;title?\n");
}

TEST(Log, IsSilentWhenAskedToBe) {  // C-68
    ::testing::internal::CaptureStderr();
    silent_log()(LogLevel::error, "anything");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tinkxx
