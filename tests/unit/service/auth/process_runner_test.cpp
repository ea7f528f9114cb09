#include "service/auth/process_runner.hpp"

#include <tinkxx/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <string>

// Real processes and a real loop. Nothing here waits for a time: the processes end, or are ended.

namespace tinkxx::service {
namespace {

using End = ProcessOutcome::End;

struct Ended final : ProcessListener {
    void on_process_end(ProcessOutcome outcome) override {
        auto const keep_alive = promise;  // whoever waits for it may be quicker than its end
        keep_alive->set_value(std::move(outcome));
    }
    std::shared_ptr<std::promise<ProcessOutcome>> promise{
        std::make_shared<std::promise<ProcessOutcome>>()};
};

struct ProcessRunnerTest : ::testing::Test {
    ~ProcessRunnerTest() override {
        on_loop([this] { runner.reset(); });
    }
    template <class Fn>
    void on_loop(Fn fn) {
        auto const done = std::make_shared<std::promise<void>>();
        runtime.scheduler().post([&fn, done] {
            fn();
            done->set_value();
        });
        done->get_future().wait();
    }
    ProcessOutcome run(std::string const& command) {
        Ended ended;
        on_loop([&] { runner->start(command, ended); });
        return ended.promise->get_future().get();
    }

    Runtime runtime{};
    std::shared_ptr<ProcessRunner> runner{shell_runner(runtime.core())};
};

TEST_F(ProcessRunnerTest, RunsACommandThroughTheShell) {  // R-AUTH-20
    auto const outcome = run("printf 'tml-%s' $((40 + 2)) | cat");
    EXPECT_EQ(outcome.end, End::exited);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.output, "tml-42");
}

TEST_F(ProcessRunnerTest, ReportsHowItEnded) {  // R-AUTH-20
    EXPECT_EQ(run("exit 3").code, 3);
    auto const signalled = run("kill -TERM $$");
    EXPECT_EQ(signalled.end, End::signalled);
    EXPECT_EQ(signalled.code, SIGTERM);
}

TEST_F(ProcessRunnerTest, GivesNothingToRead) { EXPECT_EQ(run("cat; echo end").output, "end\n"); }

TEST_F(ProcessRunnerTest, EndsACommandThatSaysTooMuch) {
    EXPECT_EQ(run("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done").end,
              End::too_talkative);
}

TEST_F(ProcessRunnerTest, KillsTheCommandAndWhatItStarted) {  // R-AUTH-20
    // The grandchild holds the pipe open for as long as it lives.
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    auto const name = "/dev/fd/" + std::to_string(pipe[1]);
    Ended ended;
    std::uint64_t number = 0;
    on_loop([&] {
        number = runner->start("(echo $$ > " + name + "; sleep 1000) & sleep 1000", ended);
    });
    ::close(pipe[1]);
    char byte = 0;
    ASSERT_EQ(::read(pipe[0], &byte, 1), 1) << "both run";
    on_loop([&] { runner->kill(number); });
    while (::read(pipe[0], &byte, 1) > 0) {
    }  // ends only when nobody has the pipe any more
    ::close(pipe[0]);
    on_loop([this] { runner.reset(); });
    EXPECT_EQ(ended.promise->get_future().wait_for(std::chrono::seconds{0}),
              std::future_status::timeout)
        << "a command that was killed tells nobody";
}

TEST_F(ProcessRunnerTest, EndsItsCommandsWithItself) {  // R-AUTH-20
    Ended ended;
    on_loop([&] {
        runner->start("sleep 1000", ended);
        runner.reset();
    });
}

}  // namespace
}  // namespace tinkxx::service
