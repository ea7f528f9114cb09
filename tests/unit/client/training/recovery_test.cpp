// Lost runs: how they are noticed, and what becomes of them.
#include <tinkxx/recovery.hpp>

#include "support/raw_tinker.hpp"

#include <boost/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::json_reply;
using support::RawTinker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Reply;
using testing::SentRequest;

constexpr std::string_view runs_path = "/api/v1/training_runs/";

/// Keeps what it is told of recoveries.
class RecoveryNotes final : public Observer {
public:
    void on_recovery(RecoveryEvent const& event) override {
        events.push_back(event);
        kinds.push_back(std::string{to_string(event.kind)} + " " + event.run_id);
    }
    std::vector<RecoveryEvent> events{};
    std::vector<std::string> kinds{};
};

class RecoveryTest : public ::testing::Test {
protected:
    RecoveryTest() {
        tinker.clock->set_auto_advance(false);
        options.observers.push_back(notes);
        tinker.on_other = [this](SentRequest const& request) -> RawTinker::Answer {
            if (request.path.starts_with(runs_path)) return run_reply(request);
            if (request.path.ends_with("weights_info") && refused_checkpoints > 0) {
                --refused_checkpoints;
                return json_reply(R"({"detail":"gone"})", 404);
            }
            return std::nullopt;
        };
        policy.enabled = true;
        policy.on_recovery = [this](Recovery const& recovery) { recovered.push_back(recovery); };
        policy.on_failure = [this](std::string const& run_id, Error const& reason) {
            lost.push_back(run_id + ": " + reason.what());
        };
    }

    Reply run_reply(SentRequest const& request) {
        auto const id = request.path.substr(runs_path.size());
        if (runs_fail) return json_reply(R"({"detail":"no such run"})", 404);
        auto const last = without_checkpoint
                              ? std::string{"null"}
                              : R"({"checkpoint_id":"weights/last","checkpoint_type":"training",)"
                                R"("time":"2026-01-31T00:00:00Z",)"
                                R"("tinker_path":"tinker://)" +
                                    id + R"(/weights/last"})";
        return json_reply(R"({"training_run_id":")" + id +
                          R"(","base_model":"org/tiny","model_owner":"o","is_lora":true,)"
                          R"("corrupted":)" +
                          (corrupted.contains(id) ? "true" : "false") +
                          R"(,"last_request_time":"2026-01-31T00:00:00Z","last_checkpoint":)" +
                          last + "}");
    }
    ServiceClient& service() {
        if (!service_) service_.emplace(options);
        return *service_;
    }
    TrainingClient trainer() {
        auto pending = service().create_lora_training_client("org/tiny");
        run();
        return pending.get();
    }
    void run() {
        while (tinker.clock->run_ready()) {
        }
    }
    void advance(std::chrono::nanoseconds step) {
        tinker.clock->advance(step);
        run();
    }
    std::vector<OperationStatus> pending() {
        auto asked = service().status();
        run();
        return asked.get().pending;
    }
    std::size_t looks(std::string const& run_id) {
        return tinker.count(std::string{runs_path} + run_id);
    }
    template <class T>
    static Error failure(Future<T>& future) {
        if (!future.ready()) {
            ADD_FAILURE() << "it has not ended";
            return Error{ErrorDetails{}};
        }
        auto result = future.result();
        EXPECT_FALSE(result.has_value());
        return result ? Error{ErrorDetails{}} : result.error();
    }
    template <class T>
    static Error failure(Future<T>&& future) {
        return failure(future);
    }

    RawTinker tinker;
    std::shared_ptr<RecoveryNotes> const notes{std::make_shared<RecoveryNotes>()};
    ClientOptions options{tinker.options()};
    RecoveryPolicy policy{};
    std::set<std::string> corrupted{};
    bool runs_fail{false};
    bool without_checkpoint{false};
    int refused_checkpoints{0};
    std::vector<Recovery> recovered{};
    std::vector<std::string> lost{};

private:
    std::optional<ServiceClient> service_{};
};

// Policy ------------------------------------------------------------------------------------------

TEST_F(RecoveryTest, APolicyIsOffAndHasDefaults) {  // R-EXT-40
    RecoveryPolicy const made;
    EXPECT_FALSE(made.enabled);
    EXPECT_EQ(made.max_attempts, 3);
    EXPECT_EQ(made.backoff, 5s);
    EXPECT_EQ(made.max_backoff, 60s);
    EXPECT_EQ(made.poll_interval, 30s);
    EXPECT_EQ(made.checkpoint, CheckpointStrategy{LatestCheckpoint{}});
    EXPECT_TRUE(made.restore_optimizer);
    EXPECT_EQ(made.max_concurrent, 1);
}

