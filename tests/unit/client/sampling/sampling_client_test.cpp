// What a caller of the sampling client sees.
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::json_reply;
using support::RawTinker;
using support::Submit;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Reply;
using testing::SentRequest;

boost::json::value body_of(SentRequest const& request) { return boost::json::parse(request.body); }

class SamplingClientTest : public ::testing::Test {
protected:
    ServiceClient service() { return ServiceClient{tinker.options()}; }
    /// The first requests for paths that hold `part` are refused, as by a server that starts anew.
    void refuse_first(int times, std::string part) {
        tinker.on_other = [left = times, part = std::move(part)](
                              SentRequest const& request) mutable -> RawTinker::Answer {
            if (request.path.find(part) == std::string::npos) return std::nullopt;
            if (left-- > 0) return json_reply("{}", 503);
            if (!request.path.ends_with("join_sampling_session")) return std::nullopt;
            return json_reply(R"({"client_counter":7,"type":"join_sampling_session"})");
        };
    }
    // All HTTP attempts of one round of the submit loop.
    static constexpr int one_round = 11;
    ModelInput const prompt{ModelInput::from_tokens({1, 2, 3})};
    RawTinker tinker;
};

TEST_F(SamplingClientTest, ConstructingContactsNobody) {  // R-CONF-40
    auto const client = service();
    auto const sampler = client.create_sampling_client("org/tiny");
    while (tinker.clock->run_ready()) {
    }
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

TEST_F(SamplingClientTest, ASampleComesBackAsDrawn) {  // R-SAMP-01, R-SAMP-03, R-SAMP-70
    auto const sampler = service().create_sampling_client("org/tiny");
    auto pending = sampler.sample(prompt, {.max_tokens = 4, .seed = 7, .temperature = 0.5});
    auto const response = pending.get();
    ASSERT_EQ(response.sequences.size(), 1U);
    EXPECT_EQ(response.sequences[0].stop_reason, StopReason::stop);
    EXPECT_THAT(response.sequences[0].tokens, ElementsAre(7, 8, 9));
    EXPECT_THAT(response.sequences[0].logprobs.value(), ElementsAre(-0.5F, -0.25F, -1.0F));
    EXPECT_EQ(response.sequences[0].sequence_id, "req-0/0");

    auto const sent = tinker.transport->sent("/api/v1/asample");
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].header("X-Tinker-Sampling-Backpressure"), "1");
    EXPECT_EQ(sent[0].header("X-API-Key"), "tml-test-key");  // R-AUTH-01
    EXPECT_EQ(sent[0].purpose, Purpose::sample);
    EXPECT_EQ(body_of(sent[0]),
              boost::json::parse(
                  R"({"sampling_session_id":"session-1:sample:0","seq_id":0,"num_samples":1,)"
                  R"("prompt":{"chunks":[{"type":"encoded_text","tokens":[1,2,3]}]},)"
                  R"("sampling_params":{"max_tokens":4,"seed":7,"temperature":0.5,"top_k":-1,)"
                  R"("top_p":1},"prompt_logprobs":false,"topk_prompt_logprobs":0,)"
                  R"("topk_sample_logprobs":0,"prompt_alt_tokens_k":0,)"
                  R"("record_stability_info":false,"type":"sample"})"));
}

TEST_F(SamplingClientTest, TextGoesOutAsTokensAndComesBackAsText) {
    auto options = tinker.options();
    std::vector<std::string> asked;
    options.tokenizers = Tokenizers{[&asked](TokenizerId const& id) {
        asked.push_back(id.repository);
        return std::make_shared<ByteTokenizer const>();
    }};
    auto const sampler = ServiceClient{options}.create_sampling_client("org/tiny/variant");
    auto pending = sampler.sample("Hi", {.max_tokens = 4});
    auto const response = pending.get();
    EXPECT_EQ(response.text(), "\x07\x08\x09");
    EXPECT_THROW((void)response.text(1), ValidationError);
    auto again = sampler.sample(std::string{"Ho"}, {.max_tokens = 4}, SampleOptions{});
    EXPECT_EQ(again.get().text(), "\x07\x08\x09");
    EXPECT_THAT(asked, ElementsAre("org/tiny"));  // R-TRAIN-90

    auto const sent = tinker.transport->sent("/api/v1/asample");
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(body_of(sent[0]).at("prompt"),
              boost::json::parse(R"({"chunks":[{"type":"encoded_text","tokens":[72,105]}]})"));
}

