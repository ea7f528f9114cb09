#include "service/results/poll_machine.hpp"

#include "service/http/http_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace answer = wire::result_answer;

Operation const retrieve{.method = "POST", .path = "/api/v1/retrieve_future"};

Error status(int code, std::string_view body = R"({"detail":"d"})") {
    Head head;
    head.status = code;
    head.headers = {{"x-trace", "t1"}};
    return Error{status_error(retrieve, head, body, {}, {})};
}

Error failure(FailureKind kind = FailureKind::reset) {
    return Error{failure_error(retrieve, {.kind = kind}, {})};
}

answer::TryAgain try_again(QueueState state, std::string reason = {}) {
    return {.queue = wire::QueueReport{.state = state, .reason = std::move(reason)}};
}

struct PollMachineTest : ::testing::Test {
    /// One poll that takes `took` and is answered.
    PollMachine::Step answered(wire::ResultAnswer const& with, std::chrono::nanoseconds took = 1s) {
        begin(took);
        return follow(machine.on_answer(with, now));
    }
    PollMachine::Step failed(Error const& with, std::chrono::nanoseconds took = 1s) {
        begin(took);
        return follow(machine.on_error(with, now));
    }
    void begin(std::chrono::nanoseconds took) {
        machine.begin(now);
        now += took;
    }
    /// Waits until the next poll.
    PollMachine::Step follow(PollMachine::Step step) {
        wait = {};
        if (auto const* poll = std::get_if<PollMachine::Poll>(&step.next)) {
            wait = poll->at - now;
            why = poll->why;
            now = poll->at;
        }
        return step;
    }
    static ErrorDetails const& error_of(PollMachine::Step const& step) {
        return std::get<PollMachine::Fail>(step.next).error;
    }
    static bool polls(PollMachine::Step const& step) {
        return std::holds_alternative<PollMachine::Poll>(step.next);
    }

    PollRules rules{};
    TimePoint const start{1h};
    TimePoint now{start};
    std::chrono::nanoseconds wait{};
    PollWait why{};
    PollMachine machine{rules, "r1", "Sample", start, TimePoint::max()};
};

TEST_F(PollMachineTest, TakesProtobufAndJsonForTheResult) {  // R-FUT-03, R-FUT-05
    EXPECT_TRUE(std::holds_alternative<PollMachine::Done>(answered(answer::Protobuf{}).next));
    EXPECT_TRUE(std::holds_alternative<PollMachine::Done>(answered(answer::Json{"{}"}).next));
}

TEST_F(PollMachineTest, AsksAgainAtOnceWhenToldToTryAgain) {  // R-FUT-03
    auto const step = answered(try_again(QueueState::paused_capacity, "full"));
    ASSERT_TRUE(polls(step));
    EXPECT_EQ(wait, 0s);
    EXPECT_EQ(why, PollWait::not_yet);
    ASSERT_TRUE(step.queue);
    EXPECT_EQ(step.queue->state, QueueState::paused_capacity);
    EXPECT_EQ(step.queue->reason, "full");
    EXPECT_FALSE(step.report);
}

TEST_F(PollMachineTest, WaitsAsLongAsItIsAsked) {  // R-FUT-03
    (void)answered(answer::TryAgain{.retry_after = 1500ms});
    EXPECT_EQ(wait, 1500ms);
    EXPECT_EQ(why, PollWait::asked);
    (void)answered(answer::TryAgain{.retry_after = 0ms});
    EXPECT_EQ(wait, 0s);
    (void)answered(answer::TryAgain{.retry_after = 24h});
    EXPECT_EQ(wait, 60s) << "nobody is kept waiting for a day";
    (void)answered(answer::TryAgain{.retry_after = 30ms}, 10ms);
    EXPECT_EQ(wait, 90ms) << "a short wait does not undercut the spacing";
}

