#include "service/recovery/recovery_machine.hpp"

#include "service/recovery/recovery_queue.hpp"
#include "service/recovery/run_watch.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using Place = RecoveryQueue::Place;

Error trouble(std::string message = "no route") {
    return Error{{.kind = ErrorKind::connection, .message = std::move(message)}};
}

/// The numbers of a policy, which can be compared.
auto numbers(RecoveryPolicy const& policy) {
    return std::tuple{policy.max_attempts, policy.backoff, policy.max_backoff, policy.poll_interval,
                      policy.max_concurrent};
}

TEST(RecoveryPolicy, HasDefaultsThatWork) {  // R-EXT-40
    RecoveryPolicy const policy;
    EXPECT_EQ(policy.max_attempts, 3);
    EXPECT_EQ(policy.backoff, 5s);
    EXPECT_EQ(policy.max_backoff, 60s);
    EXPECT_EQ(policy.poll_interval, 30s);
    EXPECT_EQ(policy.max_concurrent, 1);
    EXPECT_EQ(numbers(policy.checked()), numbers(policy));
}

TEST(RecoveryPolicy, WhatCannotWorkStandsForItsDefault) {  // R-EXT-40
    RecoveryPolicy const wrong{.max_attempts = 0,
                               .backoff = 0ms,
                               .max_backoff = -1ms,
                               .poll_interval = std::chrono::milliseconds::max(),
                               .max_concurrent = -2};
    EXPECT_EQ(numbers(wrong.checked()), numbers(RecoveryPolicy{}));
    RecoveryPolicy const right{.max_attempts = 1,
                               .backoff = 1ms,
                               .max_backoff = 2ms,
                               .poll_interval = 3ms,
                               .max_concurrent = 4};
    EXPECT_EQ(numbers(right.checked()), numbers(right));
}

