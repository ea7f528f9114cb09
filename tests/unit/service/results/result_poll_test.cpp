#include "service/results/result_poll.hpp"

#include "results_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using tinkxx::testing::failing;
using Doing = PollStanding::Doing;

Reply protobuf(std::string body) {
    return {.headers = {{"content-type", "application/x-protobuf"}}, .body = std::move(body)};
}
Reply json(std::string body, int status = 200) {
    return {.status = status,
            .headers = {{"content-type", "application/json"}},
            .body = std::move(body)};
}
auto const try_again = R"({"type":"try_again","queue_state":"paused_capacity"})";
auto const metadata_600 = R"({"status":"complete_metadata","response_payload_size":600})";

/// Waits for one result and keeps what it is told.
struct Waiting final : ResultPoll::Listener {
    explicit Waiting(ResultSurroundings const& around)
        : poll{std::make_unique<ResultPoll>(around, *this)} {}
    void on_result(RetrievedResult got) override {
        result = std::move(got);
        ++ends;
        if (then) then();
    }
    void on_error(Error got) override {
        error = std::move(got);
        ++ends;
        if (then) then();
    }
    void on_queue_state(QueueState state, std::string const& reason) override {
        states.push_back(std::string{to_string(state)} + (reason.empty() ? "" : ": " + reason));
        if (on_state) on_state();
    }

    int ends{0};
    std::optional<RetrievedResult> result{};
    std::optional<Error> error{};
    std::vector<std::string> states{};
    std::function<void()> then{};
    std::function<void()> on_state{};
    std::unique_ptr<ResultPoll> poll;
};

ResultOrder order(std::string_view id = "r1") {
    return {.request_id = id,
            .request_type = "Sample",
            .protobuf_wanted = true,
            .submit_roundtrip = 250ms};
}

struct ResultPollTest : ResultsTest {
    using ResultsTest::ResultsTest;
    [[nodiscard]] std::size_t polls() const { return fake->sent(retrieve_path).size(); }
    void start(ResultOrder given = order()) { waiting.poll->start(std::move(given)); }

    ResultSurroundings around{context, downloads};
    Waiting waiting{around};
};

TEST_F(ResultPollTest, SaysWhatItAsksForAndHowOften) {  // R-FUT-01
    fake->push(json(try_again));
    fake->push(protobuf("result"));
    start();
    clock->advance(1s);

    auto const sent = fake->sent(retrieve_path);
    ASSERT_THAT(sent, SizeIs(2));
    EXPECT_EQ(sent[0].method, "POST");
    EXPECT_EQ(sent[0].body, R"({"request_id":"r1","allow_metadata_only":true})");
    EXPECT_EQ(sent[0].purpose, Purpose::retrieve);
    EXPECT_EQ(sent[0].timeouts.read, 45s);
    EXPECT_EQ(sent[0].header("x-stainless-read-timeout"), "45");
    EXPECT_EQ(sent[0].header("Content-Type"), "application/json");
    EXPECT_EQ(sent[0].header("Accept"), "application/x-protobuf, application/json");
    EXPECT_EQ(sent[0].header("X-Tinker-Request-Type"), "Sample");
    EXPECT_EQ(sent[0].header("X-Tinker-Request-Iteration"), "0");
    EXPECT_EQ(sent[0].header("X-Tinker-Create-Promise-Roundtrip-Time"), "0.25");
    EXPECT_EQ(sent[0].header("X-API-Key"), key);
    EXPECT_EQ(sent[1].header("X-Tinker-Request-Iteration"), "1");
    EXPECT_FALSE(sent[1].headers.contains("X-Tinker-Create-Promise-Roundtrip-Time"));
}

TEST_F(ResultPollTest, AsksForJsonWhereThereIsNoProtobuf) {  // R-FUT-01
    fake->push(json("{}"));
    start({.request_id = "r1",
           .request_type = "OptimStep",
           .extras =
               std::make_shared<RequestExtras const>(RequestExtras{.headers = {{"X-Mine", "1"}}})});
    clock->run_ready();
    auto const sent = fake->sent(retrieve_path).at(0);
    EXPECT_EQ(sent.header("Accept"), "application/json");
    EXPECT_EQ(sent.header("X-Tinker-Request-Type"), "OptimStep");
    EXPECT_EQ(sent.header("X-Mine"), "1");
}