TEST_F(PollMachineTest, WaitsLongerAfterEachPendingAnswer) {  // R-FUT-03
    for (auto const expected : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
        ASSERT_TRUE(polls(answered(answer::Pending{})));
        EXPECT_EQ(wait, expected);
    }
    (void)answered(answer::TryAgain{});
    (void)answered(answer::Pending{});
    EXPECT_EQ(wait, 1s);
}

TEST_F(PollMachineTest, EndsWithTheFailureThatTheServiceReports) {  // R-FUT-03, R-TEL-11
    auto const step =
        answered(answer::Failed{.message = "prompt too\nlong", .category = ErrorCategory::user});
    auto const& error = error_of(step);
    EXPECT_EQ(error.kind, ErrorKind::request_failed);
    EXPECT_EQ(error.category, ErrorCategory::user);
    EXPECT_EQ(error.request_id, "r1");
    EXPECT_EQ(error.message, "Sample request r1 failed: prompt too long");
    EXPECT_FALSE(error.retryable);
    ASSERT_TRUE(step.report);
    EXPECT_EQ(step.report->name, "APIFuture.result_async.application_error");
    EXPECT_EQ(step.report->severity, Severity::warning);
    auto const data = machine.event_data(*step.report, Error{error}, now);
    EXPECT_EQ(data.at("error_category"), "user");
    EXPECT_EQ(data.at("request_id"), "r1");
    EXPECT_THAT(std::string{data.at("error").as_string()}, HasSubstr("prompt too long"));

    auto const server = answered(answer::Failed{.category = ErrorCategory::server});
    EXPECT_EQ(server.report->severity, Severity::error);
}

TEST_F(PollMachineTest, EndsWhenTheAnswerIsNoJsonObject) {  // R-FUT-03
    auto const step = answered(answer::Malformed{"byte 0"});
    EXPECT_EQ(error_of(step).kind, ErrorKind::validation);
    EXPECT_EQ(error_of(step).field, "body");
    EXPECT_THAT(error_of(step).message, HasSubstr("byte 0"));
    EXPECT_EQ(step.report->name, "APIFuture.result_async.validation_error");
    EXPECT_EQ(step.report->severity, Severity::error);
}

TEST_F(PollMachineTest, AsksForTheResultOnceItsSizeIsKnown) {  // R-FUT-40
    EXPECT_TRUE(machine.allow_metadata_only());
    auto const step = answered(answer::Metadata{.payload_bytes = 1234});
    ASSERT_TRUE(std::holds_alternative<PollMachine::Download>(step.next));
    EXPECT_EQ(std::get<PollMachine::Download>(step.next).bytes, 1234);
    EXPECT_FALSE(machine.allow_metadata_only());
}

TEST_F(PollMachineTest, TakesASecondSizeForAFaultOfTheService) {  // R-FUT-40
    (void)answered(answer::Metadata{});
    auto const step = answered(answer::Metadata{});
    EXPECT_EQ(error_of(step).kind, ErrorKind::validation);
    EXPECT_EQ(error_of(step).value, "complete_metadata");
    EXPECT_EQ(step.report->name, "APIFuture.result_async.validation_error");
}

TEST_F(PollMachineTest, NeedsNoSizeThatTheCompletionPollTold) {  // R-FUT-63
    machine.skip_metadata();
    EXPECT_FALSE(machine.allow_metadata_only());
    EXPECT_EQ(error_of(answered(answer::Metadata{})).kind, ErrorKind::validation);
}

TEST_F(PollMachineTest, AsksAgainAtOnceAfter408And5xx) {  // R-FUT-07
    for (int const code : {408, 500, 502, 503, 504, 599}) {
        ASSERT_TRUE(polls(failed(status(code))));
        EXPECT_EQ(wait, 0s) << code;
        EXPECT_EQ(why, code == 408 ? PollWait::not_yet : PollWait::server_error);
    }
}

TEST_F(PollMachineTest, WaitsLongerAfterEachRefusal) {  // R-FUT-07
    for (auto const expected : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
        ASSERT_TRUE(polls(failed(status(429))));
        EXPECT_EQ(wait, expected);
        EXPECT_EQ(why, PollWait::rate_limited);
    }
}

