#include "service/rest/archive_machine.hpp"

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

Error status(int code) {
    return Error{{.kind = ErrorKind::status, .message = "refused", .http_status = code}};
}

TEST(ArchiveMachine, AsksSixTimesAtMost) {  // R-REST-10
    ArchiveMachine machine;
    for (int i = 1; i < 6; ++i) {
        auto const action = machine.on_error(status(503));
        ASSERT_TRUE(std::holds_alternative<AskAgain>(action)) << i;
        EXPECT_EQ(std::get<AskAgain>(action).delay, std::chrono::seconds{30});
    }
    auto const action = machine.on_error(status(503));
    ASSERT_TRUE(std::holds_alternative<AskInVain>(action));
    EXPECT_EQ(std::get<AskInVain>(action).error.stopped(), RetryEnd::attempts_spent);
}

TEST(ArchiveMachine, LeavesOtherFailuresToTheSubmitLoop) {  // R-REST-10
    EXPECT_FALSE(ArchiveMachine::may_repeat(status(503)));
    EXPECT_TRUE(ArchiveMachine::may_repeat(status(500)));
    EXPECT_TRUE(ArchiveMachine::may_repeat(Error{{.kind = ErrorKind::connection}}));
    ArchiveMachine machine;
    auto const action = machine.on_error(status(500));
    ASSERT_TRUE(std::holds_alternative<AskInVain>(action));
    EXPECT_STREQ(std::get<AskInVain>(action).error.what(), "refused");
}

TEST(ArchiveMachine, TakesAnExpiryThatIsNoneAsAQuarterOfAnHour) {  // R-REST-10
    ArchiveMachine machine;
    WallTime const now{std::chrono::sys_days{std::chrono::year{2026} / 5 / 27}};
    for (auto const* expires : {"0", "", "soon"}) {
        auto const action = machine.on_response(
            {.status = 302, .headers = {{"Location", "https://x"}, {"Expires", expires}}}, now);
        ASSERT_TRUE(std::holds_alternative<Answered<ArchiveUrl>>(action));
        EXPECT_EQ(std::get<Answered<ArchiveUrl>>(action).value.expires.time,
                  std::chrono::floor<std::chrono::microseconds>(now + std::chrono::minutes{15}));
    }
}

}  // namespace
}  // namespace tinkxx::service