TEST_F(ResultPollTest, LeavesRepeatingToItsOwnRules) {  // R-FUT-01
    fake->push({.status = 503});
    fake->push(protobuf("result"));
    start();
    clock->advance(100ms);
    auto const sent = fake->sent(retrieve_path);
    ASSERT_THAT(sent, SizeIs(2));
    EXPECT_EQ(sent[1].header("x-stainless-retry-count"), "0");
    EXPECT_EQ(sent[1].header("X-Tinker-Request-Iteration"), "1");
}

TEST_F(ResultPollTest, DeliversProtobufAsItCame) {  // R-FUT-03
    fake->push(protobuf(std::string{"\x00\x01", 2}));
    start();
    clock->run_ready();
    ASSERT_TRUE(waiting.result);
    EXPECT_TRUE(waiting.result->protobuf);
    EXPECT_EQ(waiting.result->view(), (std::string_view{"\x00\x01", 2}));
    EXPECT_EQ(waiting.ends, 1);
    EXPECT_FALSE(waiting.poll->under_way());
}

TEST_F(ResultPollTest, TakesJsonWhereProtobufWasWanted) {  // R-FUT-05, C-49
    fake->push(json(R"({"sequences":[]})"));
    start();
    clock->run_ready();
    ASSERT_TRUE(waiting.result);
    EXPECT_FALSE(waiting.result->protobuf);
    EXPECT_EQ(waiting.result->view(), R"({"sequences":[]})");
}

TEST_F(ResultPollTest, UnwrapsAnEnvelope) {  // R-FUT-03
    fake->push(json(R"({"status":"completed","result":{"path":"p"}})"));
    start();
    clock->run_ready();
    ASSERT_TRUE(waiting.result);
    EXPECT_EQ(waiting.result->view(), R"({"path":"p"})");
}

TEST_F(ResultPollTest, PollsAgainAtTheTimeTheRulesSay) {  // R-FUT-07, R-FUT-11
    fake->push({.status = 429});
    fake->push({.status = 408, .delay = 40ms});
    fake->push({.status = 500, .delay = 30s});
    fake->push(failing(FailureKind::reset));
    fake->push(json(R"({"status":"pending"})"));
    fake->push(protobuf("result"));
    start();
    clock->advance(999ms);
    EXPECT_EQ(polls(), 1U);
    clock->advance(1ms);
    EXPECT_EQ(polls(), 2U);
    clock->advance(99ms);
    EXPECT_EQ(polls(), 2U);
    clock->advance(1ms);
    EXPECT_EQ(polls(), 3U);
    clock->advance(30s);
    EXPECT_EQ(polls(), 4U) << "an answer that took long is followed at once";
    clock->advance(999ms);
    EXPECT_EQ(polls(), 4U);
    clock->advance(1ms);
    EXPECT_EQ(polls(), 5U);
    clock->advance(999ms);
    EXPECT_EQ(polls(), 5U);
    clock->advance(1ms);
    EXPECT_TRUE(waiting.result);
}

TEST_F(ResultPollTest, CountsASilentServerAsNoAnswer) {  // R-FUT-01, R-FUT-07
    fake->on("POST", retrieve_path).hold().reply(protobuf("result"));
    start();
    clock->advance(46s - 1ms);
    EXPECT_EQ(polls(), 1U);
    clock->advance(1ms);
    EXPECT_EQ(polls(), 2U);
    EXPECT_TRUE(waiting.result);
}

TEST_F(ResultPollTest, FetchesALargeResultWithinTheBudget) {  // R-FUT-40
    struct Other final : PermitWaiter {
        void on_permit() override {}
    } other;
    ASSERT_TRUE(downloads.acquire(other, 1001));
    fake->push(json(metadata_600));
    fake->push(json(try_again));
    fake->push(protobuf("result"));
    start();
    clock->advance(10s);
    EXPECT_EQ(polls(), 1U);
    EXPECT_EQ(waiting.poll->standing().doing, Doing::download);
    EXPECT_EQ(downloads.waiting(), 1U);

    downloads.release(1001);
    EXPECT_EQ(downloads.free(), 400);
    clock->advance(50ms);
    ASSERT_EQ(polls(), 2U);
    EXPECT_EQ(fake->sent().at(1).body, R"({"request_id":"r1","allow_metadata_only":false})");
    EXPECT_EQ(downloads.free(), 400) << "held until the result is there";
    clock->advance(50ms);
    EXPECT_EQ(fake->sent().at(2).body, R"({"request_id":"r1","allow_metadata_only":false})");
    EXPECT_TRUE(waiting.result);
    EXPECT_EQ(downloads.free(), 1000);
}

