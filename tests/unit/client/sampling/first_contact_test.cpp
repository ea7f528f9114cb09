// What a program hears from a server that it cannot work with: at once if waiting is no use, and
// within seconds if it is.
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Reply;
using testing::SentRequest;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// As a transport reports a certificate that it refuses.
Reply refused_certificate() {
    return Reply{.status = 0,
                 .failure = Failure{.kind = FailureKind::tls,
                                    .message = "TLS with tinker.test:443 failed: its certificate "
                                               "is self-signed; name its file in tls.ca_file",
                                    .seen = Seen::no,
                                    .permanent = true}};
}
Reply refused_connection() {
    return Reply{.status = 0,
                 .failure = Failure{.kind = FailureKind::connect,
                                    .message = "cannot connect to tinker.test:80: refused",
                                    .seen = Seen::no}};
}
Reply no_answer() { return Reply{.status = 0, .delay = 24h, .failure = Failure{}}; }

class FirstContact : public ::testing::Test {
protected:
    FirstContact() {
        tinker.clock->set_auto_advance(false);
        options.log = [lines = lines](LogLevel level, std::string_view line) {
            if (level == LogLevel::warning) lines->emplace_back(line);
        };
        options.log_level = LogLevel::warning;
    }

    ServiceClient& service() {
        if (!client_) client_.emplace(options);
        return *client_;
    }
    SamplingClient sampler(RetryConfig retry = {}) {
        return service().create_sampling_client("org/tiny", std::move(retry));
    }
    TrainingClient trainer() {
        auto pending = service().create_lora_training_client("org/tiny");
        run();
        return pending.get();
    }
    Future<SampleResponse> draw(SamplingClient const& from) {
        auto future = from.sample(ModelInput::from_tokens({1}), {.max_tokens = 4});
        run();
        return future;
    }
    void run() {
        while (tinker.clock->run_ready()) {
        }
    }
    void advance(std::chrono::nanoseconds step) {
        tinker.clock->advance(step);
        run();
    }
    /// Answers every request like this.
    void answer_all(Reply const& reply) {
        tinker.on_other = [reply](SentRequest const&) -> RawTinker::Answer { return reply; };
        tinker.on_submit = [reply](Submit const&) -> RawTinker::Answer { return reply; };
        tinker.on_train = [reply](TrainSubmit const&) -> RawTinker::Answer { return reply; };
        tinker.on_poll = [reply](std::string const&, std::int64_t) -> RawTinker::Answer {
            return reply;
        };
    }
    /// A call that has failed without any time passing.
    template <class T>
    void expect_hopeless(Future<T>& call) {
        ASSERT_TRUE(call.wait_for(0ms)) << "it still tries";
        auto const result = call.result();
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind(), ErrorKind::connection);
        EXPECT_FALSE(result.error().retryable());
        EXPECT_EQ(result.error().stopped(), RetryEnd::permanent);
        EXPECT_THAT(result.error().what(), HasSubstr("name its file in tls.ca_file"));
    }

    RawTinker tinker;
    std::shared_ptr<std::vector<std::string>> const lines{
        std::make_shared<std::vector<std::string>>()};
    ClientOptions options{tinker.options()};

private:
    std::optional<ServiceClient> client_{};
};

TEST_F(FirstContact, WhatCannotHealFailsTheStartAtOnce) {
    answer_all(refused_certificate());
    auto call = draw(sampler());
    expect_hopeless(call);
    EXPECT_EQ(tinker.transport->sent().size(), 1U);
    EXPECT_THAT(*lines, IsEmpty()) << "the caller has the error";
}

TEST_F(FirstContact, WhatCannotHealFailsTheCreationOfASamplerAtOnce) {
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("create_sampling_session")) return std::nullopt;
        return refused_certificate();
    };
    auto call = draw(sampler());
    expect_hopeless(call);
    EXPECT_EQ(tinker.count("/api/v1/create_sampling_session"), 1U);
}

TEST_F(FirstContact, WhatCannotHealEndsASubmitWhateverTheRetryConfigSays) {
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer { return refused_certificate(); };
    RetryConfig config;
    config.retryable_errors = {ErrorKind::connection, ErrorKind::timeout};
    config.retry_if = std::make_shared<std::function<bool(Error const&)> const>(
        [](Error const&) { return true; });
    auto call = draw(sampler(config));
    expect_hopeless(call);
    EXPECT_THAT(tinker.submits(), SizeIs(1));
}

