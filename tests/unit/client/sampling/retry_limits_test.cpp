// What RetryConfig and circuit breakers allow, by what reaches the service.
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::json_reply;
using support::RawTinker;
using support::Submit;
using support::TrainSubmit;
using ::testing::HasSubstr;
using testing::Reply;
using ::testing::SizeIs;

auto const prompt = ModelInput::from_tokens({1, 2, 3});

class RetryLimits : public ::testing::Test {
protected:
    RetryLimits() { tinker.clock->set_auto_advance(false); }

    ServiceClient& service() {
        if (!service_) service_.emplace(tinker.options());
        return *service_;
    }
    void run() {
        while (tinker.clock->run_ready()) {
        }
    }
    void wait(std::chrono::nanoseconds time) {
        tinker.clock->advance(time);
        run();
    }
    Future<SampleResponse> sample(SamplingClient const& from, CallOptions call = {}) {
        auto future = from.sample(prompt, {.max_tokens = 4}, SampleOptions{}, std::move(call));
        run();
        return future;
    }
    /// The outcome of one sample after an hour, and how many requests were sent for it.
    std::pair<Result<SampleResponse>, std::size_t> outcome(RetryConfig retry) {
        auto const before = tinker.submits().size();
        auto pending = sample(service().create_sampling_client("org/tiny", std::move(retry)));
        wait(1h);
        EXPECT_TRUE(pending.ready());
        return {pending.result(), tinker.submits().size() - before};
    }
    /// Answers every submit with this status.
    void answer(int status) {
        tinker.on_submit = [status](Submit const&) -> RawTinker::Answer {
            if (status == 0) return Reply{.status = 0, .failure = Failure{}};
            return json_reply(R"({"detail":"no"})", status);
        };
    }
    CircuitBreaker breaker(int threshold = 5) {
        CircuitBreakerOptions rules;
        rules.failure_threshold = threshold;
        rules.clock = [this] { return tinker.clock->now(); };
        return CircuitBreaker{"test", rules};
    }
    SamplingClient guarded(CircuitBreaker const& by) {
        return service().create_sampling_client(
            SamplerOptions{.base_model = "org/tiny", .circuit_breaker = by});
    }
    void two_run_out_of_time(SamplingClient const& sampler) {
        for (int i = 0; i < 2; ++i) {
            auto pending = sample(sampler, {.deadline = 8s});
            wait(10s);
            EXPECT_EQ(pending.result().error().kind(), ErrorKind::timeout);
        }
    }
    TrainingClient trainer() {
        auto pending = service().create_lora_training_client("org/tiny");
        for (int i = 0; i < 100 && !pending.ready(); ++i) wait(100ms);
        return pending.get();
    }

    RawTinker tinker;

private:
    std::optional<ServiceClient> service_{};
};

// --- RetryConfig --------------------------------------------------------------------------------

TEST_F(RetryLimits, NoRetriesMeansOneRequestWhateverTheFailure) {  // R-RETRY-17
    for (int const status : {500, 503, 408, 409, 429, 402, 0}) {
        answer(status);
        auto const [result, requests] = outcome({.max_retries = 0});
        EXPECT_EQ(requests, 1U) << status;
        ASSERT_FALSE(result) << status;
        EXPECT_EQ(result.error().stopped(), RetryEnd::attempts_spent) << status;
        EXPECT_THAT(result.error().what(), HasSubstr("gave up after 1 request")) << status;
    }
}

TEST_F(RetryLimits, RetriesAreCountedAcrossAllLayers) {  // R-RETRY-17
    for (int const status : {503, 429}) {
        answer(status);
        auto const [result, requests] = outcome({.max_retries = 3});
        EXPECT_EQ(requests, 4U) << status;
        EXPECT_EQ(result.error().http_status(), status);
        EXPECT_EQ(result.error().details().attempts, 4) << status;
    }
    // Lost results are the handler's, refusals the gate's, and server errors the submit loop's.
    tinker.on_submit = [n = 0](Submit const&) mutable -> RawTinker::Answer {
        ++n;
        if (n == 1) return json_reply("{}", 503);
        if (n == 2) return json_reply("{}", 429);
        return std::nullopt;
    };
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return json_reply("{}", 410);
    };
    auto const [result, requests] = outcome({.max_retries = 4});
    EXPECT_EQ(requests, 5U);
    EXPECT_EQ(result.error().kind(), ErrorKind::promise_lost);
}