TEST_F(PollMachineTest, WaitsLongerEachTimeNoAnswerComes) {  // R-FUT-07
    for (auto const expected : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
        ASSERT_TRUE(polls(failed(failure(FailureKind::read_timeout))));
        EXPECT_EQ(wait, expected);
        EXPECT_EQ(why, PollWait::no_answer);
    }
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(polls(failed(failure())));
    EXPECT_EQ(wait, 30s);
}

TEST_F(PollMachineTest, CountsRefusalsAndMissingAnswersTogether) {  // R-FUT-07, R-FUT-10
    (void)failed(status(429));
    (void)failed(failure());
    EXPECT_EQ(wait, 2s);
    (void)failed(status(429));
    EXPECT_EQ(wait, 4s);
}

TEST_F(PollMachineTest, TakesTheRejectionOfAProxyForAMissingAnswer) {  // R-RETRY-75
    (void)failed(Error{rejection_error(retrieve)});
    EXPECT_EQ(wait, 1s);
    EXPECT_EQ(why, PollWait::no_answer);
}

TEST_F(PollMachineTest, BeginsTheWaitsAnewAfterAnyOtherAnswer) {  // R-FUT-06, R-FUT-10
    for (int const code : {408, 500, 400, 402}) {
        (void)failed(failure());
        (void)failed(failure());
        (void)failed(status(code));
        (void)failed(failure());
        EXPECT_EQ(wait, 1s) << code;
        (void)answered(answer::TryAgain{});
    }
    (void)failed(failure());
    (void)failed(failure());
    (void)answered(answer::TryAgain{});
    (void)failed(failure());
    EXPECT_EQ(wait, 1s) << "2xx";
}

TEST_F(PollMachineTest, KeepsImmediatePollsATenthOfASecondApart) {  // R-FUT-11
    (void)answered(try_again(QueueState::active), 20ms);
    EXPECT_EQ(wait, 80ms);
    (void)failed(status(408), 99ms);
    EXPECT_EQ(wait, 1ms);
    (void)failed(status(500), 0ms);
    EXPECT_EQ(wait, 100ms);
    (void)failed(status(400), 0ms);
    EXPECT_EQ(wait, 100ms);
    (void)answered(try_again(QueueState::active), 100ms);
    EXPECT_EQ(wait, 0ms);
}

TEST_F(PollMachineTest, SlowsDownAsConfiguredAfter408And5xx) {  // R-FUT-11, R-EXT-80
    rules.backoff = ExponentialPollBackoff{.initial = 1s, .max = 5s};
    for (auto const expected : {1s, 2s, 4s, 5s, 5s}) {
        (void)failed(status(408));
        EXPECT_EQ(wait, expected);
    }
    (void)failed(status(500));
    EXPECT_EQ(wait, 5s);
    (void)answered(try_again(QueueState::active));
    EXPECT_EQ(wait, 0s) << "only 408 and 5xx are slowed down";
    (void)failed(status(503));
    EXPECT_EQ(wait, 1s) << "and anew after another answer";
    (void)failed(status(400));
    (void)failed(status(503));
    EXPECT_EQ(wait, 1s) << "whatever that says";
}

TEST_F(PollMachineTest, AsksTheCallersFunctionHowLongToWait) {  // R-EXT-80
    std::vector<std::int64_t> asked;
    rules.backoff = PollBackoffFunction{[&](std::int64_t iteration) {
        asked.push_back(iteration);
        return std::chrono::milliseconds{200 * (iteration + 1)};
    }};
    (void)failed(status(408));
    EXPECT_EQ(wait, 200ms);
    (void)failed(status(400));
    (void)failed(status(502));
    EXPECT_EQ(wait, 600ms);
    EXPECT_THAT(asked, ElementsAre(0, 2));
}