TEST_F(RecoveryTest, ValuesThatCannotWorkStandForTheDefaults) {  // R-EXT-40
    policy.max_attempts = -1;
    policy.backoff = 0ms;
    policy.max_backoff = -5s;
    policy.poll_interval = -1ms;
    policy.checkpoint = SpecificCheckpoint{};
    policy.max_concurrent = 0;
    auto const made = RecoveryExecutor{service(), policy}.policy();
    EXPECT_TRUE(made.enabled);
    EXPECT_EQ(made.max_attempts, 3);
    EXPECT_EQ(made.backoff, 5s);
    EXPECT_EQ(made.max_backoff, 60s);
    EXPECT_EQ(made.poll_interval, 30s);
    EXPECT_EQ(made.checkpoint, CheckpointStrategy{LatestCheckpoint{}});
    EXPECT_EQ(made.max_concurrent, 1);
    EXPECT_FALSE(RecoveryExecutor{}.policy().enabled);
}

TEST_F(RecoveryTest, RefusesWhatAPolicyDoesNotAllow) {  // R-EXT-40, R-EXT-41
    EXPECT_EQ(failure(RecoveryMonitor{service(), RecoveryPolicy{}}.watch("r")).kind(),
              ErrorKind::usage);
    EXPECT_EQ(failure(RecoveryExecutor{service(), RecoveryPolicy{}}.recover("r")).kind(),
              ErrorKind::usage);
    auto const alone = failure(RecoveryMonitor{RecoveryExecutor{}}.watch("r"));
    EXPECT_EQ(alone.kind(), ErrorKind::usage);
    EXPECT_THAT(alone.what(), HasSubstr("no executor"));
    EXPECT_EQ(failure(RecoveryMonitor{}.watch("r")).kind(), ErrorKind::usage);
    EXPECT_EQ(failure(RecoveryExecutor{}.recover("r")).kind(), ErrorKind::usage);
    EXPECT_THAT(RecoveryMonitor{}.watched().get(), IsEmpty());
    RecoveryMonitor{}.forget("r");
    EXPECT_EQ(failure(RecoveryMonitor{service(), policy}.watch("")).field(), "run_id");
    EXPECT_EQ(failure(RecoveryExecutor{service(), policy}.recover(TrainingClient{})).field(),
              "run_id");
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

// Monitor -----------------------------------------------------------------------------------------

TEST_F(RecoveryTest, AMonitorHasALostRunRecoveredAndWatchesItNoLonger) {  // R-EXT-40, R-EXT-41
    auto const old = trainer();
    auto const run_id = old.model_id();
    RecoveryMonitor const monitor{service(), policy};
    auto recovery = monitor.watch(old);
    run();
    auto const sent = tinker.transport->sent(std::string{runs_path} + run_id).at(0);
    EXPECT_EQ(sent.method, "GET");
    EXPECT_EQ(sent.query, "access_scope=owned");
    EXPECT_EQ(sent.header("x-sdk-method"), "get_training_run");
    EXPECT_FALSE(sent.header("x-sdk-version").empty());
    advance(29'999ms);
    EXPECT_EQ(looks(run_id), 1U);
    corrupted.insert(run_id);
    advance(1ms);
    EXPECT_EQ(looks(run_id), 2U);
    ASSERT_TRUE(recovery.ready());
    auto const made = recovery.get();
    EXPECT_EQ(made.run_id, run_id);
    EXPECT_EQ(made.old_client.model_id(), run_id);
    EXPECT_EQ(made.client.model_id(), "session-1:train:1");
    EXPECT_EQ(made.checkpoint, "tinker://" + run_id + "/weights/last");
    EXPECT_EQ(made.attempts, 1);
    ASSERT_EQ(recovered.size(), 1U);
    EXPECT_EQ(recovered[0].client.model_id(), made.client.model_id());
    EXPECT_EQ(recovered[0].old_client.model_id(), run_id);
    EXPECT_THAT(notes->kinds, ElementsAre("detected " + run_id, "started " + run_id,
                                          "client created " + run_id, "completed " + run_id));
    EXPECT_EQ(notes->events[3].new_run_id, "session-1:train:1");
    EXPECT_EQ(notes->events[3].checkpoint, made.checkpoint);
    EXPECT_EQ(notes->events[3].attempt, 1);
    advance(10min);
    EXPECT_EQ(looks(run_id), 2U);
    EXPECT_THAT(pending(), IsEmpty());
    auto step = made.client.optim_step({});
    run();
    EXPECT_TRUE(step.result().has_value());
}

TEST_F(RecoveryTest, AFailureToAskChangesNothing) {  // R-EXT-41
    RecoveryMonitor const monitor{service(), policy};
    runs_fail = true;
    auto recovery = monitor.watch("run-1");
    run();
    EXPECT_THAT(notes->kinds, ElementsAre("poll error run-1"));
    EXPECT_EQ(notes->events[0].error.value().http_status(), 404);
    auto const waiting = pending();
    ASSERT_EQ(waiting.size(), 1U);
    EXPECT_THAT(waiting[0].why, HasSubstr("404"));
    runs_fail = false;
    corrupted.insert("run-1");
    advance(30s);
    EXPECT_TRUE(recovery.ready());
    EXPECT_EQ(recovered.size(), 1U);
}

TEST_F(RecoveryTest, TheStatusShowsWhatIsWatched) {  // R-EXT-41, R-TEST-01
    policy.poll_interval = 20s;
    options.deadline = 10s;
    RecoveryMonitor const monitor{service(), policy};
    auto first = monitor.watch("run-1");
    auto second = monitor.watch("run-2");
    run();
    advance(5s);
    auto const shown = pending();
    ASSERT_EQ(shown.size(), 2U);
    EXPECT_EQ(shown[0].operation, "watch");
    EXPECT_EQ(shown[0].stage, Stage::waiting_to_poll);
    EXPECT_EQ(shown[0].why, "run run-1: it is well");
    EXPECT_EQ(shown[0].ends_in, 15s);
    EXPECT_EQ(shown[0].polls, 1);
    EXPECT_FALSE(shown[0].deadline_in) << "it may take for ever";
    auto again = monitor.watch("run-1");
    run();
    EXPECT_EQ(failure(again).kind(), ErrorKind::usage);
    auto watched = monitor.watched();
    run();
    EXPECT_THAT(watched.get(), ElementsAre("run-1", "run-2"));
    monitor.forget("run-1");
    monitor.forget("run-9");
    run();
    EXPECT_EQ(failure(first).kind(), ErrorKind::cancelled);
    second.cancel();
    run();
    EXPECT_THAT(pending(), IsEmpty());
    advance(10min);
    EXPECT_EQ(looks("run-1") + looks("run-2"), 2U);
}

TEST_F(RecoveryTest, NobodyWaitsForAWatchSoItIsNotReported) {  // R-EXT-41
    options.report_pending = true;
    RecoveryMonitor const monitor{service(), policy};
    ::testing::internal::CaptureStderr();
    auto watched = monitor.watch("run-1");
    run();
    advance(25s);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
    corrupted.insert("run-1");
    refused_checkpoints = 9;
    ::testing::internal::CaptureStderr();
    advance(5s);
    advance(5s);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("1 pending; the oldest: recover"));
}

TEST_F(RecoveryTest, WatchingEndsWithTheMonitorAndWithItsClient) {  // R-EXT-41
    {
        RecoveryMonitor monitor{service(), policy};
        auto watched = monitor.watch("run-1");
        run();
        auto const copy = monitor;
        monitor = {};
        advance(30s);
        EXPECT_EQ(looks("run-1"), 2U) << "a copy is left";
        EXPECT_FALSE(watched.ready());
    }
    advance(10min);
    EXPECT_EQ(looks("run-1"), 2U);
    EXPECT_THAT(pending(), IsEmpty());

    RecoveryMonitor const monitor{service(), policy};
    auto watched = monitor.watch("run-2");
    run();
    auto closing = service().close();
    run();
    EXPECT_EQ(failure(watched).kind(), ErrorKind::cancelled);
    auto late = monitor.watch("run-3");
    run();
    EXPECT_EQ(failure(late).kind(), ErrorKind::closed);
}

TEST_F(RecoveryTest, CancellingAWatchCancelsTheRecoveryItLedTo) {  // R-EXT-41, R-EXT-42
    refused_checkpoints = 9;
    corrupted.insert("run-1");
    RecoveryMonitor const monitor{service(), policy};
    auto recovery = monitor.watch("run-1");
    run();
    auto const shown = pending();
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0].operation, "recover");
    recovery.cancel();
    run();
    EXPECT_THAT(pending(), IsEmpty());
    advance(10min);
    EXPECT_EQ(refused_checkpoints, 8);
    EXPECT_THAT(lost, IsEmpty());
}