TEST_F(ResultPollTest, AsksAtOnceForTheResultThatWasAnnounced) {  // R-FUT-40
    fake->push(json(metadata_600));
    fake->push(protobuf("result"));
    start();
    clock->run_ready();
    EXPECT_TRUE(waiting.result);
    EXPECT_EQ(downloads.free(), 1000);
}

TEST_F(ResultPollTest, GivesThePermitBackWhenItFails) {  // R-FUT-40
    fake->push(json(metadata_600));
    fake->push(json(metadata_600));
    start();
    clock->run_ready();
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::validation);
    EXPECT_EQ(downloads.free(), 1000);
}

TEST_F(ResultPollTest, TakesTheSizeThatTheCompletionPollTold) {  // R-FUT-63
    fake->on("POST", retrieve_path).hold();
    auto given = order();
    given.known_payload_bytes = 300;
    start(given);
    clock->run_ready();
    EXPECT_EQ(downloads.free(), 700);
    EXPECT_EQ(fake->sent().at(0).body, R"({"request_id":"r1","allow_metadata_only":false})");
    ASSERT_TRUE(fake->release_next(protobuf("result")));
    clock->run_ready();
    EXPECT_TRUE(waiting.result);
    EXPECT_EQ(downloads.free(), 1000);
}

TEST_F(ResultPollTest, TellsEveryReportOfTheQueue) {  // R-FUT-30, R-FUT-31
    fake->push(json(try_again));
    fake->push(json(try_again));
    fake->push(json(R"({"queue_state":"ACTIVE","queue_state_reason":"go"})", 408));
    fake->push(json(R"({"queue_state":"odd"})", 408));
    fake->push(protobuf("result"));
    start();
    clock->advance(350ms);
    EXPECT_THAT(waiting.states, ElementsAre("paused_capacity", "paused_capacity", "active: go"));
    clock->advance(1s);
    EXPECT_TRUE(waiting.result);
}

TEST_F(ResultPollTest, GoesOnWhenAnObserverThrows) {  // R-FUT-32
    fake->push(json(try_again));
    fake->push(json(try_again));
    fake->push(protobuf("result"));
    int calls = 0;
    waiting.on_state = [&] {
        if (++calls == 1) throw std::runtime_error{"observer trouble"};
        throw 7;
    };
    start();
    clock->advance(1s);
    EXPECT_TRUE(waiting.result);
    EXPECT_THAT(logged(LogLevel::warning),
                ElementsAre(HasSubstr("observer trouble"), HasSubstr("no exception")));
}

TEST_F(ResultPollTest, MayBeDestroyedByAnObserver) {
    fake->push(json(try_again));
    waiting.on_state = [&] { waiting.poll.reset(); };
    start();
    clock->advance(10s);
    EXPECT_EQ(polls(), 1U);
    EXPECT_EQ(waiting.ends, 0);
    EXPECT_EQ(clock->pending_timers(), 0U);
}

TEST_F(ResultPollTest, MayBeStartedAgainOrDestroyedWhenItEnds) {
    fake->push({.status = 404, .body = "{}"});
    fake->push(protobuf("second"));
    waiting.then = [&] {
        if (waiting.ends == 1) start(order("r2"));
        if (waiting.ends == 2) waiting.poll.reset();
    };
    start();
    clock->advance(1s);
    EXPECT_EQ(waiting.ends, 2);
    ASSERT_TRUE(waiting.result);
    EXPECT_EQ(waiting.result->body, "second");
    auto const second = fake->sent().at(1);
    EXPECT_THAT(second.body, HasSubstr("r2"));
    EXPECT_EQ(second.header("X-Tinker-Request-Iteration"), "0");
}