TEST_F(PollMachineTest, TriesA400ThreeTimesMore) {  // R-FUT-07
    for (int i = 0; i < 3; ++i) {
        auto const step = failed(status(400));
        ASSERT_TRUE(polls(step)) << i;
        EXPECT_EQ(wait, 0s);
        EXPECT_EQ(why, PollWait::bad_request);
        EXPECT_EQ(step.report->kind, "budgeted");
        EXPECT_EQ(step.report->severity, Severity::error);
        EXPECT_TRUE(step.report->should_retry);
    }
    auto const step = failed(status(400, R"({"detail":"Model m1 not loaded"})"));
    auto const& error = error_of(step);
    EXPECT_EQ(error.kind, ErrorKind::status);
    EXPECT_EQ(error.http_status, 400);
    EXPECT_EQ(error.message, "Sample request r1: 400 bad request: Model m1 not loaded");
    EXPECT_EQ(error.stopped, RetryEnd::attempts_spent);
    EXPECT_EQ(error.attempts, 4);
    EXPECT_FALSE(step.report->should_retry);
}

TEST_F(PollMachineTest, RestoresTheBudgetFor400OnlyByA408InJson) {  // R-FUT-12
    for (int i = 0; i < 3; ++i) (void)failed(status(400));
    (void)answered(try_again(QueueState::active));
    (void)failed(status(408, "gateway says hello"));
    EXPECT_FALSE(polls(failed(status(400))));

    PollMachine other{rules, "r2", "Sample", start, TimePoint::max()};
    for (int i = 0; i < 3; ++i) (void)other.on_error(status(400), now);
    (void)other.on_error(status(408, R"({"queue_state":"active"})"), now);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(polls(other.on_error(status(400), now)));
    EXPECT_FALSE(polls(other.on_error(status(400), now)));
}

TEST_F(PollMachineTest, WaitsOutABillingBlockInSilence) {  // R-FUT-07, R-SAMP-52
    auto const blocked = status(402);
    auto const asked = failed(blocked);
    ASSERT_TRUE(std::holds_alternative<PollMachine::AskBilling>(asked.next));
    EXPECT_FALSE(asked.report);
    auto const step = follow(machine.on_billing(blocked, 5s, now));
    EXPECT_EQ(wait, 5s);
    EXPECT_EQ(why, PollWait::billing);
    EXPECT_FALSE(step.report);

    auto const over = machine.on_billing(blocked, std::nullopt, now);
    EXPECT_EQ(error_of(over).kind, ErrorKind::billing);
    EXPECT_EQ(error_of(over).http_status, 402);
    EXPECT_EQ(over.report->name, "APIFuture.result_async.api_status_error");
}

TEST_F(PollMachineTest, SaysThatALostPromiseMayBeMadeAgain) {  // R-FUT-07, R-FUT-14
    auto const step = failed(status(410));
    auto const& error = error_of(step);
    EXPECT_EQ(error.kind, ErrorKind::promise_lost);
    EXPECT_EQ(error.http_status, 410);
    EXPECT_EQ(error.request_id, "r1");
    EXPECT_TRUE(error.retryable);
    ASSERT_TRUE(error.cause);
    EXPECT_EQ(error.cause->kind(), ErrorKind::status);
    EXPECT_EQ(step.report->severity, Severity::warning);
    EXPECT_FALSE(step.report->should_retry);
}

TEST_F(PollMachineTest, SaysThatALostStepOfAModelIsNotMadeAgain) {  // R-FUT-07
    for (std::string_view const type : {"ForwardBackward", "OptimStep", "SaveWeights"}) {
        PollMachine training{rules, "r1", type, start, TimePoint::max()};
        auto const step = training.on_error(status(410), now);
        auto const& error = error_of(step);
        EXPECT_EQ(error.kind, ErrorKind::promise_lost);
        EXPECT_FALSE(error.retryable) << type;
        EXPECT_THAT(error.message, HasSubstr("may have lost its model"));
        EXPECT_THAT(error.message, Not(HasSubstr("submit it again")));
    }
    PollMachine creation{rules, "r1", "CreateModel", start, TimePoint::max()};
    EXPECT_TRUE(error_of(creation.on_error(status(410), now)).retryable);
}