TEST_F(FirstContact, AServerThatLosesItsCertificateIsNotPolledForEver) {
    RetryConfig config;
    config.retryable_errors = {ErrorKind::connection};
    auto const from = sampler(config);
    int polls = 0;
    tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
        if (++polls == 1) return json_reply("{}", 408);
        return refused_certificate();
    };
    auto call = draw(from);
    advance(1s);
    expect_hopeless(call);
    EXPECT_EQ(polls, 2);
    EXPECT_THAT(tinker.submits(), SizeIs(1));
}

TEST_F(FirstContact, WithTheCompletionPollTooItIsNotPolledForEver) {
    options.completion_poll = true;
    auto const from = sampler();
    int asked = 0;
    auto const gone = [&asked](auto&&...) -> RawTinker::Answer {
        ++asked;
        return refused_certificate();
    };
    tinker.on_poll = gone;
    tinker.on_other = [&](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("retrieve_futures")) return std::nullopt;
        return gone();
    };
    auto call = draw(from);
    advance(1s);
    expect_hopeless(call);
    EXPECT_EQ(asked, 2) << "the common poll, and then the sample's own";
}

TEST_F(FirstContact, WhatCannotHealEndsATrainingCallAtOnce) {
    auto const model = trainer();
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer { return refused_certificate(); };
    auto const before = tinker.trained().size();
    auto step = model.optim_step(AdamParams{});
    run();
    expect_hopeless(step);
    EXPECT_EQ(tinker.trained().size(), before + 1);
}

TEST_F(FirstContact, AWrongKeyIsSaidAtOnceWhereverItIsNoticed) {
    for (auto const* const path : {"client/config", "create_session", "create_sampling_session"}) {
        RawTinker other;
        other.clock->set_auto_advance(false);
        other.on_other = [path](SentRequest const& request) -> RawTinker::Answer {
            if (!request.path.ends_with(path)) return std::nullopt;
            return json_reply(R"({"detail":"bad key"})", 401);
        };
        ServiceClient const client{other.options()};
        auto call = client.create_sampling_client("org/tiny")
                        .sample(ModelInput::from_tokens({1}), {.max_tokens = 4});
        while (other.clock->run_ready()) {
        }
        ASSERT_TRUE(call.wait_for(0ms)) << path;
        auto const result = call.result();
        ASSERT_FALSE(result) << path;
        EXPECT_EQ(result.error().http_status(), 401) << path;
        EXPECT_THAT(result.error().what(), HasSubstr("set TINKER_API_KEY")) << path;
        EXPECT_EQ(other.count("/api/v1/" + std::string{path}), 1U) << path;
    }
}

TEST_F(FirstContact, AServerThatIsNotThereIsReportedAfterFiveSeconds) {
    answer_all(refused_connection());
    auto call = draw(sampler());
    advance(5s - 1ns);
    EXPECT_THAT(*lines, IsEmpty());
    advance(1ns);
    ASSERT_THAT(*lines, SizeIs(1));
    EXPECT_THAT(lines->front(), StartsWith("sample has waited 5.0 s: client config: "));
    EXPECT_THAT(lines->front(), HasSubstr("cannot connect to tinker.test:80: refused"));
    EXPECT_THAT(lines->front(), HasSubstr("next attempt in"));
    EXPECT_THAT(lines->front(), HasSubstr("gives up in 5 min"));
    advance(60s - 1ns);
    EXPECT_THAT(*lines, SizeIs(1));
    advance(1ns);
    EXPECT_THAT(*lines, SizeIs(2));
}

TEST_F(FirstContact, ManyCallsOfSeveralKindsAreOneLine) {
    answer_all(refused_connection());
    auto const from = sampler();
    std::vector<Future<SampleResponse>> calls;
    for (int i = 0; i < 11; ++i) calls.push_back(draw(from));
    auto session = service().session_id();
    auto capabilities = service().get_server_capabilities();
    run();
    advance(30s);
    ASSERT_THAT(*lines, SizeIs(1));
    EXPECT_THAT(lines->front(), HasSubstr(" calls are pending; "));
}

TEST_F(FirstContact, EndlessRefusalsForLoadAreReported) {
    auto const from = sampler();
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer { return json_reply("{}", 429); };
    auto call = draw(from);
    advance(5s);
    ASSERT_THAT(*lines, SizeIs(1));
    EXPECT_THAT(lines->front(),
                AllOf(StartsWith("sample has waited 5.0 s: "), HasSubstr("429 too many requests"),
                      HasSubstr("gives up in 120 min")));
    advance(10min);
    EXPECT_THAT(*lines, SizeIs(11));
}

TEST_F(FirstContact, ABillingPauseIsReportedOnceAMinuteAndNotTwice) {  // R-SAMP-51
    auto const from = sampler();
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer { return json_reply("{}", 402); };
    auto call = draw(from);
    advance(59s);
    EXPECT_THAT(*lines, SizeIs(1));
}