TEST_F(RetryLimits, NoLayerRepeatsWhatIsNotListed) {  // R-RETRY-20, R-RETRY-80
    for (int const status : {500, 503, 408, 409, 429, 0}) {
        answer(status);
        auto const [result, requests] = outcome({.retryable_errors = {}, .retryable_statuses = {}});
        EXPECT_EQ(requests, 1U) << status;
        EXPECT_EQ(result.error().stopped(), RetryEnd::permanent) << status;
    }
    answer(503);
    EXPECT_EQ(outcome({.retryable_statuses = {429}}).second, 1U);
    answer(429);
    EXPECT_EQ(outcome({.retryable_statuses = {{500, 599}}}).second, 1U);
}

TEST_F(RetryLimits, A429ThatIsNotListedSaysWhenToComeBack) {  // R-SAMP-33
    answer(429);
    auto const [result, requests] = outcome({.retryable_statuses = {503}});
    EXPECT_EQ(result.error().retry_after(), 1s);
}

TEST_F(RetryLimits, ABudgetOfNothingMeansOneRequest) {  // R-RETRY-23
    for (int const status : {500, 503, 429, 402, 0}) {
        answer(status);
        auto const [result, requests] = outcome({.retry_budget = RetryBudget{.capacity = 0}});
        EXPECT_EQ(requests, 1U) << status;
        EXPECT_THAT(result.error().what(), HasSubstr("RetryConfig::retry_budget")) << status;
    }
}

TEST_F(RetryLimits, ABudgetBindsWhatTheServerSpares) {  // R-RETRY-23, R-SAMP-41
    tinker.flags["sample_no_retries"] = true;
    answer(503);
    auto const [result, requests] = outcome({.retry_budget = RetryBudget{.capacity = 2}});
    EXPECT_EQ(requests, 3U);
    EXPECT_THAT(result.error().what(), HasSubstr("RetryConfig::retry_budget"));
}

TEST_F(RetryLimits, ABudgetOfTimePaysForEveryWait) {  // R-RETRY-23
    answer(503);  // the submit loop waits for 1, 2 and 4 s; 8 more are too many
    EXPECT_EQ(outcome({.retry_budget = RetryBudget{.total_delay = 10s}}).second, 4U);
    answer(429);  // a second each
    EXPECT_EQ(outcome({.retry_budget = RetryBudget{.total_delay = 10s}}).second, 11U);
}

TEST_F(RetryLimits, ABudgetOfTimePaysForRepetitionsThatFailAgain) {  // R-RETRY-23
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        auto reply = json_reply("{}", 503);
        reply.delay = 20s;
        return reply;
    };
    // 1 s, then 20 s of the first repetition and a wait of 2 s, and so on.
    EXPECT_EQ(outcome({.retry_budget = RetryBudget{.total_delay = 30s}}).second, 3U);
}

TEST_F(RetryLimits, ABudgetPaysForPollsThatAreRepeated) {  // R-RETRY-23
    int polls = 0;
    tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
        ++polls;
        return json_reply("{}", 503);
    };
    auto const [result, requests] = outcome({.retry_budget = RetryBudget{.capacity = 5}});
    EXPECT_EQ(requests, 1U);
    EXPECT_EQ(polls, 6);
    EXPECT_EQ(result.error().http_status(), 503);
    EXPECT_THAT(result.error().what(), HasSubstr("RetryConfig::retry_budget"));
}

TEST_F(RetryLimits, PollsAreRepeatedWhateverTheLimitOfRequests) {  // R-RETRY-17, C-54
    int failures = 30;
    tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
        if (failures-- > 0) return json_reply("{}", 503);
        return std::nullopt;
    };
    auto const [result, requests] = outcome({.retryable_statuses = {}, .max_retries = 0});
    EXPECT_EQ(requests, 1U);
    EXPECT_TRUE(result);
}