TEST_F(PollMachineTest, EndsAtAnyOtherStatus) {  // R-FUT-07, R-FUT-13
    for (int const code : {301, 401, 403, 404, 405, 418, 422, 425, 600}) {
        auto const step = failed(status(code, R"({"detail":"why not"})"));
        auto const& error = error_of(step);
        EXPECT_EQ(error.http_status, code);
        EXPECT_EQ(error.request_id, "r1");
        EXPECT_THAT(error.message, HasSubstr("Sample request r1")) << code;
        EXPECT_THAT(error.message, HasSubstr(std::to_string(code)));
        EXPECT_THAT(error.body, HasSubstr("why not"));
        EXPECT_THAT(error.headers, ElementsAre(std::pair{"x-trace", "t1"}));
        ASSERT_TRUE(error.cause);
        EXPECT_EQ(error.cause->http_status(), code);
        EXPECT_EQ(step.report->kind, "fatal");
        EXPECT_EQ(step.report->severity, Severity::error);
    }
    EXPECT_EQ(error_of(failed(status(404))).kind, ErrorKind::status);
}

TEST_F(PollMachineTest, LetsNoHandlerSubmitAnewBecauseOfA409) {  // R-FUT-07, C-64
    auto const step = failed(status(409));
    EXPECT_EQ(error_of(step).kind, ErrorKind::request_failed);
    EXPECT_EQ(error_of(step).http_status, 409);
    EXPECT_FALSE(error_of(step).retryable);
}

TEST_F(PollMachineTest, GivesUpAfterFiveMinutesOfTheSame500) {  // R-WIRE-10, C-54, C-64
    TimePoint const first{start};
    for (int i = 0; i < 40; ++i) {
        now = first + i * 7s;
        ASSERT_TRUE(polls(failed(status(500, "lost it"), 0s))) << i;
    }
    now = first + 5min - 1ms;
    ASSERT_TRUE(polls(failed(status(500, "lost it"), 0s)));
    now = first + 5min;
    auto const step = failed(status(500, "lost it"), 0s);
    auto const& error = error_of(step);
    EXPECT_EQ(error.kind, ErrorKind::status) << "a handler may submit anew";
    EXPECT_EQ(error.category, ErrorCategory::server);
    EXPECT_EQ(error.http_status, 500);
    EXPECT_EQ(error.body, "lost it");
    EXPECT_TRUE(error.retryable);
    EXPECT_EQ(error.stopped, RetryEnd::attempts_spent);
    EXPECT_THAT(error.message, HasSubstr("300 s and 42 polls"));
}

TEST_F(PollMachineTest, GivesUpAfterNoFewerThanTwenty500) {  // R-WIRE-10
    for (int i = 0; i < 19; ++i) ASSERT_TRUE(polls(failed(status(500), 1min))) << i;
    EXPECT_FALSE(polls(failed(status(500), 1min)));
}

TEST_F(PollMachineTest, CountsOnlyTheSame500InARow) {  // R-WIRE-10
    auto const nearly = [&] {
        for (int i = 0; i < 19; ++i) ASSERT_TRUE(polls(failed(status(500), 1min))) << i;
    };
    nearly();
    ASSERT_TRUE(polls(answered(answer::TryAgain{})));
    nearly();
    ASSERT_TRUE(polls(failed(status(408))));
    nearly();
    ASSERT_TRUE(polls(failed(status(503))));
    nearly();
    ASSERT_TRUE(polls(failed(status(500, "something else"))));
    nearly();
    ASSERT_TRUE(polls(failed(failure())));
    nearly();
    EXPECT_FALSE(polls(failed(status(500), 1min)));
}