TEST_F(SamplingClientTest, TextOfSavedWeightsIsThatOfTheirBaseModel) {
    auto options = tinker.options();
    options.tokenizers = Tokenizers{[](TokenizerId const& id) {
        EXPECT_EQ(id.repository, "org/base");
        return std::make_shared<ByteTokenizer const>();
    }};
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (request.path.find("/samplers/") == std::string::npos) return std::nullopt;
        return json_reply(R"({"sampler_id":"s","base_model":"org/base","model_path":"p"})");
    };
    auto const sampler = ServiceClient{options}.create_sampling_client("tinker://r/weights/a");
    EXPECT_EQ(sampler.sample("Hi", {.max_tokens = 4}).get().text(), "\x07\x08\x09");
}

TEST_F(SamplingClientTest, TextWithoutATokenizerSaysWhereItLooked) {
    auto const sampler = service().create_sampling_client("org/nowhere");
    auto const failed = sampler.sample("Hi", {.max_tokens = 4}).result();
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().what(), HasSubstr("org/nowhere"));
    EXPECT_THAT(failed.error().what(), HasSubstr("tokenizer.json"));
    EXPECT_EQ(tinker.transport->sent("/api/v1/asample").size(), 0U);
}

TEST_F(SamplingClientTest, AnAnswerToTokensHasNoText) {
    auto const sampler = service().create_sampling_client("org/tiny");
    auto const response = sampler.sample(prompt, {.max_tokens = 4}).get();
    EXPECT_THROW((void)response.text(), UsageError);
}

TEST_F(SamplingClientTest, StartsInTheDocumentedOrder) {  // R-CONF-41, R-SAMP-02
    auto const sampler = service().create_sampling_client("org/tiny");
    (void)sampler.sample(prompt, {.max_tokens = 4}).get();
    std::vector<std::string> paths;
    for (auto const& request : tinker.transport->sent()) paths.push_back(request.path);
    EXPECT_THAT(paths, ElementsAre("/api/v1/client/config", "/api/v1/client/dynamic_config",
                                   "/api/v1/create_session", "/api/v1/create_sampling_session",
                                   "/api/v1/asample", "/api/v1/retrieve_future"));
    auto const created = tinker.transport->sent("/api/v1/create_sampling_session").at(0);
    EXPECT_EQ(body_of(created),
              boost::json::parse(R"({"session_id":"session-1","sampling_session_seq_id":0,)"
                                 R"("base_model":"org/tiny","type":"create_sampling_session"})"));
    EXPECT_EQ(created.purpose, Purpose::session);
}

TEST_F(SamplingClientTest, SavedWeightsAreNamedByTheirPath) {  // R-SAMP-02
    auto const sampler = service().create_sampling_client("tinker://run/sampler_weights/a");
    (void)sampler.sample(prompt, {.max_tokens = 4}).get();
    auto const body = body_of(tinker.transport->sent("/api/v1/create_sampling_session").at(0));
    EXPECT_EQ(body.at("model_path").as_string(), "tinker://run/sampler_weights/a");
    EXPECT_FALSE(body.as_object().contains("base_model"));
}

TEST_F(SamplingClientTest, RefusesASamplerOfNothingOrOfAStrangePath) {  // R-SAMP-02, R-RETRY-03
    auto const client = service();
    EXPECT_THROW((void)client.create_sampling_client(SamplerOptions{}), ValidationError);
    try {
        (void)client.create_sampling_client(SamplerOptions{.model_path = "file:///weights"});
        FAIL();
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "model_path");
        EXPECT_EQ(error.value(), "file:///weights");
        EXPECT_THAT(error.what(), HasSubstr("tinker://"));
    }
    EXPECT_THROW((void)client.create_sampling_client("m", RetryConfig{.max_connections = 0}),
                 ValidationError);
}

TEST_F(SamplingClientTest, TwoSamplersOfOneServiceShareTheSession) {  // R-SESS-03
    auto const client = service();
    auto const a = client.create_sampling_client("org/a");
    auto const b = client.create_sampling_client("org/b");
    EXPECT_EQ(a.sampling_session_id().get(), "session-1:sample:0");
    EXPECT_EQ(b.sampling_session_id().get(), "session-1:sample:1");
    EXPECT_EQ(tinker.count("/api/v1/create_session"), 1U);
}