TEST_F(RetryLimits, ACallCanHaveLimitsOfItsOwn) {  // R-RETRY-60
    answer(503);
    auto const sampler =
        service().create_sampling_client("org/tiny", RetryConfig{.max_retries = 0});
    auto const requests = [&](RetryOverrides retry) {
        auto const before = tinker.submits().size();
        auto pending = sample(sampler, {.retry = std::move(retry)});
        wait(290s);
        auto const sent = tinker.submits().size() - before;
        pending.cancel();
        run();
        return sent;
    };
    EXPECT_EQ(requests({}), 1U);
    EXPECT_EQ(requests({.max_retries = 2}), 3U);
    EXPECT_GT(requests({.max_retries = no_limit}), 10U);
    EXPECT_EQ(requests({.max_retries = no_limit, .retry_budget = RetryBudget{.capacity = 4}}), 5U);
    // Of this call alone: the one before has left it as it was.
    EXPECT_EQ(requests({.max_retries = no_limit, .retry_budget = RetryBudget{.capacity = 4}}), 5U);

    auto const thrifty = service().create_sampling_client(
        "org/tiny", RetryConfig{.retry_budget = RetryBudget{.capacity = 0}});
    auto pending = sample(thrifty, {.retry = {.retry_budget = no_limit}});
    wait(10s);
    EXPECT_FALSE(pending.ready());
}

TEST_F(RetryLimits, ACallCanHaveASemaphoreOfItsOwn) {  // R-RETRY-22, R-RETRY-60
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 50s, .failure = Failure{}};
    };
    auto const sampler =
        service().create_sampling_client("org/tiny", RetryConfig{.max_connections = 1});
    auto const all = [&](RetryOverrides const& retry, int count) {
        auto const before = tinker.submits().size();
        std::vector<Future<SampleResponse>> pending;
        for (int i = 0; i < count; ++i) pending.push_back(sample(sampler, {.retry = retry}));
        auto const sent = tinker.submits().size() - before;
        for (auto& each : pending) each.cancel();
        run();
        return sent;
    };
    EXPECT_EQ(all({}, 4), 1U);
    EXPECT_EQ(all({.max_connections = 3}, 4), 3U);
    EXPECT_EQ(all({.max_connections = no_limit}, 4), 4U);
    EXPECT_EQ(all({.max_connections = 2, .semaphore_key = "shared"}, 4), 2U);
}

TEST_F(RetryLimits, ALimitOfTheCallerAboveTheDefaultIsKept) {  // R-RETRY-05
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 50s, .failure = Failure{}};
    };
    auto options = tinker.options();
    options.dispatch.count = 5000;
    ServiceClient const wide{options};
    auto const sampler =
        wide.create_sampling_client("org/tiny", RetryConfig{.max_connections = 1500});
    std::vector<Future<SampleResponse>> pending;
    for (int i = 0; i < 1600; ++i) pending.push_back(sampler.sample(prompt, {.max_tokens = 1}));
    run();
    EXPECT_THAT(tinker.submits(), SizeIs(1500));
}

TEST_F(RetryLimits, RetriesOfACopyAreSetWhereItIsMade) {  // R-SESS-32
    auto handle = service().create_sampling_client("org/tiny").get_sampler_handle();
    run();
    auto const copy =
        from_sampler_handle(handle.get(), RetryConfig{.max_retries = 1}, tinker.options());
    answer(503);
    auto pending = sample(copy);
    wait(10min);
    EXPECT_THAT(tinker.submits(), SizeIs(2));
    EXPECT_TRUE(pending.ready());
    EXPECT_THROW((void)from_sampler_handle("", RetryConfig{.max_retries = -1}, tinker.options()),
                 ValidationError);
}

TEST_F(RetryLimits, OfATrainedSamplerAreThoseThatItWasMadeWith) {  // R-TRAIN-62, R-RETRY-17
    auto const model = trainer();
    tinker.train_result = [](TrainSubmit const& submit) -> std::string {
        if (submit.path != "save_weights_for_sampler") return {};
        return R"({"sampling_session_id":"made","type":"save_weights_for_sampler"})";
    };
    auto saved = model.save_weights_and_get_sampling_client(
        TrainedSamplerOptions{.retry = {.max_retries = 2}});
    wait(1s);
    answer(503);
    auto pending = sample(saved.get());
    wait(10min);
    EXPECT_THAT(tinker.submits(), SizeIs(3));
    EXPECT_TRUE(pending.ready());

    auto const loaded = model.create_sampling_client(
        "tinker://run/sampler_weights/1", TrainedSamplerOptions{.retry = {.max_retries = 0}});
    auto once = sample(loaded);
    wait(10min);
    EXPECT_THAT(tinker.submits(), SizeIs(4));
    EXPECT_TRUE(once.ready());
}