TEST_F(PollMachineTest, NeverGivesUpBecauseOfAnOutage) {  // C-54, R-WIRE-10
    for (int const code : {502, 503, 504}) {
        for (int i = 0; i < 500; ++i) ASSERT_TRUE(polls(failed(status(code), 1min))) << code;
    }
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(polls(failed(failure(), 1min)));
    rules.same_errors_for.reset();
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(polls(failed(status(500), 1min)));
}

TEST_F(PollMachineTest, KnowsHowManyPollsHaveFailedInARow) {  // R-RETRY-23
    (void)failed(status(503));
    (void)failed(failure());
    EXPECT_EQ(machine.failures(), 2);
    (void)failed(status(408));
    EXPECT_FALSE(machine.failing()) << "it was an answer";
    (void)failed(status(429));
    EXPECT_TRUE(machine.failing());
    (void)answered(answer::TryAgain{});
    EXPECT_FALSE(machine.failing());
}

TEST_F(PollMachineTest, EndsWithATimeoutAtItsDeadline) {  // R-FUT-21
    PollMachine limited{rules, "r1", "OptimStep", start, start + 10s};
    EXPECT_FALSE(limited.expired(start + 10s - 1ns));
    EXPECT_TRUE(limited.expired(start + 10s));
    limited.begin(start);
    (void)limited.on_error(status(408), start + 1s);
    auto const step = limited.on_deadline(start + 10s);
    auto const& error = error_of(step);
    EXPECT_EQ(error.kind, ErrorKind::timeout);
    EXPECT_EQ(error.request_id, "r1");
    EXPECT_THAT(error.message,
                HasSubstr("OptimStep request r1: no result within 10 s and 1 polls"));
    EXPECT_EQ(step.report->name, "APIFuture.result_async.timeout");
    EXPECT_EQ(step.report->severity, Severity::error);
}

TEST_F(PollMachineTest, EndsWithTheLastFailureAtItsDeadlineIfThereWasOne) {  // R-FUT-21
    (void)failed(failure());
    (void)failed(status(503, "busy"));
    (void)answered(answer::TryAgain{});
    auto const step = machine.on_deadline(now);
    auto const& error = error_of(step);
    EXPECT_EQ(error.kind, ErrorKind::status);
    EXPECT_EQ(error.http_status, 503);
    EXPECT_EQ(error.body, "busy");
    EXPECT_THAT(error.message, HasSubstr("no result within"));
    EXPECT_FALSE(error.retryable);
    EXPECT_EQ(step.report->name, "APIFuture.result_async.timeout");
}

TEST_F(PollMachineTest, ReportsQueueStatesOf408And429And503) {  // R-FUT-31
    for (int const code : {408, 429, 503}) {
        auto const step = failed(
            status(code, R"({"queue_state":" Paused_Rate_Limit ","queue_state_reason":"busy"})"));
        ASSERT_TRUE(step.queue) << code;
        EXPECT_EQ(step.queue->state, QueueState::paused_rate_limit);
        EXPECT_EQ(step.queue->reason, "busy");
    }
    EXPECT_FALSE(failed(status(500, R"({"queue_state":"active"})")).queue);
    EXPECT_FALSE(failed(status(408, "no JSON")).queue);
    EXPECT_FALSE(failed(status(408)).queue);
}

TEST_F(PollMachineTest, KeepsAnUnknownStateWithoutAReasonToItself) {  // R-FUT-31
    EXPECT_FALSE(answered(try_again(QueueState::unknown)).queue);
    EXPECT_TRUE(answered(try_again(QueueState::unknown, "odd")).queue);
    EXPECT_TRUE(answered(try_again(QueueState::active)).queue);
    EXPECT_FALSE(failed(status(408, R"({"queue_state":"dreaming"})")).queue);
}