// Executor ----------------------------------------------------------------------------------------

TEST_F(RecoveryTest, AttemptsFollowEachOtherLongerAndLongerApart) {  // R-EXT-42
    refused_checkpoints = 2;
    RecoveryExecutor const executor{service(), policy};
    auto recovery = executor.recover("run-1");
    run();
    EXPECT_EQ(refused_checkpoints, 1);
    auto shown = pending();
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0].operation, "recover");
    EXPECT_EQ(shown[0].stage, Stage::waiting_to_retry);
    EXPECT_EQ(shown[0].ends_in, 5s);
    EXPECT_EQ(shown[0].attempt, 1);
    EXPECT_THAT(shown[0].why, HasSubstr("404"));
    advance(4999ms);
    EXPECT_EQ(refused_checkpoints, 1);
    advance(1ms);
    EXPECT_EQ(refused_checkpoints, 0);
    advance(9999ms);
    EXPECT_FALSE(recovery.ready());
    advance(1ms);
    ASSERT_TRUE(recovery.ready());
    EXPECT_EQ(recovery.get().attempts, 3);
    EXPECT_THAT(notes->kinds,
                ElementsAre("started run-1", "failed run-1", "started run-1", "failed run-1",
                            "started run-1", "client created run-1", "completed run-1"));
    EXPECT_EQ(notes->events[3].delay, 10s);
    EXPECT_EQ(notes->events[3].attempt, 2);
    EXPECT_THAT(lost, IsEmpty());
}