// --- outages while polling ----------------------------------------------------------------------

TEST_F(RetryLimits, AnOutageOfSixMinutesIsWaitedOut) {  // C-54, R-WIRE-10
    for (int const status : {502, 503, 504, 0}) {
        auto const start = tinker.clock->now();
        tinker.on_poll = [this, start, status](std::string const&,
                                               std::int64_t) -> RawTinker::Answer {
            if (tinker.clock->now() - start >= 6min) return std::nullopt;
            if (status == 0) return Reply{.status = 0, .failure = Failure{}};
            auto reply = json_reply(R"({"detail":"down"})", status);
            reply.delay = 1s;
            return reply;
        };
        auto const before = tinker.submits().size();
        auto pending = sample(service().create_sampling_client("org/tiny"));
        wait(5min);
        auto asked = service().status();
        run();
        auto const standing = asked.get().pending.at(0);
        EXPECT_THAT(standing.why, ::testing::AnyOf(HasSubstr("down"), HasSubstr("retrieve_future")))
            << status;
        wait(2min);
        EXPECT_TRUE(pending.ready()) << status;
        EXPECT_TRUE(pending.result()) << status;
        EXPECT_EQ(tinker.submits().size() - before, 1U) << status;
    }
}

TEST_F(RetryLimits, AResultThatCannotBeHadIsAskedForAnew) {  // C-64, R-WIRE-10
    tinker.on_poll = [](std::string const& id, std::int64_t) -> RawTinker::Answer {
        if (id != "req-0") return std::nullopt;
        auto reply = json_reply(R"({"detail":"lost it"})", 500);
        reply.delay = 1s;
        return reply;
    };
    auto pending = sample(service().create_sampling_client("org/tiny"));
    wait(5min - 2s);
    EXPECT_THAT(tinker.submits(), SizeIs(1));
    wait(10s);
    EXPECT_TRUE(pending.ready());
    EXPECT_TRUE(pending.result());
    EXPECT_THAT(tinker.submits(), SizeIs(2));
}

TEST_F(RetryLimits, HowLongThatTakesIsAnOption) {  // R-WIRE-10
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        auto reply = json_reply(R"({"detail":"lost it"})", 500);
        reply.delay = 1s;
        return reply;
    };
    auto options = tinker.options();
    options.poll_error_limit = 30s;
    ServiceClient const hasty{options};
    auto pending = sample(hasty.create_sampling_client("org/tiny", RetryConfig{.max_retries = 0}));
    wait(35s);
    ASSERT_TRUE(pending.ready());
    auto const error = pending.result().error();
    EXPECT_EQ(error.http_status(), 500);
    EXPECT_TRUE(error.retryable());

    options.poll_error_limit = 0s;
    ServiceClient const patient{options};
    auto waiting = sample(patient.create_sampling_client("org/tiny"));
    wait(90min);
    EXPECT_FALSE(waiting.ready());
}

// --- circuit breakers ---------------------------------------------------------------------------

TEST_F(RetryLimits, ABreakerOpensForEachFailedSubmitOfTheLoop) {  // R-EXT-03
    answer(503);
    auto const by = breaker();
    auto const sampler = guarded(by);
    auto pending = sample(sampler);
    wait(15s - 1ms);  // requests at 0, 1, 3 and 7 s
    EXPECT_EQ(by.status().failures, 4);
    EXPECT_FALSE(pending.ready());
    wait(1ms);  // the fifth
    ASSERT_TRUE(pending.ready());
    auto const error = pending.result().error();
    EXPECT_EQ(error.kind(), ErrorKind::circuit_open);
    EXPECT_EQ(error.retry_after(), 30s);
    ASSERT_NE(error.cause(), nullptr);
    EXPECT_EQ(error.cause()->http_status(), 503);
    EXPECT_THAT(tinker.submits(), SizeIs(5));
}