TEST_F(ResultPollTest, IsCancelledInTheMiddleOfACall) {  // R-FUT-22
    fake->on("POST", retrieve_path).hold();
    auto given = order();
    given.deadline = clock->now() + 1h;
    start(given);
    clock->run_ready();
    waiting.poll->cancel();
    EXPECT_EQ(fake->cancelled_count(), 1U);
    EXPECT_FALSE(waiting.poll->under_way());
    clock->advance(2h);
    EXPECT_EQ(waiting.ends, 0);
    waiting.poll->cancel();
}

TEST_F(ResultPollTest, IsCancelledWhileItWaits) {  // R-FUT-22
    fake->push({.status = 429});
    start();
    clock->advance(500ms);
    EXPECT_EQ(waiting.poll->standing().doing, Doing::waiting);
    waiting.poll->cancel();
    EXPECT_EQ(clock->pending_timers(), 0U);
    clock->advance(1h);
    EXPECT_EQ(polls(), 1U);
    EXPECT_EQ(waiting.ends, 0);
}

TEST_F(ResultPollTest, GivesUpItsPlaceInTheQueueForBytesWhenCancelled) {  // R-FUT-22
    struct Other final : PermitWaiter {
        void on_permit() override {}
    } other;
    ASSERT_TRUE(downloads.acquire(other, 1001));
    fake->push(json(metadata_600));
    start();
    clock->run_ready();
    ASSERT_EQ(downloads.waiting(), 1U);
    waiting.poll->cancel();
    EXPECT_EQ(downloads.waiting(), 0U);
    downloads.release(1001);
    EXPECT_EQ(downloads.free(), 1000);
    EXPECT_EQ(waiting.ends, 0);
}

TEST_F(ResultPollTest, GivesItsPermitBackWhenDestroyed) {  // R-FUT-22
    fake->on("POST", retrieve_path).reply(json(metadata_600)).hold();
    start();
    clock->run_ready();
    EXPECT_EQ(downloads.free(), 400);
    Waiting next{around};
    auto given = order("r2");
    given.known_payload_bytes = 500;
    next.poll->start(given);
    EXPECT_EQ(downloads.free(), -100);
    waiting.poll.reset();
    EXPECT_EQ(downloads.free(), 500);
    next.poll.reset();
    EXPECT_EQ(downloads.free(), 1000);
}

TEST_F(ResultPollTest, EndsAtItsDeadlineWhileItWaits) {  // R-FUT-21
    fake->push({.status = 429, .body = "slow down"});
    auto given = order();
    given.deadline = clock->now() + 700ms;
    start(given);
    clock->advance(699ms);
    EXPECT_EQ(waiting.ends, 0);
    clock->advance(1ms);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->http_status(), 429) << "the last failure";
    EXPECT_EQ(polls(), 1U);
    ASSERT_FALSE(telemetry.events.empty());
    EXPECT_EQ(telemetry.events.back().name, "APIFuture.result_async.timeout");
}

TEST_F(ResultPollTest, EndsAtItsDeadlineInTheMiddleOfAPoll) {  // R-FUT-21
    fake->on("POST", retrieve_path).hold();
    auto given = order();
    given.deadline = clock->now() + 10s;
    start(given);
    clock->advance(10s);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::timeout);
    EXPECT_EQ(fake->cancelled_count(), 1U);
}

TEST_F(ResultPollTest, EndsAtItsDeadlineWhileItWaitsForBytes) {  // R-FUT-21
    struct Other final : PermitWaiter {
        void on_permit() override {}
    } other;
    ASSERT_TRUE(downloads.acquire(other, 1001));
    auto given = order();
    given.known_payload_bytes = 5;
    given.deadline = clock->now() + 10s;
    start(given);
    clock->advance(10s);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::timeout);
    EXPECT_EQ(downloads.waiting(), 0U);
}

TEST_F(ResultPollTest, AsksForNothingWhenItsDeadlineHasPassed) {  // R-FUT-21
    auto given = order();
    given.deadline = clock->now();
    start(given);
    EXPECT_EQ(waiting.ends, 0) << "never from inside start";
    clock->run_ready();
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::timeout);
    EXPECT_EQ(fake->sent_count(), 0U);
}