TEST_F(FirstContact, ASubmitWithoutAnAnswerIsReported) {
    auto const from = sampler();
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer { return no_answer(); };
    auto call = draw(from);
    advance(5s);
    ASSERT_THAT(*lines, SizeIs(1));
    EXPECT_THAT(lines->front(), HasSubstr("the service has not answered yet"));
}

TEST_F(FirstContact, AWaitForACredentialIsReported) {
    tinker.flags["pjwt_auth_enabled"] = true;
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("auth/token")) return std::nullopt;
        return no_answer();
    };
    auto call = draw(sampler());
    advance(5s);
    ASSERT_THAT(*lines, SizeIs(1));
    EXPECT_THAT(lines->front(), AllOf(StartsWith("sample has waited 5.0 s: "),
                                      HasSubstr("a token is being asked for")));
}

TEST_F(FirstContact, ACallThatEndsIsNotReported) {
    auto const from = sampler();
    for (int i = 0; i < 100; ++i) {
        auto call = draw(from);
        advance(1s);
        EXPECT_TRUE(call.result()) << i;
    }
    EXPECT_THAT(*lines, IsEmpty());
}

TEST_F(FirstContact, AFailingPollIsReportedUntilItSucceeds) {
    auto const from = sampler();
    bool down = true;
    tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
        if (down) return refused_connection();
        return json_reply("{}", 408);
    };
    auto call = draw(from);
    advance(5s);
    ASSERT_THAT(*lines, SizeIs(1));
    EXPECT_THAT(lines->front(), HasSubstr("cannot connect to tinker.test:80"));
    down = false;
    advance(10min);
    EXPECT_THAT(*lines, SizeIs(1)) << "what is well is no news";
}

TEST_F(FirstContact, ACallThatIsQueuedOrComputedForHoursIsNoNews) {
    auto const from = sampler();
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        auto reply = json_reply("{}", 408);
        reply.delay = 30s;
        return reply;
    };
    auto call = draw(from);
    advance(1h);
    EXPECT_THAT(*lines, IsEmpty());
}

TEST_F(FirstContact, ATrainingCallThatCannotBeSubmittedIsReported) {
    auto const model = trainer();
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer { return refused_connection(); };
    auto step = model.optim_step(AdamParams{});
    run();
    advance(5s);
    ASSERT_THAT(*lines, SizeIs(1));
    EXPECT_THAT(lines->front(),
                AllOf(StartsWith("optim_step has waited 5.0 s: "), HasSubstr("gives up in 5 min")));
}

TEST_F(FirstContact, AnOptionTurnsTheWarningsOff) {
    options.warn_of_stalls = false;
    answer_all(refused_connection());
    auto call = draw(sampler());
    advance(2min);
    EXPECT_THAT(*lines, IsEmpty());
}

TEST_F(FirstContact, TheLogLevelTurnsTheWarningsOff) {
    options.log_level = LogLevel::off;
    options.log = [lines = lines](LogLevel, std::string_view line) { lines->emplace_back(line); };
    answer_all(refused_connection());
    auto call = draw(sampler());
    advance(2min);
    EXPECT_THAT(*lines, IsEmpty());
}

TEST_F(FirstContact, ByDefaultTheLineGoesToStderr) {
    options.log = {};
    options.log_level.reset();
    options.runtime = Runtime{RuntimeOptions{.threads = 0, .scheduler = tinker.clock}};
    answer_all(refused_connection());
    ::testing::internal::CaptureStderr();
    auto call = draw(sampler());
    advance(5s);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                StartsWith("tinkxx: warning: sample has waited 5.0 s: "));
}

TEST_F(FirstContact, StatusShowsTheStallAndItsEnd) {
    answer_all(refused_connection());
    auto call = draw(sampler());
    advance(3s);
    auto asked = service().status();
    run();
    auto const status = asked.get();
    ASSERT_THAT(status.pending, SizeIs(1));
    EXPECT_EQ(status.pending[0].stalled, 3s);
    EXPECT_EQ(status.pending[0].gives_up_in, 297s);
}

TEST_F(FirstContact, AMessageNamesTheOperationOnce) {
    tinker.result = "{}";
    auto call = draw(sampler(RetryConfig{.enable_retry_logic = false}));
    advance(1s);
    auto const result = call.result();
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().what(), StartsWith("sample: "));
    EXPECT_THAT(result.error().what(), Not(HasSubstr("sample: sample:")));
}

}  // namespace
}  // namespace tinkxx