TEST_F(RetryLimits, A408CountsForTheBreaker) {  // R-EXT-02
    answer(408);
    auto const by = breaker(2);
    auto pending = sample(guarded(by));
    wait(1s);
    EXPECT_EQ(by.state(), CircuitState::open);
    EXPECT_THAT(tinker.submits(), SizeIs(2));
}

TEST_F(RetryLimits, WhatAnOldServerDoesNotKnowIsSentAnewOnlyIfTheBreakerAgrees) {  // R-EXT-03
    auto by = breaker(1);
    tinker.on_submit = [&by](Submit const&) -> RawTinker::Answer {
        by.admit()->failed(Error{{.kind = ErrorKind::connection}});  // another call fails meanwhile
        return json_reply(R"({"detail":[{"loc":["body","topk_sample_logprobs"]}]})", 422);
    };
    auto pending = sample(guarded(by));
    ASSERT_TRUE(pending.ready());
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::circuit_open);
    EXPECT_THAT(tinker.submits(), SizeIs(1));
}

TEST_F(RetryLimits, ManyCallsFailFastWhileTheServiceIsDown) {  // R-EXT-03
    answer(500);
    auto const by = breaker();
    auto const sampler = guarded(by);
    std::vector<Future<SampleResponse>> pending;
    for (int i = 0; i < 8; ++i) pending.push_back(sample(sampler, {.deadline = 8s}));
    EXPECT_EQ(by.state(), CircuitState::open);
    EXPECT_LE(tinker.submits().size(), 8U);
    wait(1s);  // what waited for its next try is refused it
    for (auto& each : pending) {
        ASSERT_TRUE(each.ready());
        EXPECT_EQ(each.result().error().kind(), ErrorKind::circuit_open);
    }
    auto const sent = tinker.submits().size();
    auto refused = sample(sampler);  // in no time, and nothing is sent
    ASSERT_TRUE(refused.ready());
    EXPECT_THAT(refused.result().error().what(), HasSubstr("try again in 29 s"));
    EXPECT_THAT(tinker.submits(), SizeIs(sent));
}

TEST_F(RetryLimits, ABreakerThatIsOpenAsksForNoSampler) {  // R-EXT-03
    auto const by = breaker(1);
    auto copy = by;
    copy.admit()->failed(Error{{.kind = ErrorKind::connection}});
    auto refused = sample(guarded(by));
    ASSERT_TRUE(refused.ready());
    EXPECT_EQ(refused.result().error().kind(), ErrorKind::circuit_open);
    EXPECT_THAT(tinker.transport->sent(), SizeIs(0));
}

TEST_F(RetryLimits, ADeadlineCountsForTheBreakerIfTheServiceWasSilent) {  // R-EXT-03
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 50s, .failure = Failure{}};
    };
    auto const by = breaker(2);
    two_run_out_of_time(guarded(by));
    EXPECT_EQ(by.state(), CircuitState::open);
}

TEST_F(RetryLimits, ADeadlineInTheQueueOfAHealthyServiceDoesNotCount) {  // R-EXT-03
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return json_reply("{}", 408);
    };
    auto const by = breaker(1);
    auto pending = sample(guarded(by), {.deadline = 8s});
    wait(10s);
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::timeout);
    EXPECT_EQ(by.state(), CircuitState::closed);
}

TEST_F(RetryLimits, TheWatchdogCountsForTheBreakerIfPollsFail) {  // R-EXT-03
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        auto reply = json_reply("{}", 503);
        reply.delay = 10s;
        return reply;
    };
    auto const by = breaker(1);
    auto pending = sample(guarded(by), {.retry = {.progress_timeout = 1min}});
    wait(70s);
    auto const error = pending.result().error();
    EXPECT_EQ(error.kind(), ErrorKind::connection);
    EXPECT_TRUE(error.retryable());
    EXPECT_EQ(error.stopped(), RetryEnd::time_spent);
    EXPECT_EQ(by.state(), CircuitState::open);
}

TEST_F(RetryLimits, AServiceThatCannotBeReachedOpensTheBreakerAtItsFirstContact) {  // R-EXT-03
    tinker.on_other = [](testing::SentRequest const&) -> RawTinker::Answer {
        return Reply{.status = 0, .failure = Failure{}};
    };
    auto const by = breaker(2);
    two_run_out_of_time(guarded(by));
    EXPECT_EQ(by.state(), CircuitState::open);
}