TEST_F(ResultPollTest, WaitsOutABillingBlockInSilence) {  // R-SAMP-52, R-FUT-07
    fake->push({.status = 402, .body = "unpaid"});
    fake->push(protobuf("result"));
    start();
    clock->advance(5s - 1ms);
    EXPECT_EQ(polls(), 1U);
    EXPECT_EQ(waiting.poll->standing().why, PollWait::billing);
    clock->advance(1ms);
    EXPECT_TRUE(waiting.result);
    EXPECT_THAT(telemetry.events, IsEmpty());
    EXPECT_THAT(logged(LogLevel::warning), ElementsAre(HasSubstr("unpaid")));
}

TEST_F(ResultPollTest, EndsWithABillingErrorWhenTheBlockLasts) {  // R-SAMP-51, R-FUT-07
    fake->on("POST", retrieve_path).always({.status = 402, .body = "unpaid"});
    start();
    clock->advance(3600s);
    EXPECT_EQ(waiting.ends, 0);
    clock->advance(10s);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::billing);
}

TEST_F(ResultPollTest, TellsTelemetryOfFailedPolls) {  // R-TEL-10, R-TEL-11
    fake->push(failing(FailureKind::reset));
    fake->push({.status = 410, .body = "{}"});
    start();
    clock->advance(1s);
    ASSERT_THAT(telemetry.events, SizeIs(2));
    EXPECT_EQ(telemetry.events[0].name, "APIFuture.result_async.connection_error");
    EXPECT_EQ(telemetry.events[0].severity, Severity::warning);
    EXPECT_EQ(telemetry.events[0].data.at("iteration"), 0);
    EXPECT_EQ(telemetry.events[1].name, "APIFuture.result_async.api_status_error");
    EXPECT_EQ(telemetry.events[1].data.at("elapsed_time"), 1.0);
    EXPECT_EQ(telemetry.events[1].data.at("status_code"), 410);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::promise_lost);
}

TEST_F(ResultPollTest, WorksWithoutTelemetry) {
    context.set_telemetry(nullptr);
    fake->push(failing(FailureKind::reset));
    fake->push(protobuf("result"));
    start();
    clock->advance(1s);
    EXPECT_TRUE(waiting.result);
}

TEST_F(ResultPollTest, KeepsRequestAndAnswerOfAFinalFailure) {  // R-FUT-13
    fake->push({.status = 422, .headers = {{"x-trace", "t1"}}, .body = "bad field"});
    start();
    clock->run_ready();
    ASSERT_TRUE(waiting.error);
    auto const& details = waiting.error->details();
    EXPECT_EQ(details.body, "bad field");
    EXPECT_THAT(details.headers, Contains(Pair("x-trace", "t1")));
    EXPECT_THAT(details.request_headers, Contains(Pair("X-Tinker-Request-Type", "Sample")));
    EXPECT_THAT(details.request_headers, Contains(Pair("X-Tinker-Request-Iteration", "0")));
    EXPECT_THAT(details.request_headers, Contains(Key("CF-Access-Client-Secret")));
    for (auto const& [name, value] : details.request_headers) {
        EXPECT_THAT(value, Not(HasSubstr("hush"))) << name;
    }
}

TEST_F(ResultPollTest, KeepsSecretsOutOfWhatItTells) {  // R-ERR-04
    fake->push(json(std::string{R"({"type":"try_again","queue_state":"x","queue_state_reason":")"} +
                    key + "\"}"));
    fake->push(json(std::string{R"({"error":"bad key )"} + key + R"(","category":"User"})"));
    start();
    clock->advance(1s);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->category(), ErrorCategory::user);
    EXPECT_THAT(waiting.error->what(), Not(HasSubstr(key)));
    EXPECT_THAT(waiting.error->what(), HasSubstr("bad key"));
    EXPECT_THAT(waiting.error->body(), Not(HasSubstr(key)));
    ASSERT_THAT(waiting.states, SizeIs(1));
    EXPECT_THAT(waiting.states[0], Not(HasSubstr(key)));
    for (auto const& line : lines) EXPECT_THAT(line, Not(HasSubstr(key)));
}