TEST_F(SamplingClientTest, ComputesLogprobsByOneSampleOfOneToken) {  // R-SAMP-01, R-SAMP-07
    tinker.result = R"({"sequences":[{"stop_reason":"length","tokens":[1]}],)"
                    R"("prompt_logprobs":[null,-1.5,-0.5],"type":"sample"})";
    auto const sampler = service().create_sampling_client("org/tiny");
    auto const logprobs = sampler.compute_logprobs(prompt).get();
    EXPECT_THAT(logprobs, ElementsAre(std::nullopt, -1.5F, -0.5F));
    auto const& body = tinker.submits().at(0).body;
    EXPECT_EQ(body.at("sampling_params").at("max_tokens").as_int64(), 1);
    EXPECT_TRUE(body.at("prompt_logprobs").as_bool());
    EXPECT_EQ(body.at("num_samples").as_int64(), 1);
}

TEST_F(SamplingClientTest, ALeadingNullThatAServerForgotIsPutBack) {  // R-WIRE-10
    tinker.result = R"({"sequences":[{"stop_reason":"length","tokens":[1]}],)"
                    R"("prompt_logprobs":[-1.5,-0.5]})";
    auto const sampler = service().create_sampling_client("org/tiny");
    EXPECT_THAT(sampler.compute_logprobs(prompt).get(), ElementsAre(std::nullopt, -1.5F, -0.5F));
}

TEST_F(SamplingClientTest, TheAwaitedAndTheCallbackFormDoTheSame) {  // R-SAMP-01
    auto const sampler = service().create_sampling_client("org/tiny");
    EXPECT_EQ(sampler.sample_async(prompt, {.max_tokens = 4}).get().sequences.size(), 1U);
    std::optional<Result<SampleResponse>> got;
    sampler.sample_async(prompt, {.max_tokens = 4}, {},
                         [&](Result<SampleResponse> result) { got = std::move(result); });
    while (tinker.clock->run_ready()) {
    }
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->has_value());
}

TEST_F(SamplingClientTest, BadArgumentsAreRefusedBeforeAnythingIsSent) {  // R-SAMP-08
    auto const sampler = service().create_sampling_client("org/tiny");
    auto const nan = std::numeric_limits<double>::quiet_NaN();
    auto const refused = [&](ModelInput input, SamplingParams params, SampleOptions options,
                             std::string const& field) {
        auto const result = sampler.sample(std::move(input), params, options).result();
        ASSERT_FALSE(result) << field;
        EXPECT_EQ(result.error().kind(), ErrorKind::validation) << field;
        EXPECT_EQ(result.error().category(), ErrorCategory::user) << field;
        EXPECT_THAT(std::string{result.error().what()}, HasSubstr("sample")) << field;
        EXPECT_THAT(std::string{result.error().what()}, HasSubstr(field));
    };
    refused(ModelInput::empty(), {.max_tokens = 1}, {}, "prompt");
    refused(prompt, {.max_tokens = 1}, {.num_samples = -1}, "num_samples");
    refused(prompt, {.max_tokens = 1}, {.num_samples = 0}, "num_samples");
    refused(prompt, {.max_tokens = -1}, {}, "max_tokens");
    refused(prompt, {.temperature = -1}, {}, "temperature");
    refused(prompt, {.top_p = 7}, {}, "top_p");
    refused(prompt, {.temperature = nan}, {}, "temperature");
    refused(prompt, {.top_p = nan}, {}, "top_p");
    refused(prompt, {}, {.prompt_alt_tokens_k = -1}, "prompt_alt_tokens_k");
    refused(prompt, {}, {.prompt_logprobs_last_n = 1}, "prompt_logprobs_last_n");
    refused(prompt, {}, {.include_prompt_logprobs = true, .prompt_logprobs_last_n = 0},
            "prompt_logprobs_last_n");
    auto const late = sampler.sample(prompt, {}, {}, {.deadline = -1ms}).result();
    EXPECT_EQ(late.error().field(), "deadline");
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

TEST_F(SamplingClientTest, OptionsThatTheServerDidNotAnswerCostNoTokens) {  // R-SAMP-09, C-30
    auto const sampler = service().create_sampling_client("org/tiny");
    for (int i = 0; i < 3; ++i) {
        auto const result = sampler
                                .sample(prompt, {.max_tokens = 4},
                                        {.topk_sample_logprobs = 2, .prompt_alt_tokens_k = 2})
                                .result();
        ASSERT_TRUE(result);
        EXPECT_EQ(result->sequences.at(0).tokens, (std::vector<Token>{7, 8, 9}));
        EXPECT_FALSE(result->sequences.at(0).topk_logprobs);
        EXPECT_FALSE(result->prompt_alt_tokens);
    }
    EXPECT_EQ(tinker.logged("did not answer prompt_alt_tokens_k, topk_sample_logprobs"), 1U);
    auto const other = service().create_sampling_client("org/tiny");
    EXPECT_TRUE(other.sample(prompt, {}, {.topk_prompt_logprobs = 1}).result());
    while (tinker.clock->run_ready()) {
    }
    EXPECT_EQ(tinker.logged("did not answer"), 2U) << "once for each sampler";
    EXPECT_EQ(tinker.submits().size(), 4U);
}

TEST_F(SamplingClientTest, LogprobsThatTheServerDidNotComputeAreAnError) {  // R-ERR-05
    auto const sampler = service().create_sampling_client("org/tiny");
    auto const result = sampler.compute_logprobs(prompt).result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().details().unsupported_feature, "prompt logprobs");
}