TEST_F(RetryLimits, ErrorsOfTheUserAndCancelsDoNotCountForTheBreaker) {  // R-EXT-02
    auto const by = breaker(1);
    auto const sampler = guarded(by);
    answer(422);
    EXPECT_EQ(sample(sampler).result().error().http_status(), 422);
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 50s, .failure = Failure{}};
    };
    sample(sampler).cancel();
    run();
    EXPECT_EQ(by.state(), CircuitState::closed);
}

TEST_F(RetryLimits, RefusalsForLoadCountForTheBreaker) {  // R-EXT-02
    answer(429);
    auto const by = breaker(3);
    auto pending = sample(guarded(by));
    wait(2s);
    ASSERT_TRUE(pending.ready());
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::circuit_open);
    EXPECT_THAT(tinker.submits(), SizeIs(3));
}

TEST_F(RetryLimits, ATrainedSamplerCanHaveABreaker) {  // R-EXT-03
    auto const by = breaker(1);
    auto const sampler = trainer().create_sampling_client(
        "tinker://run/sampler_weights/1", TrainedSamplerOptions{.circuit_breaker = by});
    answer(503);
    auto pending = sample(sampler);
    ASSERT_TRUE(pending.ready());
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::circuit_open);
}

TEST_F(RetryLimits, TrainingCallsCanHaveABreaker) {  // R-EXT-03
    auto const by = breaker(2);
    auto const model = trainer().with({.circuit_breaker = by});
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer { return json_reply("{}", 503); };
    auto const before = tinker.trained().size();
    auto pending = model.optim_step({});
    wait(5s);
    ASSERT_TRUE(pending.ready());
    auto const error = pending.result().error();
    EXPECT_EQ(error.kind(), ErrorKind::circuit_open);
    EXPECT_EQ(error.cause()->http_status(), 503);
    EXPECT_EQ(tinker.trained().size() - before, 2U);
    auto refused = model.optim_step({});
    run();
    ASSERT_TRUE(refused.ready());
    EXPECT_EQ(refused.result().error().kind(), ErrorKind::circuit_open);
    EXPECT_EQ(tinker.trained().size() - before, 2U);

    tinker.on_train = {};
    wait(30s);  // a trial
    auto trial = model.optim_step({});
    wait(1s);
    EXPECT_TRUE(trial.result());
    EXPECT_EQ(by.state(), CircuitState::closed);
}

TEST_F(RetryLimits, ATrainingCallThatEndsByItsDeadlineCountsForItsBreaker) {  // R-EXT-03
    auto const by = breaker(1);
    auto const model = trainer().with({.circuit_breaker = by, .deadline = 5s});
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 50s, .failure = Failure{}};
    };
    auto pending = model.optim_step({});
    wait(6s);
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::timeout);
    EXPECT_EQ(by.state(), CircuitState::open);
}

// --- observers ----------------------------------------------------------------------------------

class Attempts final : public Observer {
public:
    void on_attempt_failed(AttemptFailedEvent const& event) override {
        failed.push_back(event.attempt);
        errors.push_back(event.error->http_status().value_or(0));
    }
    std::vector<std::int64_t> failed{};
    std::vector<int> errors{};
};

TEST_F(RetryLimits, ObserversAreToldOfTheAttemptThatWasTheLast) {  // R-RETRY-41
    auto const seen = std::make_shared<Attempts>();
    auto options = tinker.options();
    options.observers.push_back(seen);
    ServiceClient const watched{options};
    answer(422);
    auto pending = sample(watched.create_sampling_client("org/tiny"));
    EXPECT_TRUE(pending.ready());
    answer(503);
    auto once = sample(
        watched.create_sampling_client("org/tiny", RetryConfig{.enable_retry_logic = false}));
    EXPECT_TRUE(once.ready());
    EXPECT_THAT(seen->failed, ::testing::ElementsAre(1, 1));
    EXPECT_THAT(seen->errors, ::testing::ElementsAre(422, 503));
}

}  // namespace
}  // namespace tinkxx