TEST_F(PollMachineTest, TellsTelemetryOfEveryPollThatFailed) {  // R-TEL-10, R-TEL-11
    (void)failed(status(400));
    auto const broken = failure();
    auto const lost = failed(broken, 2s);
    ASSERT_TRUE(lost.report);
    EXPECT_EQ(lost.report->name, "APIFuture.result_async.connection_error");
    EXPECT_EQ(lost.report->severity, Severity::warning);
    auto data = machine.event_data(*lost.report, broken, start + 3s);
    EXPECT_EQ(data.at("request_id"), "r1");
    EXPECT_EQ(data.at("request_type"), "Sample");
    EXPECT_TRUE(data.at("status_code").is_null());
    EXPECT_EQ(data.at("kind"), "retry_with_backoff");
    EXPECT_EQ(data.at("should_retry"), true);
    EXPECT_EQ(data.at("is_user_error"), false);
    EXPECT_EQ(data.at("exception_type"), "APIConnectionError");
    EXPECT_EQ(data.at("iteration"), 1);
    EXPECT_EQ(data.at("elapsed_time"), 3.0);
    EXPECT_EQ(data.at("connection_error_retries"), 1);
    EXPECT_EQ(data.at("bad_request_retries"), 1);

    auto const refused = status(422, R"({"detail":"no such field"})");
    auto const fatal = failed(refused);
    EXPECT_EQ(fatal.report->name, "APIFuture.result_async.api_status_error");
    data = machine.event_data(*fatal.report, refused, now);
    EXPECT_EQ(data.at("status_code"), 422);
    EXPECT_EQ(data.at("is_user_error"), true);
    EXPECT_EQ(data.at("should_retry"), false);
    EXPECT_EQ(data.at("kind"), "fatal");
    EXPECT_THAT(std::string{data.at("detail").as_string()}, HasSubstr("no such field"));
    EXPECT_THAT(std::string{data.at("exception").as_string()}, HasSubstr("422"));

    auto const early = failed(status(408));
    EXPECT_EQ(early.report->kind, "retry");
    EXPECT_EQ(early.report->severity, Severity::warning);
}

TEST_F(PollMachineTest, PassesOnThatItsClientWentAway) {  // R-FUT-22
    auto const step = failed(Error{{.kind = ErrorKind::cancelled, .message = "closed"}});
    EXPECT_EQ(error_of(step).kind, ErrorKind::cancelled);
    EXPECT_EQ(error_of(step).message, "closed");
    EXPECT_FALSE(step.report);
}

TEST_F(PollMachineTest, EndsWhenAnotherPollCannotFareBetter) {
    auto const step = failed(failure(FailureKind::too_large));
    EXPECT_EQ(error_of(step).kind, ErrorKind::connection);
    EXPECT_FALSE(error_of(step).retryable);
    EXPECT_EQ(step.report->kind, "fatal");
    EXPECT_EQ(step.report->severity, Severity::error);
}

TEST_F(PollMachineTest, NumbersItsPollsFromZero) {  // R-FUT-01
    EXPECT_EQ(machine.begin(now), 0);
    EXPECT_EQ(machine.begin(now), 1);
    EXPECT_EQ(machine.polls(), 2);
}

struct Events final : Telemetry {
    void event(std::string_view name, Severity severity, boost::json::object data) override {
        seen.push_back(std::string{name} + (severity == Severity::error ? " error " : " warning ") +
                       boost::json::serialize(data));
    }
    void capture(Error const& /*error*/) override {}
    std::vector<std::string> seen{};
};

TEST(UnreadableResult, IsToldToTelemetry) {  // R-FUT-03, R-TEL-10
    Events events;
    Error const error{{.kind = ErrorKind::validation, .message = "bad byte"}};
    report_unreadable_result(&events, "r1", "Sample", true, error);
    report_unreadable_result(&events, "r1", "Sample", false, error);
    report_unreadable_result(nullptr, "r1", "Sample", false, error);
    ASSERT_EQ(events.seen.size(), 2U);
    EXPECT_THAT(events.seen[0],
                HasSubstr("APIFuture.result_async.proto_deserialization_error error"));
    EXPECT_THAT(events.seen[0], HasSubstr("bad byte"));
    EXPECT_THAT(events.seen[1], HasSubstr("APIFuture.result_async.validation_error error"));
}

}  // namespace
}  // namespace tinkxx::service