TEST_F(SamplingClientTest, TellsTheModelThatItsWeightsGrewFrom) {  // R-SAMP-06
    auto const sampler = service().create_sampling_client("org/tiny");
    EXPECT_EQ(sampler.get_base_model().get(), "org/tiny");
    auto const sent = tinker.transport->sent("/api/v1/samplers/session-1:sample:0");
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].method, "GET");
}

TEST_F(SamplingClientTest, CapabilitiesAndHealthNeedNoSession) {  // R-CONF-40
    auto const client = service();
    EXPECT_EQ(client.health().get(), "ok");
    EXPECT_EQ(client.get_server_capabilities().get().supported_models.at(0).model_name, "org/tiny");
    EXPECT_EQ(tinker.count("/api/v1/create_session"), 0U);
    EXPECT_EQ(tinker.count("/api/v1/client/config"), 1U);
}

TEST_F(SamplingClientTest, LookupsOutlastARoundOfHttpRetries) {  // R-RETRY-04, R-SAMP-06
    refuse_first(one_round, "get_server_capabilities");
    auto const client = service();
    EXPECT_TRUE(client.get_server_capabilities().result());
    EXPECT_EQ(tinker.count("/api/v1/get_server_capabilities"), 12U);
    refuse_first(one_round, "/samplers/");
    EXPECT_TRUE(client.create_sampling_client("org/tiny").get_base_model().result());
    EXPECT_EQ(tinker.count("/api/v1/samplers/session-1:sample:0"), 12U);
}

TEST_F(SamplingClientTest, CreatingASamplerIsNotInTheSubmitLoop) {  // R-RETRY-04
    refuse_first(one_round, "create_sampling_session");
    auto const sampler = service().create_sampling_client("org/tiny");
    auto const failed = sampler.sample(prompt, {.max_tokens = 4}).result();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().http_status(), 503);
    EXPECT_EQ(tinker.count("/api/v1/create_sampling_session"), 11U);
}

TEST_F(SamplingClientTest, TheAccessCheckSurfacesABillingBlock) {  // R-AUTH-50
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (request.path.ends_with("capabilities")) return json_reply(R"({"detail":"pay"})", 402);
        return std::nullopt;
    };
    auto const client = service();
    EXPECT_THROW(client.check_access().get(), BillingError);
    EXPECT_EQ(tinker.count("/api/v1/get_server_capabilities"), 1U);
}

TEST_F(SamplingClientTest, AFailedCreationSurfacesInTheSampleAndIsTriedAgain) {
    int failures = 1;
    tinker.on_other = [&](SentRequest const& request) -> RawTinker::Answer {
        if (request.path.ends_with("create_sampling_session") && failures-- > 0) {
            return json_reply(R"({"detail":"no such model"})", 404);
        }
        return std::nullopt;
    };
    auto const sampler = service().create_sampling_client("org/typo");
    auto const failed = sampler.sample(prompt, {.max_tokens = 4}).result();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().http_status(), 404);
    EXPECT_TRUE(sampler.sample(prompt, {.max_tokens = 4}).result());
    auto const sent = tinker.transport->sent("/api/v1/create_sampling_session");
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(body_of(sent[0]), body_of(sent[1]));  // under the same number
}

TEST_F(SamplingClientTest, AfterCloseEveryCallFailsAtOnce) {  // R-CONF-45, R-SESS-20
    auto const client = service();
    auto const sampler = client.create_sampling_client("org/tiny");
    EXPECT_TRUE(sampler.sample(prompt, {.max_tokens = 4}).result());
    client.close().get();
    EXPECT_EQ(sampler.sample(prompt, {.max_tokens = 4}).result().error().kind(), ErrorKind::closed);
    EXPECT_EQ(sampler.get_base_model().result().error().kind(), ErrorKind::closed);
    auto const beats = tinker.count("/api/v1/session_heartbeat");
    tinker.clock->advance(1h);
    EXPECT_EQ(tinker.count("/api/v1/session_heartbeat"), beats);
    client.close().get();  // again: nothing
}