TEST_F(RecoveryTest, GivesUpAfterTheLastAttemptAndSaysWhy) {  // R-EXT-40, R-EXT-42
    refused_checkpoints = 9;
    policy.max_attempts = 2;
    RecoveryExecutor const executor{service(), policy};
    auto recovery = executor.recover("run-1");
    run();
    advance(5s);
    auto const error = failure(recovery);
    EXPECT_EQ(error.http_status(), 404);
    EXPECT_EQ(error.details().stopped, RetryEnd::attempts_spent);
    EXPECT_THAT(error.what(), HasSubstr("recover: run run-1: given up after attempt 2"));
    ASSERT_EQ(lost.size(), 1U);
    EXPECT_EQ(lost[0], std::string{"run-1: "} + error.what());
    EXPECT_THAT(recovered, IsEmpty());
    EXPECT_THAT(notes->kinds, ElementsAre("started run-1", "failed run-1", "started run-1",
                                          "failed run-1", "exhausted run-1"));
    EXPECT_EQ(refused_checkpoints, 7);
}

TEST_F(RecoveryTest, ChoosesTheCheckpointThatIsGivenElseThatOfThePolicyElseTheLast) {  // R-EXT-42
    RecoveryExecutor const latest{service(), policy};
    auto const checkpoint_of = [this](Future<Recovery> pending) {
        run();
        return pending.get().checkpoint;
    };
    EXPECT_EQ(checkpoint_of(latest.recover("run-1")), "tinker://run-1/weights/last");
    EXPECT_EQ(looks("run-1"), 1U);
    RecoveryRequest given;
    given.run_id = "run-2";
    given.checkpoint = "tinker://given/weights/x";
    EXPECT_EQ(checkpoint_of(latest.recover(given)), "tinker://given/weights/x");
    policy.checkpoint = SpecificCheckpoint{"tinker://mine/weights/y"};
    RecoveryExecutor const specific{service(), policy};
    EXPECT_EQ(checkpoint_of(specific.recover("run-2")), "tinker://mine/weights/y");
    EXPECT_EQ(checkpoint_of(specific.recover(given)), "tinker://given/weights/x");
    EXPECT_EQ(looks("run-2"), 0U);
    corrupted.insert("run-3");
    RecoveryMonitor const monitor{specific};
    EXPECT_EQ(checkpoint_of(monitor.watch("run-3")), "tinker://mine/weights/y");

    without_checkpoint = true;
    policy.checkpoint = LatestCheckpoint{};
    policy.max_attempts = 1;
    RecoveryExecutor const once{service(), policy};
    auto none = once.recover("run-4");
    run();
    EXPECT_THAT(failure(none).what(), HasSubstr("run run-4 has no checkpoint"));
    EXPECT_EQ(lost.size(), 1U);
}