TEST_F(ResultPollTest, EndsWhenItsClientCloses) {
    fake->on("POST", retrieve_path).hold();
    start();
    clock->run_ready();
    http->close();
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::cancelled);
    EXPECT_THAT(telemetry.events, IsEmpty());
}

TEST_F(ResultPollTest, EndsWithItsNextPollWhenItsClientClosedMeanwhile) {
    fake->push({.status = 429});
    start();
    clock->advance(500ms);
    http->close();
    EXPECT_EQ(waiting.ends, 0);
    clock->advance(500ms);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::cancelled);
}

TEST_F(ResultPollTest, SaysWhereItStands) {  // R-TEST-01
    EXPECT_EQ(waiting.poll->standing().doing, Doing::nothing);
    fake->on("POST", retrieve_path).reply({.status = 429, .delay = 2s}).hold();
    auto const begun = clock->now();
    start();
    auto standing = waiting.poll->standing();
    EXPECT_EQ(standing.doing, Doing::polling);
    EXPECT_EQ(standing.since, begun);
    EXPECT_EQ(standing.polls, 1);
    EXPECT_EQ(standing.last_failure, "");

    clock->advance(2500ms);
    standing = waiting.poll->standing();
    EXPECT_EQ(standing.doing, Doing::waiting);
    EXPECT_EQ(standing.doing_since, begun + 2s);
    EXPECT_EQ(standing.until, begun + 3s);
    EXPECT_EQ(standing.why, PollWait::rate_limited);
    EXPECT_THAT(std::string{standing.last_failure}, HasSubstr("429"));
    EXPECT_THAT(logged(LogLevel::info), ElementsAre(HasSubstr("Sample request r1: ")));

    clock->advance(1s);
    standing = waiting.poll->standing();
    EXPECT_EQ(standing.doing, Doing::polling);
    EXPECT_EQ(standing.doing_since, begun + 3s);
    EXPECT_FALSE(standing.until);
    EXPECT_EQ(standing.polls, 2);
}

TEST_F(ResultPollTest, SaysSinceWhenEveryPollFailed) {
    struct Other final : PermitWaiter {
        void on_permit() override {}
    } other;
    ASSERT_TRUE(downloads.acquire(other, 1001));
    fake->push({.status = 503});
    fake->push(failing(FailureKind::connect, Seen::no));
    fake->push({.status = 408});
    fake->push(failing(FailureKind::connect, Seen::no));
    fake->push(json(metadata_600));
    auto const begun = clock->now();
    start();
    EXPECT_FALSE(waiting.poll->standing().failing_since);
    clock->advance(1ms);
    EXPECT_EQ(waiting.poll->standing().failing_since, begun);
    clock->advance(200ms);
    EXPECT_EQ(polls(), 2U);
    EXPECT_EQ(waiting.poll->standing().failing_since, begun);
    clock->advance(1s);
    EXPECT_EQ(polls(), 4U);
    auto const again = waiting.poll->standing().failing_since;
    ASSERT_TRUE(again);
    EXPECT_GT(*again, begun) << "the 408 was an answer";
    clock->advance(10s);
    EXPECT_EQ(waiting.poll->standing().doing, Doing::download);
    EXPECT_FALSE(waiting.poll->standing().failing_since);
    downloads.release(1001);
}

TEST_F(ResultPollTest, LogsThatItTriesAgainForDebuggingOnly) {  // R-FUT-03
    fake->push(json(try_again));
    fake->push(protobuf("result"));
    start();
    clock->advance(1s);
    EXPECT_THAT(logged(LogLevel::debug),
                Contains(HasSubstr("Sample request r1: the service has no result yet; poll 1 "
                                   "follows in 0.1 s")));
    EXPECT_THAT(logged(LogLevel::warning), IsEmpty());
}

/// Runs callbacks when the test says so.
struct HeldExecutor final : Executor {
    void run(Task task) override { tasks.push_back(std::move(task)); }
    void run_all() {
        while (!tasks.empty()) {
            auto task = std::move(tasks.front());
            tasks.pop_front();
            task();
        }
    }
    std::deque<Task> tasks{};
};