TEST_F(SamplingClientTest, ClosingCancelsWhatIsUnderWay) {  // R-SESS-21
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 40s, .failure = Failure{}};
    };
    auto const client = service();
    auto pending = client.create_sampling_client("org/tiny").sample(prompt, {.max_tokens = 4});
    while (tinker.submits().empty()) (void)tinker.clock->turn(1ms);
    client.close().get();
    auto const result = pending.result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::cancelled);
    EXPECT_EQ(tinker.transport->open_count(), 0U);
}

TEST_F(SamplingClientTest, ClosingWithAReasonFinishesTheSession) {  // R-SESS-22
    auto const client = service();
    EXPECT_EQ(client.session_id().get(), "session-1");
    client.close(CloseReason::errored, "the loss exploded").get();
    auto const sent = tinker.transport->sent("/api/v1/sessions/session-1/finish");
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(body_of(sent[0]),
              boost::json::parse(R"({"reason":{"type":"errored"},"detail":"the loss exploded"})"));
}

TEST_F(SamplingClientTest, AScopeFinishesAsItEnds) {  // R-SESS-23
    {
        SessionScope const scope{[&] {
            auto client = service();
            (void)client.session_id().get();
            return client;
        }()};
    }
    try {
        auto client = service();
        (void)client.session_id().get();
        SessionScope const scope{client};
        throw std::runtime_error{"oops"};
    } catch (std::runtime_error const&) {
    }
    auto const sent = tinker.transport->sent("/api/v1/sessions/session-1/finish");
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(body_of(sent[0]).at("reason").at("type").as_string(), "success");
    EXPECT_EQ(body_of(sent[1]).at("reason").at("type").as_string(), "errored");
}

TEST_F(SamplingClientTest, SamplersOutliveTheHandleOfTheirService) {
    std::optional<SamplingClient> sampler;
    {
        auto const client = service();
        sampler = client.create_sampling_client("org/tiny");
    }
    EXPECT_TRUE(sampler->sample(prompt, {.max_tokens = 4}).result());
}

TEST_F(SamplingClientTest, DroppingTheHandlesLeavesTheCallsUnderWay) {
    tinker.clock->set_auto_advance(false);
    std::optional<ServiceClient> client{service()};
    std::optional<SamplingClient> sampler{client->create_sampling_client("org/tiny")};
    auto pending = sampler->sample(prompt, {.max_tokens = 4});
    client.reset();
    sampler.reset();
    while (tinker.clock->run_ready()) {
    }
    EXPECT_TRUE(pending.result());
}

TEST_F(SamplingClientTest, ARetryPredicateThatThrowsFailsTheSample) {  // R-RETRY-17
    tinker.on_submit = [](Submit const&) { return json_reply("{}", 418); };
    auto const sampler = service().create_sampling_client(
        "org/tiny",
        RetryConfig{.retry_if = std::make_shared<std::function<bool(Error const&)>>(
                        [](Error const&) -> bool { throw std::runtime_error{"ouch"}; })});
    auto const result = sampler.sample(prompt, {.max_tokens = 4}).result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().http_status(), 418);
    EXPECT_THAT(result.error().what(), HasSubstr("RetryConfig::retry_if threw: ouch"));
    EXPECT_EQ(tinker.submits().size(), 1U);
}

TEST_F(SamplingClientTest, AnExecutorThatDropsItsWorkFailsTheSample) {
    class Dropping final : public Executor {
    public:
        void run(Task /*task*/) override {}
    };
    auto options = tinker.options();
    options.runtime = Runtime{RuntimeOptions{.threads = 0,
                                             .executor = std::make_shared<Dropping>(),
                                             .scheduler = tinker.clock,
                                             .log = silent_log()}};
    auto const sampler = ServiceClient{std::move(options)}.create_sampling_client("org/tiny");
    auto const long_prompt = ModelInput::from_tokens(std::vector<Token>(100'000, 1));
    auto const result = sampler.sample(long_prompt, {.max_tokens = 4}).result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::callback);
    EXPECT_THAT(result.error().what(), HasSubstr("RuntimeOptions::executor"));
}

TEST_F(SamplingClientTest, AFailureThatTheCallerGetsIsNotLoggedAsWell) {
    std::vector<std::string> lines;
    auto options = tinker.options();
    options.log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
    options.log_level = LogLevel::warning;
    tinker.on_submit = [](Submit const&) { return json_reply("{}", 418); };
    auto const sampler = ServiceClient{std::move(options)}.create_sampling_client("org/tiny");
    EXPECT_FALSE(sampler.sample(prompt, {.max_tokens = 4}).result());
    EXPECT_THAT(lines, ElementsAre());
}

TEST_F(SamplingClientTest, TheRuntimesLastHandleEndsTheCallsUnderWay) {  // R-SESS-21
    tinker.clock->set_auto_advance(false);
    auto options = tinker.options();
    options.runtime = Runtime{RuntimeOptions{.threads = 0, .scheduler = tinker.clock}};
    std::optional<SamplingClient> sampler{
        ServiceClient{std::move(options)}.create_sampling_client("org/tiny")};
    auto pending = sampler->sample(prompt, {.max_tokens = 4});
    sampler.reset();
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::cancelled);
}