TEST(RecoveryPolicy, WaitsTwiceAsLongEachTimeUpToTheCap) {  // R-EXT-42
    RecoveryPolicy const policy;
    EXPECT_EQ(delay_after(1, policy), 5s);
    EXPECT_EQ(delay_after(2, policy), 10s);
    EXPECT_EQ(delay_after(4, policy), 40s);
    EXPECT_EQ(delay_after(5, policy), 60s);
    EXPECT_EQ(delay_after(2'000'000'000, policy), 60s);
    EXPECT_EQ(delay_after(1, RecoveryPolicy{.backoff = 5s, .max_backoff = 2s}), 2s);
}

TEST(RecoveryMachine, GivesUpAtOnceWhatCannotHeal) {  // R-EXT-42
    RecoveryMachine machine{"run", RecoveryPolicy{}, "tinker://r/weights/a"};
    (void)machine.begin();
    EXPECT_TRUE(std::holds_alternative<RecoveryMachine::Wait>(machine.on_error(trouble())));
    auto details = trouble("its certificate is refused").details();
    details.stopped = RetryEnd::permanent;
    EXPECT_TRUE(std::holds_alternative<RecoveryMachine::GiveUp>(machine.on_error(Error{details})));
}

TEST(RunWatch, AsksAgainUntilTheRunIsCorrupted) {  // R-EXT-41
    RunWatch watch{30s};
    auto action = watch.on_run({.corrupted = false, .last_checkpoint = "tinker://r/weights/a"});
    ASSERT_TRUE(std::holds_alternative<RunWatch::Wait>(action));
    EXPECT_EQ(std::get<RunWatch::Wait>(action).delay, 30s);
    action = watch.on_run({.corrupted = true, .last_checkpoint = "tinker://r/weights/b"});
    ASSERT_TRUE(std::holds_alternative<RunWatch::Recover>(action));
    EXPECT_EQ(std::get<RunWatch::Recover>(action).checkpoint, "tinker://r/weights/b");
    EXPECT_EQ(watch.polls(), 2);
}

TEST(RunWatch, KeepsItsStateWhenItCannotAsk) {  // R-EXT-41
    RunWatch watch{30s};
    auto const action = watch.on_error(trouble());
    ASSERT_TRUE(std::holds_alternative<RunWatch::Wait>(action));
    EXPECT_STREQ(watch.trouble().value().what(), "no route");
    (void)watch.on_run({});
    EXPECT_FALSE(watch.trouble());
}

TEST(RecoveryQueue, WorksOnSoManyRunsAtATimeInTheirOrder) {  // R-EXT-42
    RecoveryQueue queue{2};
    EXPECT_EQ(queue.add("a"), Place::begins);
    EXPECT_EQ(queue.add("b"), Place::begins);
    EXPECT_EQ(queue.add("c"), Place::waits);
    EXPECT_EQ(queue.add("d"), Place::waits);
    EXPECT_EQ(queue.active(), 2U);
    EXPECT_EQ(queue.remove("b"), "c");
    EXPECT_EQ(queue.remove("a"), "d");
    EXPECT_EQ(queue.remove("c"), std::nullopt);
    EXPECT_EQ(queue.active(), 1U);
}

TEST(RecoveryQueue, HasOneEntryPerRun) {  // R-EXT-42
    RecoveryQueue queue{1};
    EXPECT_EQ(queue.add("a"), Place::begins);
    EXPECT_EQ(queue.add("a"), Place::pending_already);
    EXPECT_EQ(queue.add("b"), Place::waits);
    EXPECT_EQ(queue.add("b"), Place::pending_already);
    EXPECT_EQ(queue.remove("x"), std::nullopt);
    EXPECT_EQ(queue.remove("b"), std::nullopt) << "it had no place to give";
    EXPECT_EQ(queue.add("b"), Place::waits);
    EXPECT_EQ(queue.remove("a"), "b");
    EXPECT_EQ(queue.add("a"), Place::waits) << "over, so it may come again";
}

TEST(RecoveryMachine, RestoresTheCheckpointThatIsKnown) {  // R-EXT-42
    RecoveryMachine machine{"r", {}, "tinker://r/weights/a"};
    EXPECT_EQ(machine.attempt(), 0);
    auto const action = machine.begin();
    ASSERT_TRUE(std::holds_alternative<RecoveryMachine::Create>(action));
    EXPECT_EQ(std::get<RecoveryMachine::Create>(action).checkpoint, "tinker://r/weights/a");
    EXPECT_EQ(machine.attempt(), 1);
}

TEST(RecoveryMachine, AsksForTheLastCheckpointInEachAttempt) {  // R-EXT-42
    RecoveryMachine machine{"r", {}, std::nullopt};
    EXPECT_TRUE(std::holds_alternative<RecoveryMachine::Fetch>(machine.begin()));
    EXPECT_EQ(machine.checkpoint(), "");
    auto const action = machine.on_checkpoint("tinker://r/weights/b");
    ASSERT_TRUE(std::holds_alternative<RecoveryMachine::Create>(action));
    EXPECT_EQ(machine.checkpoint(), "tinker://r/weights/b");
    (void)machine.on_error(trouble());
    EXPECT_TRUE(std::holds_alternative<RecoveryMachine::Fetch>(machine.begin()));
    EXPECT_EQ(machine.checkpoint(), "") << "it may have expired";
}

TEST(RecoveryMachine, ARunWithoutACheckpointFailsTheAttempt) {  // R-EXT-42
    RecoveryMachine machine{"run-7", {}, std::nullopt};
    (void)machine.begin();
    auto const action = machine.on_checkpoint(std::nullopt);
    ASSERT_TRUE(std::holds_alternative<RecoveryMachine::Wait>(action));
    auto const& error = std::get<RecoveryMachine::Wait>(action).error;
    EXPECT_EQ(error.kind(), ErrorKind::validation);
    EXPECT_EQ(error.field(), "last_checkpoint");
    EXPECT_NE(std::string_view{error.what()}.find("run run-7 has no checkpoint"),
              std::string_view::npos);
}

TEST(RecoveryMachine, GivesUpAfterTheLastAttempt) {  // R-EXT-42
    RecoveryMachine machine{"r", {.max_attempts = 2, .backoff = 3s}, "tinker://r/weights/a"};
    (void)machine.begin();
    auto action = machine.on_error(trouble("first"));
    ASSERT_TRUE(std::holds_alternative<RecoveryMachine::Wait>(action));
    EXPECT_EQ(std::get<RecoveryMachine::Wait>(action).delay, 3s);
    (void)machine.begin();
    action = machine.on_error(trouble("second"));
    ASSERT_TRUE(std::holds_alternative<RecoveryMachine::GiveUp>(action));
    EXPECT_STREQ(std::get<RecoveryMachine::GiveUp>(action).error.what(), "second");
}

}  // namespace
}  // namespace tinkxx::service
