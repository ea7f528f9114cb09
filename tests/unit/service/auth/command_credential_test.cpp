#include "service/auth/command_credential.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using End = ProcessOutcome::End;

/// Commands that end when the test says so.
struct FakeRunner final : ProcessRunner {
    std::uint64_t start(std::string const& command, ProcessListener& listener) override {
        started.push_back(command);
        running[started.size()] = &listener;
        return started.size();
    }
    void kill(std::uint64_t run) noexcept override {
        killed.push_back(run);
        running.erase(run);
    }
    void finish(std::uint64_t run, ProcessOutcome outcome) {
        auto* listener = running.at(run);
        running.erase(run);
        listener->on_process_end(std::move(outcome));
    }
    std::vector<std::string> started{};
    std::vector<std::uint64_t> killed{};
    std::map<std::uint64_t, ProcessListener*> running{};
};

struct Waiter final : CredentialWaiter {
    void on_credential(Result<Credential> got) override {
        ++told;
        credential = std::move(got);
    }
    int told{0};
    std::optional<Result<Credential>> credential{};
};

struct CommandCredentialTest : ::testing::Test {
    tinkxx::testing::ManualClock clock{};
    std::shared_ptr<FakeRunner> runner{std::make_shared<FakeRunner>()};
    CommandCredential source{"print-key --now", runner, clock};
};

TEST_F(CommandCredentialTest, TakesTheTrimmedOutput) {  // R-AUTH-20
    Waiter waiter;
    EXPECT_FALSE(source.get(waiter));
    EXPECT_THAT(runner->started, ElementsAre("print-key --now"));
    runner->finish(1, {.output = "\n tml-1 \n"});
    ASSERT_EQ(waiter.told, 1);
    EXPECT_EQ(***waiter.credential, "tml-1");
    EXPECT_FALSE(source.running());
    EXPECT_EQ(clock.pending_timers(), 0U);
}

TEST_F(CommandCredentialTest, IsAskedAnewForEveryRequest) {  // R-AUTH-20
    Waiter waiter;
    (void)source.get(waiter);
    runner->finish(1, {.output = "tml-1"});
    (void)source.get(waiter);
    EXPECT_THAT(runner->started, SizeIs(2));
    runner->finish(2, {.output = "tml-2"});
    EXPECT_EQ(***waiter.credential, "tml-2");
}

TEST_F(CommandCredentialTest, RequestsAtOneTimeShareOneRun) {
    Waiter first;
    Waiter second;
    (void)source.get(first);
    (void)source.get(second);
    EXPECT_THAT(runner->started, SizeIs(1));
    runner->finish(1, {.output = "tml-1"});
    EXPECT_EQ(first.told, 1);
    EXPECT_EQ(second.told, 1);
}

TEST_F(CommandCredentialTest, SaysHowLongTheCommandMayStillRun) {  // R-AUTH-20
    Waiter waiter;
    (void)source.get(waiter);
    clock.advance(10s);
    EXPECT_EQ(source.standing().why, "the credential command is running");
    EXPECT_EQ(source.standing().until, clock.now() + 50s);
    EXPECT_THAT(source.standing().why, Not(HasSubstr("print-key")));
    runner->finish(1, {.output = "tml-1"});
    EXPECT_EQ(source.standing().until, std::nullopt);
}

TEST_F(CommandCredentialTest, EndsACommandThatTakesTooLong) {  // R-AUTH-20
    Waiter waiter;
    (void)source.get(waiter);
    clock.advance(60s - 1ns);
    EXPECT_EQ(waiter.told, 0);
    clock.advance(1ns);
    EXPECT_THAT(runner->killed, ElementsAre(1U));
    ASSERT_EQ(waiter.told, 1);
    EXPECT_EQ(waiter.credential->error().kind(), ErrorKind::timeout);
    EXPECT_FALSE(waiter.credential->error().retryable());
    EXPECT_THAT(waiter.credential->error().what(), HasSubstr("60 s"));
}

TEST_F(CommandCredentialTest, EndsACommandThatNobodyWaitsForAnyMore) {  // R-AUTH-20
    Waiter first;
    Waiter second;
    (void)source.get(first);
    (void)source.get(second);
    source.forget(first);
    EXPECT_THAT(runner->killed, IsEmpty());
    source.forget(second);
    EXPECT_THAT(runner->killed, ElementsAre(1U));
    EXPECT_FALSE(source.running());
    (void)source.get(first);
    EXPECT_THAT(runner->started, SizeIs(2));
}

TEST_F(CommandCredentialTest, EndsItsCommandWithItself) {  // R-AUTH-20
    Waiter waiter;
    {
        CommandCredential brief{"sleep", runner, clock};
        (void)brief.get(waiter);
    }
    EXPECT_THAT(runner->killed, SizeIs(1));
    EXPECT_EQ(waiter.told, 0);
}

TEST_F(CommandCredentialTest, IsKnownByTheTextOfItsCommand) {  // R-CONF-11
    EXPECT_EQ(source.identity(), "print-key --now");
}

TEST(CommandOutcome, FailuresSayWhatHappenedAndNameTheVariable) {  // R-AUTH-20
    auto const failure = [](ProcessOutcome const& outcome) {
        auto const result = credential_of(outcome);
        EXPECT_FALSE(result);
        EXPECT_EQ(result.error().category(), ErrorCategory::user);
        EXPECT_THAT(result.error().what(), HasSubstr("TINKER_CREDENTIAL_CMD"));
        EXPECT_THAT(result.error().what(), Not(HasSubstr("hunter2")));
        return std::string{result.error().what()};
    };
    EXPECT_THAT(failure({.output = " \n"}), HasSubstr("printed nothing"));
    EXPECT_THAT(failure({.code = 3, .output = "hunter2"}), HasSubstr("exit status 3"));
    EXPECT_THAT(failure({.end = End::signalled, .code = 9}), HasSubstr("signal 9"));
    EXPECT_THAT(failure({.end = End::not_started, .why = "no memory"}), HasSubstr("no memory"));
    EXPECT_THAT(failure({.end = End::too_talkative}), HasSubstr("too much"));
    EXPECT_THAT(failure({.output = "hunter2\nhunter2"}), HasSubstr("more than one word"));
}

}  // namespace
}  // namespace tinkxx::service