TEST_F(SamplingClientTest, ASamplerMadeInACallbackWorks) {  // R-CONF-42, R-CONV-03
    auto const client = service();
    auto chained = client.health().then([&](std::string const&) {
        auto sampler = client.create_sampling_client("org/tiny");
        return sampler.sample(prompt, {.max_tokens = 4});
    });
    EXPECT_EQ(chained.get().sequences.size(), 1U);
}

TEST_F(SamplingClientTest, StatsCountWhatWasDone) {  // R-RETRY-26, R-TEST-01
    auto const sampler = service().create_sampling_client("org/tiny");
    for (int i = 0; i < 3; ++i) (void)sampler.sample(prompt, {.max_tokens = 4}).get();
    auto const stats = sampler.stats().get();
    EXPECT_EQ(stats.processed, 3);
    EXPECT_EQ(stats.in_progress, 0);
    EXPECT_EQ(stats.next_sequence_id, 3);
}

TEST_F(SamplingClientTest, StreamsTheTokensAsTheyCome) {  // R-EXT-61
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("stream_sample")) return std::nullopt;
        Reply reply;
        reply.headers = {{"Content-Type", "text/event-stream"}};
        reply.body =
            ": hello\n\n"
            "data: {\"token\":\"a\",\"token_id\":5,\"index\":0,\"logprob\":-0.5}\n\n"
            "data: nonsense\n\n"
            "data: {\"token\":\"b\",\"token_id\":6,\"index\":1,\"finish_reason\":\"stop\"}\n\n"
            "data: {\"token\":\"late\"}\n\n";
        reply.pieces = 7;
        reply.piece_delay = 10ms;
        return reply;
    };
    auto const sampler = service().create_sampling_client("org/tiny");
    std::vector<std::string> tokens;
    sampler
        .sample_stream(prompt, {.max_tokens = 4},
                       [&](SampleChunk const& chunk) { tokens.push_back(chunk.token.value()); })
        .get();
    EXPECT_THAT(tokens, ElementsAre("a", "b"));
    auto const sent = tinker.transport->sent("/api/v1/stream_sample").at(0);
    EXPECT_EQ(sent.header("Accept"), "text/event-stream");
}

TEST_F(SamplingClientTest, AServerWithoutStreamsIsNamedAsSuch) {  // R-EXT-61, R-ERR-05
    auto const sampler = service().create_sampling_client("org/tiny");
    auto const result =
        sampler.sample_stream(prompt, {.max_tokens = 4}, [](SampleChunk const&) {}).result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().details().unsupported_feature, "streamed samples");
    EXPECT_EQ(tinker.count("/api/v1/stream_sample"), 1U);  // no retries
}

TEST_F(SamplingClientTest, AServerThatAnswersHtmlGetsAClearError) {
    tinker.on_submit = [](Submit const&) -> RawTinker::Answer {
        Reply reply;
        reply.headers = {{"Content-Type", "text/html"}};
        reply.body = "<html>welcome</html>";
        return reply;
    };
    auto const sampler = service().create_sampling_client("org/tiny");
    auto const result = sampler.sample(prompt, {.max_tokens = 4}).result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::validation);
    EXPECT_EQ(tinker.submits().size(), 1U);
}