struct LargeAnswerTest : ResultPollTest {
    LargeAnswerTest() : LargeAnswerTest{std::make_shared<HeldExecutor>()} {}
    explicit LargeAnswerTest(std::shared_ptr<HeldExecutor> given)
        : ResultPollTest{given}, executor{std::move(given)} {}

    static std::string large(std::string const& members) {
        return "{" + members + R"("padding":")" + std::string(70'000, 'x') + "\"}";
    }
    std::shared_ptr<HeldExecutor> executor;
};

TEST_F(LargeAnswerTest, IsLookedAtOnTheCallbackExecutor) {  // docs/decisions/0008
    fake->push(json(large(R"("status":"completed","result":{"a":1},)")));
    start();
    clock->advance(1s);
    EXPECT_EQ(waiting.poll->standing().doing, Doing::classifying);
    EXPECT_EQ(waiting.ends, 0);
    executor->run_all();
    EXPECT_EQ(waiting.ends, 0) << "told on the loop";
    clock->run_ready();
    ASSERT_TRUE(waiting.result);
    EXPECT_EQ(waiting.result->view(), R"({"a":1})");
}

TEST_F(LargeAnswerTest, OfProtobufIsTheResultAtOnce) {
    fake->push(protobuf(std::string(100'000, 'x')));
    start();
    clock->run_ready();
    ASSERT_TRUE(waiting.result);
    EXPECT_EQ(waiting.result->size, 100'000U);
}

TEST_F(LargeAnswerTest, MayBeForgottenWhileItIsLookedAt) {  // R-FUT-22
    fake->push(json(large("")));
    start();
    clock->run_ready();
    waiting.poll.reset();
    executor->run_all();
    clock->run_ready();
    EXPECT_EQ(waiting.ends, 0);
}

TEST_F(LargeAnswerTest, MayBeForgottenOnItsWayBack) {  // R-FUT-22
    fake->push(json(large("")));
    fake->push(protobuf("other"));
    start();
    clock->run_ready();
    executor->run_all();
    waiting.poll->cancel();
    start(order("r2"));
    clock->run_ready();
    EXPECT_EQ(waiting.ends, 1);
    ASSERT_TRUE(waiting.result);
    EXPECT_EQ(waiting.result->body, "other") << "the answer to the first is nobody's";
}

TEST_F(LargeAnswerTest, KeepsToTheDeadline) {  // R-FUT-21
    fake->push(json(large("")));
    auto given = order();
    given.deadline = clock->now() + 10s;
    start(given);
    clock->advance(10s);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::timeout);
    executor->run_all();
    clock->run_ready();
    EXPECT_EQ(waiting.ends, 1);
}

TEST_F(ResultPollTest, NeverLeaksAPermitUnderRandomCancelling) {  // R-TEST-03
    fake->otherwise([](tinkxx::testing::SentRequest const& request) -> std::optional<Reply> {
        if (request.body.find("true") == std::string::npos) {
            return Reply{.headers = {{"content-type", "application/x-protobuf"}},
                         .body = "result",
                         .delay = 300ms};
        }
        auto reply = json(metadata_600);
        reply.delay = 100ms;
        return reply;
    });
    EXPECT_TRUE(rc::check("permits come back", [this] {
        std::vector<std::unique_ptr<Waiting>> all;
        auto const steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 60));
        for (int const step : steps) {
            if (step < 30) {
                all.push_back(std::make_unique<Waiting>(around));
                auto given = order();
                if (step % 3 == 0) given.known_payload_bytes = 400;
                if (step % 5 == 0) given.deadline = clock->now() + 350ms;
                all.back()->poll->start(given);
            } else if (step < 45) {
                clock->advance(std::chrono::milliseconds{10 * step});
            } else if (!all.empty()) {
                auto const index = static_cast<std::size_t>(step) % all.size();
                if (step % 2 == 0) {
                    all[index]->poll->cancel();
                } else {
                    all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
                }
            }
        }
        clock->advance(1min);
        for (auto const& each : all) RC_ASSERT(!each->poll->under_way());
        RC_ASSERT(downloads.free() == 1000);
        RC_ASSERT(downloads.waiting() == 0U);
        RC_ASSERT(fake->open_count() == 0U);
    }));
}

}  // namespace
}  // namespace tinkxx::service
