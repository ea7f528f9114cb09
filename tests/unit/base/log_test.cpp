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

TEST(Log, IsSilentWhenAskedToBe) {  // C-68
    ::testing::internal::CaptureStderr();
    silent_log()(LogLevel::error, "anything");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tinkxx