TEST_F(SamplingClientTest, AShutDownRuntimeEndsWhatIsPendingWhereverItStands) {  // R-SESS-21
    auto const never = [](auto&&...) -> RawTinker::Answer {
        return Reply{.status = 0, .delay = 1h, .failure = Failure{}};
    };
    for (int stage = 0; stage < 5; ++stage) {
        RawTinker world;
        world.clock->set_auto_advance(false);
        world.on_other = [&](SentRequest const& request) -> RawTinker::Answer {
            bool const held = (stage == 0 && request.path.ends_with("client/config")) ||
                              (stage == 1 && request.path.ends_with("create_session")) ||
                              (stage == 2 && request.path.ends_with("create_sampling_session"));
            return held ? never() : RawTinker::Answer{};
        };
        if (stage == 3) world.on_submit = never;
        if (stage == 4) world.on_poll = never;
        ServiceClient const client{world.options()};
        auto const sampler = client.create_sampling_client("org/tiny");
        auto pending = sampler.sample(prompt, {.max_tokens = 4});
        while (world.clock->run_ready()) {
        }
        ASSERT_FALSE(pending.ready()) << stage;
        auto runtime = world.runtime;
        runtime.shutdown();
        auto const result = pending.result();
        ASSERT_FALSE(result) << stage;
        EXPECT_EQ(result.error().kind(), ErrorKind::cancelled) << stage;
        EXPECT_EQ(world.transport->open_count(), 0U) << stage;
    }
}

TEST_F(SamplingClientTest, TooManyPendingAreRejectedIfTheCallerWantsThat) {
    auto options = tinker.options();
    options.max_pending = {2, WhenFull::reject};
    tinker.clock->set_auto_advance(false);
    auto const sampler = ServiceClient{options}.create_sampling_client("org/tiny");
    auto a = sampler.sample(prompt, {.max_tokens = 4});
    auto b = sampler.sample(prompt, {.max_tokens = 4});
    auto const refused = sampler.sample(prompt, {.max_tokens = 4}).result();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::queue_full);
    EXPECT_TRUE(refused.error().retryable());
    EXPECT_THAT(refused.error().what(), HasSubstr("max_pending"));
    while (tinker.clock->run_ready()) {
    }
    EXPECT_TRUE(a.result());
    EXPECT_TRUE(sampler.sample(prompt, {.max_tokens = 4}).valid());
}

TEST_F(SamplingClientTest, TooManyPendingBlockTheirCallerIfWanted) {
    auto options = tinker.options();
    options.max_pending = {2};
    auto const sampler = ServiceClient{options}.create_sampling_client("org/tiny");
    std::vector<Future<SampleResponse>> pending;
    for (int i = 0; i < 20; ++i) {
        pending.push_back(sampler.sample(prompt, {.max_tokens = 4}));  // runs the loop when full
        auto const open = std::ranges::count_if(
            pending, [](Future<SampleResponse> const& each) { return !each.ready(); });
        EXPECT_LE(open, 2);
    }
    for (auto& each : pending) EXPECT_TRUE(each.result());
}

TEST_F(SamplingClientTest, AHandleLetsAnotherProcessDrawWithItsOwnKey) {  // R-SESS-31, R-SESS-35
    tinker.flags["sample_max_concurrent_requests"] = 7;
    auto const original = service().create_sampling_client("org/tiny");
    (void)original.sample(prompt, {.max_tokens = 4}).get();
    auto const handle = original.get_sampler_handle().get();
    EXPECT_EQ(handle.find("tml-test-key"), std::string::npos);

    auto options = tinker.options();
    options.base_url = "";
    options.api_key = "tml-of-the-importer";
    auto const before = tinker.transport->sent_count();
    auto const copy = from_sampler_handle(handle, options);
    (void)copy.sample(prompt, {.max_tokens = 4}).get();
    auto const sent = tinker.transport->sent();
    ASSERT_GT(sent.size(), before);
    for (std::size_t i = before; i < sent.size(); ++i) {
        EXPECT_EQ(sent[i].header("X-API-Key"), "tml-of-the-importer");
        EXPECT_NE(sent[i].path, "/api/v1/create_session");
        EXPECT_NE(sent[i].path, "/api/v1/client/config");
        EXPECT_NE(sent[i].path, "/api/v1/create_sampling_session");
    }
    auto const& submit = tinker.submits().back();
    EXPECT_EQ(submit.sampling_session_id, "session-1:sample:0");
    EXPECT_GE(submit.seq_id, 1'000'000'000);  // R-SESS-32
    EXPECT_EQ(submit.seq_id % 1'000'000'000, 0);
}

TEST_F(SamplingClientTest, ACopyAsksForItsNumberIfTheServerGivesThem) {  // R-SESS-36
    tinker.flags["sample_join_sampling_session"] = true;
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("join_sampling_session")) return std::nullopt;
        return json_reply(R"({"client_counter":7,"type":"join_sampling_session"})");
    };
    auto const original = service().create_sampling_client("org/tiny");
    auto const handle = original.get_sampler_handle().get();
    auto const copy = from_sampler_handle(handle, tinker.options());
    auto a = copy.sample(prompt, {.max_tokens = 4});
    auto b = copy.sample(prompt, {.max_tokens = 4});
    (void)a.get();
    (void)b.get();
    EXPECT_EQ(tinker.count("/api/v1/join_sampling_session"), 1U);
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(7'000'000'000, 7'000'000'001));
}