TEST_F(RecoveryTest, RestoresTheOptimizerUnlessToldOtherwise) {  // R-EXT-40, R-EXT-42
    auto const loaded = [this](std::size_t which) {
        return boost::json::parse(tinker.transport->sent("/api/v1/load_weights").at(which).body)
            .at("optimizer")
            .as_bool();
    };
    RecoveryExecutor const with{service(), policy};
    auto first = with.recover("run-1");
    policy.restore_optimizer = false;
    RecoveryExecutor const without{service(), policy};
    run();
    auto second = without.recover("run-2");
    run();
    EXPECT_TRUE(loaded(0));
    EXPECT_FALSE(loaded(1));
    EXPECT_TRUE(first.ready() && second.ready());
}

TEST_F(RecoveryTest, RecoversOneRunAtATimeInTheOrderOfTheCalls) {  // R-EXT-42
    refused_checkpoints = 1;
    RecoveryExecutor const executor{service(), policy};
    auto first = executor.recover("run-1");
    auto second = executor.recover("run-2");
    auto third = executor.recover("run-3");
    auto again = executor.recover("run-2");
    run();
    EXPECT_THAT(failure(again).what(), HasSubstr("being recovered already"));
    auto const shown = pending();
    ASSERT_EQ(shown.size(), 3U);
    EXPECT_EQ(shown[1].stage, Stage::waiting_for_slot);
    EXPECT_EQ(shown[1].why, "run run-2: 1 other runs are being recovered");
    second.cancel();
    run();
    EXPECT_EQ(looks("run-3"), 0U);
    advance(5s);
    EXPECT_TRUE(first.ready());
    EXPECT_TRUE(third.ready());
    EXPECT_EQ(looks("run-2"), 0U);
    ASSERT_EQ(recovered.size(), 2U);
    EXPECT_EQ(recovered[1].run_id, "run-3");
}

TEST_F(RecoveryTest, RecoversAsManyAtATimeAsThePolicySays) {  // R-EXT-42
    refused_checkpoints = 9;
    policy.max_concurrent = 2;
    RecoveryExecutor const executor{service(), policy};
    auto first = executor.recover("run-1");
    auto second = executor.recover("run-2");
    auto third = executor.recover("run-3");
    run();
    auto const shown = pending();
    ASSERT_EQ(shown.size(), 3U);
    EXPECT_EQ(shown[0].stage, Stage::waiting_to_retry);
    EXPECT_EQ(shown[1].stage, Stage::waiting_to_retry);
    EXPECT_EQ(shown[2].stage, Stage::waiting_for_slot);
}

TEST_F(RecoveryTest, WhatACallbackThrowsIsLoggedAndNothingElse) {  // R-EXT-42
    policy.max_attempts = 1;
    policy.on_recovery = [](Recovery const&) { throw std::runtime_error{"mine"}; };
    policy.on_failure = [](std::string const&, Error const&) { throw 7; };
    RecoveryExecutor const executor{service(), policy};
    auto recovery = executor.recover("run-1");
    run();
    EXPECT_TRUE(recovery.result().has_value());
    EXPECT_EQ(tinker.logged("a callback of recovery threw: mine"), 1U);
    refused_checkpoints = 1;
    auto second = executor.recover("run-2");
    run();
    EXPECT_EQ(failure(second).http_status(), 404);
    EXPECT_EQ(tinker.logged("a callback of recovery threw something"), 1U);
}

TEST_F(RecoveryTest, RecoveriesEndWithTheirExecutorAndWithTheClient) {  // R-EXT-42
    refused_checkpoints = 9;
    std::optional<RecoveryExecutor> executor{std::in_place, service(), policy};
    auto first = executor->recover("run-1");
    auto second = executor->recover("run-2");
    run();
    executor.reset();
    run();
    EXPECT_EQ(failure(first).kind(), ErrorKind::cancelled);
    EXPECT_EQ(failure(second).kind(), ErrorKind::cancelled);
    EXPECT_EQ(looks("run-2"), 0U);
    executor.emplace(service(), policy);
    auto third = executor->recover("run-3");
    auto fourth = executor->recover("run-4");
    run();
    auto closing = service().close();
    run();
    EXPECT_EQ(failure(third).kind(), ErrorKind::cancelled);
    EXPECT_EQ(failure(fourth).kind(), ErrorKind::cancelled);
    EXPECT_THAT(lost, IsEmpty());
    EXPECT_EQ(tinker.transport->open_count(), 0U);
}

TEST_F(RecoveryTest, ARunIdThatLeadsElsewhereIsNotAskedFor) {
    policy.max_attempts = 1;
    RecoveryExecutor const executor{service(), policy};
    auto recovery = executor.recover("../sessions?x");
    run();
    EXPECT_EQ(failure(recovery).field(), "run_id");
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

}  // namespace
}  // namespace tinkxx