TEST_F(SamplingClientTest, ACopyJoinsInTheSubmitLoop) {  // R-RETRY-04, R-SESS-36
    tinker.flags["sample_join_sampling_session"] = true;
    auto const original = service().create_sampling_client("org/tiny");
    auto const handle = original.get_sampler_handle().get();
    refuse_first(one_round, "join_sampling_session");
    auto const copy = from_sampler_handle(handle, tinker.options());
    EXPECT_TRUE(copy.sample(prompt, {.max_tokens = 4}).result());
    EXPECT_EQ(tinker.count("/api/v1/join_sampling_session"), 12U);
    EXPECT_THAT(tinker.submitted_seq_ids(), ElementsAre(7'000'000'000));
}

TEST_F(SamplingClientTest,
       AnExportCarriesTheCredentialAndAHandleThatIsNoneIsRefused) {  // R-SESS-30
    auto const original = service().create_sampling_client("org/tiny");
    auto const exported = original.export_sampler().get();
    auto options = tinker.options();
    options.api_key = "";
    auto const copy = from_sampler_handle(exported, options);
    (void)copy.sample(prompt, {.max_tokens = 4}).get();
    EXPECT_EQ(tinker.transport->sent("/api/v1/asample").back().header("X-API-Key"), "tml-test-key");
    EXPECT_THROW((void)from_sampler_handle("not a handle", options), ValidationError);
}

TEST_F(SamplingClientTest, ClosingEndsTheCreationOfASampler) {  // R-SESS-24, R-CONF-45
    tinker.clock->set_auto_advance(false);
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("create_sampling_session")) return std::nullopt;
        return json_reply("{}", 503);  // tried again and again
    };
    auto const client = service();
    auto pending = client.create_sampling_client("org/tiny").sample(prompt, {.max_tokens = 4});
    while (tinker.clock->run_ready()) {
    }
    auto const tries = tinker.count("/api/v1/create_sampling_session");
    EXPECT_EQ(tries, 1U);
    auto closed = client.close();
    tinker.clock->advance(1min);
    EXPECT_TRUE(closed.result());
    EXPECT_EQ(pending.result().error().kind(), ErrorKind::cancelled);
    EXPECT_EQ(tinker.count("/api/v1/create_sampling_session"), tries);
}

/// Notes the stages of operations.
class StageNotes final : public Observer {
public:
    void on_stage(StageEvent const& event) override { stages.push_back(event.stage); }
    bool wants_stages() const noexcept override { return true; }
    void on_attempt_start(AttemptStartEvent const& event) override {
        attempts.push_back("start " + std::to_string(event.attempt));
    }
    void on_attempt_stop(AttemptStopEvent const& event) override {
        attempts.push_back("stop " + std::to_string(event.attempt));
    }
    void on_attempt_retry(AttemptRetryEvent const& event) override {
        attempts.push_back("retry " + std::to_string(event.attempt));
    }
    std::vector<Stage> stages{};
    std::vector<std::string> attempts{};
};

TEST_F(SamplingClientTest, ObserversSeeEveryStep) {  // R-EXT-30, R-RETRY-41
    auto const notes = std::make_shared<StageNotes>();
    auto options = tinker.options();
    options.observers.push_back(notes);
    int lost = 1;
    tinker.on_poll = [&](std::string const&, std::int64_t) -> RawTinker::Answer {
        if (lost-- > 0) return json_reply("{}", 410);
        return std::nullopt;
    };
    auto const sampler = ServiceClient{options}.create_sampling_client("org/tiny");
    (void)sampler.sample(prompt, {.max_tokens = 4}).get();
    while (tinker.clock->run_ready()) {
    }
    EXPECT_THAT(notes->attempts, ElementsAre("start 1", "retry 1", "start 2", "stop 2"));
    EXPECT_THAT(
        notes->stages,
        ElementsAre(Stage::starting, Stage::creating_sampler, Stage::submitting, Stage::polling,
                    Stage::waiting_to_retry, Stage::submitting, Stage::polling));
}

}  // namespace
}  // namespace tinkxx
