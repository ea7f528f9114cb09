// What a caller of the training client sees.
#include <tinkxx/data.hpp>
#include <tinkxx/losses.hpp>
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::json_reply;
using support::RawTinker;
using support::TrainSubmit;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Reply;
using testing::SentRequest;

Datum datum(Token first) {
    Datum made;
    made.model_input = ModelInput::from_tokens({first, first + 1});
    made.loss_fn_inputs.set("target_tokens", std::vector<std::int64_t>{first + 1, 7});
    made.loss_fn_inputs.set("weights", {0.0, 1.0});
    return made;
}

std::vector<Datum> data(std::size_t count) {
    std::vector<Datum> made;
    for (std::size_t i = 0; i < count; ++i) made.push_back(datum(static_cast<Token>(10 * i)));
    return made;
}

Reply never() { return Reply{.status = 0, .delay = 24h, .failure = Failure{}}; }

class TrainingClientTest : public ::testing::Test {
protected:
    ServiceClient& service() {
        if (!service_) service_.emplace(client_options ? *client_options : tinker.options());
        return *service_;
    }
    TrainingClient trainer() { return service().create_lora_training_client("org/tiny", 8).get(); }
    void run() {
        while (tinker.clock->run_ready()) {
        }
    }
    void advance(std::chrono::nanoseconds step) {
        tinker.clock->advance(step);
        run();
    }
    /// Time stands still from here on, unless a test moves it.
    void stop_clock() { tinker.clock->set_auto_advance(false); }
    /// The answers to requests for that path are held back.
    void hold(std::string path) {
        tinker.on_train = [path = std::move(path)](TrainSubmit const& submit) -> RawTinker::Answer {
            if (submit.path != path) return std::nullopt;
            return never();
        };
    }
    /// As `hold`, but what is sent again is answered.
    void hold_once(std::string path) {
        tinker.on_train = [path = std::move(path),
                           left = 1](TrainSubmit const& submit) mutable -> RawTinker::Answer {
            if (submit.path != path || left-- <= 0) return std::nullopt;
            return never();
        };
    }
    boost::json::value body(std::string_view path, std::size_t which = 0) {
        return boost::json::parse(
            tinker.transport->sent("/api/v1/" + std::string{path}).at(which).body);
    }
    template <class T>
    static Error failure(Future<T> future) {
        auto result = future.result();
        EXPECT_FALSE(result.has_value());
        return result ? Error{ErrorDetails{}} : result.error();
    }

    RawTinker tinker;
    std::optional<ClientOptions> client_options{};
    std::optional<ServiceClient> service_{};
};

// Creation ---------------------------------------------------------------------------------------

TEST_F(TrainingClientTest, AHandleWithoutAModelSaysHowToGetOne) {  // R-TRAIN-00
    TrainingClient const empty;
    EXPECT_EQ(empty.model_id(), "");
    for (auto const& error :
         {failure(empty.forward_backward(data(1), LossFn::cross_entropy)),
          failure(empty.forward(data(1), LossFn::cross_entropy)),
          failure(empty.forward_backward_custom(data(1), {})), failure(empty.optim_step({})),
          failure(empty.save_state("a")), failure(empty.save_weights_for_sampler("a")),
          failure(empty.save_weights_external("a")),
          failure(empty.save_weights_and_get_sampling_client()), failure(empty.get_info()),
          failure(empty.unload()), failure(empty.with({}).save_state("a"))}) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_THAT(error.what(), HasSubstr("create_lora_training_client"));
    }
    EXPECT_THROW((void)empty.create_sampling_client("tinker://r/sampler_weights/a"), UsageError);
}

TEST_F(TrainingClientTest, CreatesAModelAndGivesItsClient) {  // R-TRAIN-01, R-TRAIN-02
    auto const client = service().create_lora_training_client("org/tiny").get();
    EXPECT_EQ(client.model_id(), "session-1:train:0");
    EXPECT_EQ(
        body("create_model"),
        boost::json::parse(R"({"session_id":"session-1","model_seq_id":0,"base_model":"org/tiny",)"
                           R"("lora_config":{"rank":32,"train_unembed":true,"train_mlp":true,)"
                           R"("train_attn":true},"optimizer_config":{"type":"adamw"},)"
                           R"("type":"create_model"})"));
    auto const sent = tinker.transport->sent("/api/v1/create_model").at(0);
    EXPECT_EQ(sent.purpose, Purpose::train);  // R-TRAIN-34
    auto const poll = tinker.transport->sent("/api/v1/retrieve_future").at(0);
    EXPECT_EQ(poll.header("X-Tinker-Request-Type"), "CreateModel");
    EXPECT_EQ(tinker.logged("model session-1:train:0 of org/tiny"), 1U);
}

TEST_F(TrainingClientTest, CreatesAModelAsAsked) {  // R-TRAIN-01, R-TRAIN-02
    TrainingOptions wanted;
    wanted.lora = {.rank = 16, .seed = 7, .train_unembed = false, .train_mlp = false};
    wanted.optimizer = DimuonConfig{};
    wanted.user_metadata = {{"owner", "ada"}};
    (void)service().create_lora_training_client("org/tiny", wanted).get();
    EXPECT_EQ(body("create_model"),
              boost::json::parse(
                  R"({"session_id":"session-1","model_seq_id":0,"base_model":"org/tiny",)"
                  R"("user_metadata":{"owner":"ada"},"lora_config":{"rank":16,"seed":7,)"
                  R"("train_unembed":false,"train_mlp":false,"train_attn":true},)"
                  R"("optimizer_config":{"type":"dimuon","version":1},"type":"create_model"})"));
}

TEST_F(TrainingClientTest, RefusesAModelThatTrainsNothing) {  // R-TRAIN-01
    TrainingOptions nothing;
    nothing.lora = {.train_unembed = false, .train_mlp = false, .train_attn = false};
    EXPECT_EQ(failure(service().create_lora_training_client("org/tiny", nothing)).kind(),
              ErrorKind::validation);
    EXPECT_EQ(failure(service().create_lora_training_client("")).field(), "base_model");
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

TEST_F(TrainingClientTest, NumbersTheModelsOfASession) {  // R-TRAIN-01
    EXPECT_EQ(trainer().model_id(), "session-1:train:0");
    EXPECT_EQ(trainer().model_id(), "session-1:train:1");
}

TEST_F(TrainingClientTest, CreationIsNotRepeatedByTheSubmitLoop) {  // R-RETRY-75
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer { return Reply{.status = 400}; };
    auto const error = failure(service().create_lora_training_client("org/tiny"));
    EXPECT_EQ(error.kind(), ErrorKind::connection);
    EXPECT_EQ(tinker.count("/api/v1/create_model"), 1U);
    EXPECT_THAT(error.what(), HasSubstr("create_lora_training_client: "));
}

TEST_F(TrainingClientTest, LeavesOutWhatAnOldServerDoesNotKnow) {  // R-WIRE-10, R-TRAIN-02
    tinker.on_train = [](TrainSubmit const& submit) -> RawTinker::Answer {
        if (!submit.json.contains("optimizer_config")) return std::nullopt;
        return json_reply(
            R"({"detail":[{"type":"extra_forbidden","loc":["body","optimizer_config"]}]})", 422);
    };
    EXPECT_EQ(trainer().model_id(), "session-1:train:0");
    EXPECT_EQ(trainer().model_id(), "session-1:train:1");
    ASSERT_EQ(tinker.trained().size(), 3U) << "the second model was created without trying";
    EXPECT_EQ(tinker.trained()[1].json.at("model_seq_id").as_int64(), 0);

    TrainingOptions other;
    other.optimizer = DimuonConfig{};
    tinker.on_train = {};
    (void)service().create_lora_training_client("org/tiny", other).result();
}

TEST_F(TrainingClientTest, WarnsWhileACreationIsQueued) {  // R-SAMP-62
    tinker.on_poll = [](std::string const&, std::int64_t iteration) -> RawTinker::Answer {
        if (iteration > 2) return std::nullopt;
        return json_reply(R"({"type":"try_again","request_id":"x",)"
                          R"("queue_state":"paused_rate_limit"})");
    };
    (void)trainer();
    EXPECT_EQ(tinker.logged("Model creation"), 1U) << "once a minute";
    EXPECT_EQ(tinker.logged("concurrent training clients rate limit hit"), 1U);
}

// Passes -----------------------------------------------------------------------------------------

TEST_F(TrainingClientTest, AForwardBackwardComesBackWithItsLoss) {  // R-TRAIN-30
    auto const client = trainer();
    auto const output = client.forward_backward(data(2), LossFn::cross_entropy).get();
    EXPECT_EQ(output.loss_fn_output_type, "CrossEntropyLossReturn");
    EXPECT_EQ(output.loss_fn_outputs.size(), 2U);
    EXPECT_EQ(output.metrics.at("loss:sum"), 3.0);
    auto const& submit = tinker.trained().at(1);
    EXPECT_EQ(submit.path, "forward_backward");
    EXPECT_TRUE(submit.protobuf);
    EXPECT_FALSE(submit.forward_only);
    EXPECT_EQ(submit.seq_id, 1);
    EXPECT_EQ(submit.model_id, "session-1:train:0");
    auto const sent = tinker.transport->sent("/api/v1/forward_backward").at(0);
    EXPECT_EQ(sent.purpose, Purpose::train);  // R-TRAIN-34
    EXPECT_EQ(sent.header("Accept"), "application/json");
    auto const poll = tinker.transport->sent("/api/v1/retrieve_future").at(1);
    EXPECT_EQ(poll.header("X-Tinker-Request-Type"), "ForwardBackward");
    EXPECT_THAT(poll.header("Accept"), HasSubstr("application/x-protobuf"));
}

TEST_F(TrainingClientTest, AForwardSaysThatItIsOne) {  // R-TRAIN-30
    (void)trainer().forward(data(1), LossFn::cross_entropy).get();
    auto const& submit = tinker.trained().at(1);
    EXPECT_EQ(submit.path, "forward_backward");
    EXPECT_TRUE(submit.forward_only);
    EXPECT_EQ(
        tinker.transport->sent("/api/v1/retrieve_future").at(1).header("X-Tinker-Request-Type"),
        "Forward");
}

TEST_F(TrainingClientTest, RefusesNoDataAndWrongDataBeforeAnythingIsSent) {  // R-TRAIN-23
    auto const client = trainer();
    EXPECT_EQ(failure(client.forward_backward({}, LossFn::cross_entropy)).kind(),
              ErrorKind::validation);
    auto broken = data(2);
    broken[1].loss_fn_inputs.erase("target_tokens");
    auto const error = failure(client.forward_backward(broken, LossFn::cross_entropy));
    EXPECT_EQ(error.kind(), ErrorKind::validation);
    EXPECT_THAT(error.what(), HasSubstr("forward_backward"));
    EXPECT_THAT(tinker.trained_steps(), IsEmpty());
    (void)client.optim_step({}).get();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("optim_step 1")) << "no number was lost";
}

TEST_F(TrainingClientTest, SendsUncheckedWhatTheCallerInsistsOn) {  // R-TRAIN-31
    client_options = tinker.options();
    client_options->check_data = false;
    auto const client = trainer();
    auto broken = data(1);
    broken[0].loss_fn_inputs.erase("target_tokens");
    (void)client.forward_backward(broken, LossFn::cross_entropy).get();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1"));
    EXPECT_FALSE(client.forward_backward({}, LossFn::cross_entropy).result()) << "R-TRAIN-23";
}

TEST_F(TrainingClientTest, WritesDataBeforeTheCallReturns) {  // R-TRAIN-30
    auto const client = trainer();
    (void)client.forward_backward(data(1), LossFn::cross_entropy).get();  // decides the encoding
    std::vector<float> weights{0.25F, 0.75F};
    auto batch = data(1);
    batch[0].loss_fn_inputs.set("weights", std::span<float const>{weights});
    stop_clock();
    auto pending = client.forward_backward(batch, LossFn::cross_entropy);
    auto const expected = client.forward_backward(batch, LossFn::cross_entropy);
    weights = {99.0F, 99.0F};
    batch.clear();
    run();
    ASSERT_EQ(tinker.trained().size(), 4U);
    auto const quarter = std::string{"\x00\x00\x80\x3e", 4};
    EXPECT_THAT(tinker.trained()[2].bytes, HasSubstr(quarter));
    EXPECT_THAT(tinker.trained()[3].bytes, HasSubstr(quarter));
}

TEST_F(TrainingClientTest, TakesASpanOfData) {
    auto const client = trainer();
    auto const all = data(3);
    std::vector<std::size_t> sizes;
    for (auto const batch : data::batches(all, 1'000'000, 2)) {
        (void)client.forward_backward(batch, LossFn::cross_entropy).get();
        (void)client.forward(batch, LossFn::cross_entropy).get();
        (void)client.forward_backward_custom(batch, losses::weighted_cross_entropy()).get();
    }
    for (auto const& submit : tinker.trained()) {
        if (submit.path == "forward_backward") sizes.push_back(submit.data);
    }
    EXPECT_THAT(sizes, ElementsAre(2, 2, 2, 2, 1, 1, 1, 1));
}

TEST_F(TrainingClientTest, CutsABatchByTheServersCapsAndCombinesItsResults) {  // R-TRAIN-40
    tinker.flags["fwdbwd_max_chunk_len"] = 2;
    tinker.train_result = [](TrainSubmit const& submit) -> std::string {
        if (submit.path != "forward_backward") return {};
        std::string outputs;
        for (std::size_t i = 0; i < submit.data; ++i) {
            if (i > 0) outputs += ',';
            outputs += R"({"id":{"data":[)" + std::to_string(10 * submit.seq_id) +
                       R"(],"dtype":"int64"}})";
        }
        return R"({"loss_fn_output_type":"T","loss_fn_outputs":[)" + outputs +
               R"(],"metrics":{"loss:sum":)" + std::to_string(submit.seq_id) + "}}";
    };
    auto const output = trainer().forward_backward(data(5), LossFn::cross_entropy).get();
    EXPECT_EQ(output.metrics.at("loss:sum"), 6.0);
    std::vector<std::int64_t> ids;
    for (auto const& each : output.loss_fn_outputs) {
        ids.push_back(std::get<1>(each.at("id").data).at(0));
    }
    EXPECT_THAT(ids, ElementsAre(10, 10, 20, 20, 30)) << "in the order of the data";
}

TEST_F(TrainingClientTest, SubmitsTheFirstChunkLast) {  // R-TRAIN-32, R-TRAIN-12
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    auto const client = trainer();
    stop_clock();
    hold("forward_backward");
    auto pending = client.forward_backward(data(3), LossFn::cross_entropy);
    auto step = client.optim_step({});
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 2", "forward_backward 3"));
    EXPECT_EQ(tinker.transport->open_count(), 2U) << "the first one waits for their answers";
}

TEST_F(TrainingClientTest, TheNextCallWaitsForAllChunks) {  // R-TRAIN-12, R-TRAIN-32
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    auto const client = trainer();
    auto pending = client.forward_backward(data(3), LossFn::cross_entropy);
    auto step = client.optim_step({});
    (void)step.get();
    (void)pending.get();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 2", "forward_backward 3",
                                                    "forward_backward 1", "optim_step 4"));
}

TEST_F(TrainingClientTest, SubmitsChunksOneAfterTheOtherIfTheServerWantsThat) {  // R-TRAIN-32
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    tinker.flags["parallel_fwdbwd_chunks"] = false;
    (void)trainer().forward_backward(data(3), LossFn::cross_entropy).get();
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("forward_backward 1", "forward_backward 2", "forward_backward 3"));
}

TEST_F(TrainingClientTest, SubmitsNoMoreBytesAtOnceThanTheBudget) {  // R-TRAIN-33
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    tinker.flags["fwdbwd_dispatch_bytes_semaphore_size"] = 40;  // a datum counts 32
    auto const client = trainer();
    stop_clock();
    std::vector<Call> held;
    tinker.on_train = [&held](TrainSubmit const& submit) -> RawTinker::Answer {
        if (submit.path != "forward_backward") return std::nullopt;
        held.push_back(submit.call);
        return never();
    };
    auto pending = client.forward_backward(data(6), LossFn::cross_entropy);
    run();
    EXPECT_EQ(held.size(), 2U) << "the second takes the balance below zero";
    auto standing = service().status();
    run();
    auto const status = standing.get();
    EXPECT_EQ(status.training_bytes.waiting, 3);
    EXPECT_LT(status.training_bytes.free.value(), 0);
}

TEST_F(TrainingClientTest, ACancelledCallBeginsNothingWithTheBytesThatItGivesBack) {  // R-FUT-22
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    tinker.flags["fwdbwd_dispatch_bytes_semaphore_size"] = 40;
    auto const client = trainer();
    stop_clock();
    hold("forward_backward");
    auto pending = client.forward_backward(data(6), LossFn::cross_entropy);
    run();
    auto const sent = tinker.trained().size();
    pending.cancel();
    run();
    EXPECT_EQ(tinker.trained().size(), sent) << "chunks that waited for bytes";
    EXPECT_EQ(tinker.transport->open_count(), 0U);
}

TEST_F(TrainingClientTest, ARefusedCallBeginsNothingWithTheBytesThatItGivesBack) {  // R-FUT-22
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    tinker.flags["fwdbwd_dispatch_bytes_semaphore_size"] = 40;
    auto const client = trainer();
    (void)client.optim_step({}).get();
    auto const before = tinker.trained().size();
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer {
        return json_reply(R"({"detail":"not for you"})", 403);
    };
    auto const error = failure(client.forward_backward(data(6), LossFn::cross_entropy));
    EXPECT_THAT(error.what(), HasSubstr("not for you"));
    EXPECT_EQ(tinker.trained().size() - before, 2U) << "chunks that waited for bytes";
}

TEST_F(TrainingClientTest, AFailedCallFetchesNothingWithTheBytesThatItGivesBack) {  // R-FUT-50
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    tinker.flags["inflight_response_bytes_semaphore_size"] = 1;
    auto const client = trainer();
    std::vector<std::string> asked;
    tinker.on_poll = [&asked](std::string const& id, std::int64_t iteration) -> RawTinker::Answer {
        if (id == "train-4") {
            auto late = json_reply(R"({"error":"it failed","category":"server"})");
            late.delay = 5s;
            return late;
        }
        if (iteration == 0) {
            return json_reply(R"({"status":"complete_metadata","response_payload_size":100})");
        }
        asked.push_back(id);
        return never();
    };
    auto const error = failure(client.forward_backward(data(4), LossFn::cross_entropy));
    EXPECT_THAT(error.what(), HasSubstr("it failed"));
    EXPECT_EQ(asked.size(), 1U) << "the others waited for the first";
}

TEST_F(TrainingClientTest, AChunkThatFailsEndsTheCallButNotThoseBehindIt) {  // R-TRAIN-13, R-FUT-50
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    auto const client = trainer();
    (void)client.optim_step({}).get();
    tinker.on_train = [](TrainSubmit const& submit) -> RawTinker::Answer {
        if (submit.seq_id != 4) return std::nullopt;
        return json_reply(R"({"detail":"bad chunk"})", 403);
    };
    auto pending = client.forward_backward(data(3), LossFn::cross_entropy);
    auto step = client.optim_step({});
    EXPECT_TRUE(step.result().has_value());
    auto const error = failure(std::move(pending));
    EXPECT_EQ(error.http_status(), 403);
    EXPECT_THAT(error.what(), HasSubstr("forward_backward: "));
    EXPECT_THAT(tinker.trained_steps(), Not(::testing::Contains("forward_backward 2")))
        << "the first chunk, without which the others do not run";
    EXPECT_EQ(tinker.trained_steps().back(), "optim_step 2") << "so that chunk 3 is not waited for";
}

TEST_F(TrainingClientTest, RepeatsASubmitWithTheSameNumberAndContent) {  // R-TRAIN-14
    auto const client = trainer();
    int refusals = 12;
    tinker.on_train = [&refusals](TrainSubmit const& submit) -> RawTinker::Answer {
        if (submit.path != "forward_backward" || refusals-- <= 0) return std::nullopt;
        return json_reply("{}", 503);
    };
    (void)client.forward_backward(data(1), LossFn::cross_entropy).get();
    auto const sent = tinker.transport->sent("/api/v1/forward_backward");
    ASSERT_EQ(sent.size(), 13U);
    for (auto const& each : sent) EXPECT_EQ(each.body, sent[0].body);
    EXPECT_EQ(sent[1].header("x-idempotency-key"), sent[0].header("x-idempotency-key"));
    EXPECT_NE(sent[12].header("x-idempotency-key"), sent[0].header("x-idempotency-key"));
}

TEST_F(TrainingClientTest, CompressesPassesIfTheServerWantsThat) {  // R-TRAIN-30
    tinker.flags["proto_compress_fwdbwd"] = true;
    tinker.train_result = [](TrainSubmit const& submit) -> std::string {
        if (submit.path != "forward_backward") return {};
        return R"({"loss_fn_output_type":"T","loss_fn_outputs":[{}],"metrics":{}})";
    };
    auto const client = trainer();
    auto pending = client.forward_backward(data(1), LossFn::cross_entropy);
    run();
    auto const sent = tinker.transport->sent("/api/v1/forward_backward").at(0);
    EXPECT_EQ(sent.header("Content-Encoding"), "zstd");
    EXPECT_EQ(sent.header("Content-Type"), "application/x-protobuf");
    EXPECT_EQ(sent.body.substr(0, 4), "\x28\xb5\x2f\xfd");
}

// Encodings --------------------------------------------------------------------------------------

/// A server that cannot read protobuf.
RawTinker::Answer json_only(TrainSubmit const& submit) {
    if (!submit.protobuf) return std::nullopt;
    Reply reply;
    reply.status = 500;
    reply.headers = {{"Content-Type", "text/plain; charset=utf-8"}};
    reply.body = "Internal Server Error";
    return reply;
}

TEST_F(TrainingClientTest, SendsJsonToAServerThatTakesNothingElse) {  // R-TRAIN-30, R-WIRE-10
    tinker.on_train = json_only;
    auto const client = trainer();
    EXPECT_EQ(client.forward_backward(data(2), LossFn::cross_entropy).get().metrics.at("loss:sum"),
              3.0);
    (void)client.forward(data(1), LossFn::cross_entropy).get();
    ASSERT_EQ(tinker.trained().size(), 4U);
    EXPECT_TRUE(tinker.trained()[1].protobuf);
    EXPECT_FALSE(tinker.trained()[2].protobuf);
    EXPECT_EQ(tinker.trained()[2].seq_id, 1) << "the same number";
    EXPECT_EQ(tinker.trained()[2].data, 2U);
    EXPECT_EQ(tinker.trained()[3].path, "forward") << "remembered, and its own place";
    EXPECT_EQ(tinker.logged("JSON only"), 1U);

    auto const other = ServiceClient{tinker.options()}.create_lora_training_client("org/b").get();
    (void)other.forward_backward(data(1), LossFn::cross_entropy).get();
    EXPECT_FALSE(tinker.trained().back().protobuf) << "known by its endpoint";
}

TEST_F(TrainingClientTest, WhatWasWrittenBeforeTheServerWasKnownIsWrittenAnew) {  // R-WIRE-10
    tinker.on_train = json_only;
    auto const client = trainer();
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    auto second = client.forward_backward(data(2), LossFn::cross_entropy);
    (void)first.get();
    EXPECT_EQ(second.get().loss_fn_outputs.size(), 2U);
    ASSERT_EQ(tinker.trained().size(), 4U) << "the second was not tried as protobuf";
    EXPECT_EQ(tinker.trained()[3].seq_id, 2);
    EXPECT_FALSE(tinker.trained()[3].protobuf);
}

TEST_F(TrainingClientTest, ABackwardPassIsWrittenAsTheForwardPassWasTaken) {  // R-WIRE-10
    tinker.on_train = json_only;
    auto const client = trainer();
    auto const flat = [](std::span<Datum const>, std::span<TensorData const> logprobs) {
        return CustomLossValue{.gradient = {logprobs.size(), std::vector<float>(2)}};
    };
    EXPECT_EQ(client.forward_backward_custom(data(2), flat).get().loss_fn_outputs.size(), 2U);
    ASSERT_EQ(tinker.trained().size(), 4U);
    EXPECT_TRUE(tinker.trained()[1].protobuf) << "the trial";
    EXPECT_EQ(tinker.trained()[2].path, "forward");
    EXPECT_EQ(tinker.trained()[3].path, "forward_backward");
    EXPECT_FALSE(tinker.trained()[3].protobuf);
}

TEST_F(TrainingClientTest, ARequestThatIsAtFaultItselfIsReportedAsFirstAnswered) {  // R-WIRE-10
    tinker.on_train = [](TrainSubmit const& submit) -> RawTinker::Answer {
        if (submit.path != "forward_backward") return std::nullopt;
        return json_reply(submit.protobuf ? R"({"detail":"token out of range"})"
                                          : R"({"detail":"something else"})",
                          400);
    };
    auto const client = trainer();
    auto const error = failure(client.forward_backward(data(1), LossFn::cross_entropy));
    EXPECT_THAT(error.what(), HasSubstr("token out of range"));
    EXPECT_EQ(tinker.trained().size(), 3U);
    tinker.on_train = {};
    (void)client.forward_backward(data(1), LossFn::cross_entropy).get();
    EXPECT_TRUE(tinker.trained().back().protobuf) << "nothing was learnt";
}

TEST_F(TrainingClientTest, AServerWithoutAConfigurationGetsJson) {  // R-WIRE-10
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("client/config")) return std::nullopt;
        return json_reply(R"({"detail":"Not Found"})", 404);
    };
    (void)trainer().forward_backward(data(1), LossFn::cross_entropy).get();
    EXPECT_FALSE(tinker.trained().at(1).protobuf);
}

TEST_F(TrainingClientTest, TheCallerMayChooseTheEncoding) {  // R-TRAIN-30
    client_options = tinker.options();
    client_options->submit_encoding = SubmitEncoding::json;
    (void)trainer().forward_backward(data(1), LossFn::cross_entropy).get();
    EXPECT_EQ(tinker.trained().size(), 2U);
    EXPECT_FALSE(tinker.trained()[1].protobuf);
}

TEST_F(TrainingClientTest, DataWithoutWordsInAnEncodingTakeNoNumber) {  // R-TRAIN-37, R-TRAIN-38
    auto batch = data(2);
    batch[1].model_input =
        ModelInput{}.append(ImageAssetPointerChunk{.location = "s3://x", .expected_tokens = 2});
    auto const client = trainer();
    auto const error = failure(client.forward_backward(batch, LossFn::cross_entropy));
    EXPECT_EQ(error.kind(), ErrorKind::validation);
    (void)client.optim_step({}).get();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("optim_step 1"));
}

TEST_F(TrainingClientTest, AnOldServerIsNotAskedTwiceForAStepThatItMayHaveApplied) {  // R-TRAIN-14
    tinker.on_train = json_only;
    auto const client = trainer();
    (void)client.forward_backward(data(1), LossFn::cross_entropy).get();
    auto const seen = tinker.trained().size();
    tinker.on_train = [](TrainSubmit const& submit) -> RawTinker::Answer {
        if (submit.seq_id == 2) return testing::failing(FailureKind::reset, Seen::maybe);
        if (submit.seq_id == 3) return json_reply("{}", 502);
        return std::nullopt;
    };
    for (int i = 0; i < 2; ++i) {
        auto const error = failure(client.optim_step({}));
        EXPECT_EQ(error.stopped(), RetryEnd::not_repeatable);
        EXPECT_THAT(error.what(), HasSubstr("may have been applied"));
        EXPECT_THAT(error.what(), HasSubstr("ClientOptions::repeat_steps"));
    }
    EXPECT_EQ(tinker.trained().size(), seen + 2);
    int left = 2;
    tinker.on_train = [&left](TrainSubmit const&) -> RawTinker::Answer {
        if (left-- > 0) return testing::failing(FailureKind::connect, Seen::no);
        return std::nullopt;
    };
    (void)client.optim_step({}).get();
    EXPECT_EQ(tinker.trained().size(), seen + 5) << "what never arrived is sent again";
}

TEST_F(TrainingClientTest, AnOldServerIsAskedTwiceIfTheCallerWantsThat) {  // R-TRAIN-14
    client_options = tinker.options();
    client_options->repeat_steps = true;
    tinker.on_train = json_only;
    auto const client = trainer();
    (void)client.forward_backward(data(1), LossFn::cross_entropy).get();
    int left = 1;
    tinker.on_train = [&left](TrainSubmit const&) -> RawTinker::Answer {
        if (left-- > 0) return testing::failing(FailureKind::reset, Seen::maybe);
        return std::nullopt;
    };
    (void)client.optim_step({}).get();
    EXPECT_EQ(left, -1);
}

// Order ------------------------------------------------------------------------------------------

TEST_F(TrainingClientTest, SubmitsInTheOrderOfTheCallsAndWaitsForResultsMeanwhile) {  // R-TRAIN-11
    auto const client = trainer();
    tinker.on_poll = [](std::string const& id, std::int64_t iteration) -> RawTinker::Answer {
        if (id != "train-1" || iteration > 3) return std::nullopt;
        Reply reply = json_reply(R"({"type":"try_again","request_id":"x"})");
        reply.delay = 10s;
        return reply;
    };
    auto grads = client.forward_backward(data(1), LossFn::cross_entropy);
    auto step = client.optim_step({});
    auto saved = client.save_state("a");
    (void)saved.get();
    EXPECT_FALSE(grads.ready()) << "its result takes longer than the rest";
    (void)step.get();
    (void)grads.get();
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("forward_backward 1", "optim_step 2", "save_weights 3"));
}

TEST_F(TrainingClientTest, HoldsASubmitBackUntilTheOneBeforeIsAccepted) {  // R-TRAIN-11
    auto const client = trainer();
    stop_clock();
    tinker.on_train = [](TrainSubmit const& submit) -> RawTinker::Answer {
        if (submit.seq_id != 1) return std::nullopt;
        auto reply = json_reply(R"({"request_id":"train-1"})");
        reply.delay = 5s;
        return reply;
    };
    auto grads = client.forward_backward(data(1), LossFn::cross_entropy);
    auto step = client.optim_step({});
    advance(5s - 1ns);
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1"));
    advance(1ns);
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "optim_step 2"));
}

TEST_F(TrainingClientTest, APromiseThatIsLostSurfaces) {  // R-FUT-07
    auto const client = trainer();
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return json_reply("{}", 410);
    };
    auto const error = failure(client.optim_step({}));
    EXPECT_EQ(error.kind(), ErrorKind::promise_lost);
    EXPECT_FALSE(error.retryable()) << "its model may be gone";
    EXPECT_EQ(tinker.trained().size(), 2U) << "not submitted again";
}

// Status, deadlines, close -----------------------------------------------------------------------

TEST_F(TrainingClientTest, TheStatusSaysWhoseTurnItIs) {  // R-TEST-01
    auto const client = trainer();
    stop_clock();
    hold("forward_backward");
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    auto second = client.optim_step({});
    run();
    auto asked = service().status();
    run();
    auto const status = asked.get();
    ASSERT_EQ(status.pending.size(), 2U);
    EXPECT_EQ(status.pending[0].operation, "forward_backward");
    EXPECT_EQ(status.pending[0].stage, Stage::submitting);
    EXPECT_EQ(status.pending[1].operation, "optim_step");
    EXPECT_EQ(status.pending[1].stage, Stage::waiting_for_turn);
    EXPECT_THAT(status.pending[1].why,
                HasSubstr("request 1 of the model is not submitted yet: forward_backward"));
}

TEST_F(TrainingClientTest, TheStatusCountsChunks) {  // R-TEST-01
    tinker.flags["fwdbwd_max_chunk_len"] = 1;
    auto const client = trainer();
    stop_clock();
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer { return never(); };
    auto pending = client.forward_backward(data(3), LossFn::cross_entropy);
    run();
    auto asked = service().status();
    run();
    auto const status = asked.get();
    ASSERT_EQ(status.pending.size(), 1U);
    EXPECT_EQ(status.pending[0].stage, Stage::polling);
    EXPECT_EQ(status.pending[0].request_id, "train-1");
    EXPECT_THAT(status.pending[0].why, HasSubstr("of 3 chunks 3 are accepted, 0 done"));
}

TEST_F(TrainingClientTest, TheStatusGivesTheServersReason) {  // R-TEST-01
    auto const client = trainer();
    stop_clock();
    tinker.on_poll = [](std::string const&, std::int64_t) -> RawTinker::Answer {
        return json_reply(R"({"type":"try_again","request_id":"x","queue_state":"active",)"
                          R"("queue_state_reason":"waiting for request 3 of this model, which )"
                          R"(has not arrived yet"})");
    };
    auto pending = client.optim_step({});
    run();
    auto asked = service().status();
    run();
    auto const status = asked.get();
    ASSERT_EQ(status.pending.size(), 1U);
    EXPECT_EQ(status.pending[0].queue_state, QueueState::active);
    EXPECT_THAT(status.pending[0].queue_reason, HasSubstr("waiting for request 3"));
    EXPECT_THAT(to_string(status.pending[0]),
                HasSubstr("the service says: waiting for request 3 of this model"));
}

TEST_F(TrainingClientTest, ACallMayHaveADeadline) {
    auto const client = trainer();
    stop_clock();
    hold_once("optim_step");
    auto pending = client.with({.deadline = 3s}).optim_step({});
    auto behind = client.save_state("a");
    advance(3s - 1ms);
    EXPECT_FALSE(pending.ready());
    advance(1ms);
    ASSERT_TRUE(pending.ready());
    auto const error = failure(std::move(pending));
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
    EXPECT_THAT(error.what(), HasSubstr("optim_step: not done within its deadline of 3000 ms"));
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("optim_step 1", "optim_step 1", "save_weights 2"));
    EXPECT_EQ(failure(client.with({.deadline = -1s}).optim_step({})).kind(), ErrorKind::validation);
}

TEST_F(TrainingClientTest, ClosingEndsCallsUnderWayAndLaterOnes) {  // R-CONF-45, R-SESS-21
    auto const client = trainer();
    stop_clock();
    hold("forward_backward");
    auto first = client.forward_backward(data(1), LossFn::cross_entropy);
    auto second = client.optim_step({});
    run();
    auto closing = service().close();
    run();
    EXPECT_EQ(failure(std::move(first)).kind(), ErrorKind::cancelled);
    EXPECT_EQ(failure(std::move(second)).kind(), ErrorKind::cancelled);
    auto late = client.optim_step({});
    run();
    EXPECT_EQ(failure(std::move(late)).kind(), ErrorKind::closed);
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1")) << "nothing was sent";
}

TEST_F(TrainingClientTest, WarnsWhileATrainingRequestIsQueued) {  // R-SAMP-62, R-SAMP-64
    auto const client = trainer();
    tinker.on_poll = [](std::string const&, std::int64_t iteration) -> RawTinker::Answer {
        if (iteration > 1) return std::nullopt;
        return json_reply(R"({"type":"try_again","request_id":"x",)"
                          R"("queue_state":"paused_rate_limit"})");
    };
    std::vector<QueueStateEvent> told;
    CallOptions call;
    call.on_queue_state.emplace_back(
        [&told](QueueStateEvent const& event) { told.push_back(event); });
    (void)client.with(call).optim_step({}).get();
    EXPECT_EQ(tinker.logged("Training"), 1U);
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[0].owner_id, "session-1:train:0");
    EXPECT_EQ(told[0].request_type, "OptimStep");
    EXPECT_EQ(told[0].reason, "concurrent training clients rate limit hit");
}

TEST_F(TrainingClientTest, StaysUsableWithoutTheServiceClient) {
    auto const client =
        ServiceClient{tinker.options()}.create_lora_training_client("org/tiny").get();
    EXPECT_TRUE(client.optim_step({}).result().has_value());
}

// Optimizer --------------------------------------------------------------------------------------

TEST_F(TrainingClientTest, SendsAllMembersOfAnAdamStep) {  // R-TRAIN-50, R-TRAIN-52
    auto const client = trainer();
    auto const result = client.optim_step({.learning_rate = 0.001}).get();
    EXPECT_FALSE(result.metrics);
    EXPECT_EQ(
        body("optim_step"),
        boost::json::parse(R"({"adam_params":{"learning_rate":0.001,"beta1":0.9,"beta2":0.95,)"
                           R"("eps":1e-12,"weight_decay":0,"grad_clip_norm":0},)"
                           R"("model_id":"session-1:train:0","seq_id":1,"type":"optim_step"})"));
    EXPECT_EQ(
        tinker.transport->sent("/api/v1/retrieve_future").at(1).header("X-Tinker-Request-Type"),
        "OptimStep");
}

TEST_F(TrainingClientTest, GivesTheMetricsOfAStep) {  // R-TRAIN-52
    tinker.train_result = [](TrainSubmit const& submit) -> std::string {
        return submit.path == "optim_step" ? R"({"metrics":{"unclipped_grad_l2:mean":2.5}})" : "";
    };
    auto const result = trainer().optim_step({.grad_clip_norm = 1.0}).get();
    EXPECT_EQ(result.metrics.value().at("unclipped_grad_l2:mean"), 2.5);
}

TEST_F(TrainingClientTest, RefusesAStepThatCannotWork) {  // R-TRAIN-51, R-TRAIN-53
    auto const client = trainer();
    EXPECT_EQ(failure(client.optim_step({.beta1 = 1.0})).kind(), ErrorKind::validation);
    EXPECT_EQ(failure(client.optim_step(DimuonParams{.learning_rate = 0.1})).kind(),
              ErrorKind::validation)
        << "the model was created with Adam";
    EXPECT_THAT(tinker.trained_steps(), IsEmpty());
}

TEST_F(TrainingClientTest, StepsWithTheFamilyOfTheModel) {  // R-TRAIN-53
    TrainingOptions wanted;
    wanted.optimizer = DimuonConfig{};
    auto const client = service().create_lora_training_client("org/tiny", wanted).get();
    (void)client.optim_step(DimuonParams{.learning_rate = 0.1}).get();
    EXPECT_EQ(body("optim_step").at("optimizer_params").at("type").as_string(), "dimuon");
    EXPECT_EQ(failure(client.optim_step({.learning_rate = 0.1})).kind(), ErrorKind::validation);
}

// Saving and loading -----------------------------------------------------------------------------

TEST_F(TrainingClientTest, SavesAStateAndGivesItsPath) {  // R-TRAIN-60, R-TRAIN-66
    auto const client = trainer();
    EXPECT_EQ(client.save_state("a").get().path, "tinker://session-1:train:0/weights/a");
    EXPECT_EQ(body("save_weights"),
              boost::json::parse(R"({"model_id":"session-1:train:0","path":"a","seq_id":1,)"
                                 R"("overwrite":false,"type":"save_weights"})"));
    SaveOptions options;
    options.ttl = 1h;
    options.overwrite = true;
    options.user_metadata = {{"step", "7"}};
    (void)client.save_state("b", options).get();
    EXPECT_EQ(body("save_weights", 1),
              boost::json::parse(R"({"model_id":"session-1:train:0","path":"b","seq_id":2,)"
                                 R"("ttl_seconds":3600,"overwrite":true,)"
                                 R"("user_metadata":{"step":"7"},"type":"save_weights"})"));
}

TEST_F(TrainingClientTest, ANameThatExistsIsAnErrorInTheEnd) {  // R-TRAIN-60
    auto const client = trainer();
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer {
        return json_reply(R"({"detail":"exists"})", 409);
    };
    auto const begin = tinker.clock->now();
    auto const error = failure(client.save_state("a"));
    EXPECT_EQ(error.http_status(), 409);
    EXPECT_EQ(tinker.clock->now() - begin, 300s);
    auto const sent = tinker.transport->sent("/api/v1/save_weights");
    EXPECT_EQ(sent.at(1).at - sent.at(0).at, 1s) << "by the submit loop alone";
    EXPECT_EQ(sent.at(2).at - sent.at(1).at, 2s);
}

TEST_F(TrainingClientTest, RefusesASaveThatCannotWork) {  // R-TRAIN-60, R-TRAIN-66, R-TRAIN-67
    auto const client = trainer();
    SaveOptions never_there;
    never_there.ttl = 0s;
    EXPECT_EQ(failure(client.save_state("a", never_there)).kind(), ErrorKind::validation);
    EXPECT_EQ(failure(client.save_state("")).field(), "name");
    SaveOptions overwrite;
    overwrite.overwrite = true;
    EXPECT_EQ(failure(client.save_weights_for_sampler("a", overwrite)).field(), "overwrite");
    ExternalSaveOptions crowd;
    crowd.age_recipients.assign(11, "age1x");
    EXPECT_EQ(failure(client.save_weights_external("a", crowd)).field(), "age_recipients");
    EXPECT_THAT(tinker.trained_steps(), IsEmpty());
}

TEST_F(TrainingClientTest, SavesWeightsToDrawFrom) {  // R-TRAIN-62, R-TRAIN-66
    SaveOptions options;
    options.user_metadata = {{"a", "b"}};
    auto const saved = trainer().save_weights_for_sampler("s", options).get();
    EXPECT_EQ(saved.path, "tinker://session-1:train:0/sampler_weights/s");
    EXPECT_EQ(body("save_weights_for_sampler"),
              boost::json::parse(R"({"model_id":"session-1:train:0","path":"s","seq_id":1,)"
                                 R"("user_metadata":{"a":"b"},)"
                                 R"("type":"save_weights_for_sampler"})"));
}

TEST_F(TrainingClientTest, SavesWeightsForOthers) {  // R-TRAIN-67
    auto const client = trainer();
    ExternalSaveOptions options;
    options.ttl = 1h;
    options.age_recipients = {"age1xyz"};
    EXPECT_EQ(client.save_weights_external("e", options).get().path,
              "tinker://session-1:train:0/external_weights/e");
    EXPECT_EQ(body("save_weights_external"),
              boost::json::parse(R"({"model_id":"session-1:train:0","path":"e","seq_id":1,)"
                                 R"("ttl_seconds":3600,"age_encryption_recipients":["age1xyz"],)"
                                 R"("type":"save_weights_external"})"));
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer {
        return json_reply(R"({"detail":"Not Found"})", 404);
    };
    EXPECT_EQ(failure(client.save_weights_external("f")).details().unsupported_feature,
              "saving external weights");
}

TEST_F(TrainingClientTest, SavesAreRepeatedByTheSubmitLoopAlone) {  // R-TRAIN-67, R-RETRY-80
    auto const client = trainer();
    auto const other = trainer();
    tinker.on_train = [](TrainSubmit const&) -> RawTinker::Answer { return json_reply("{}", 503); };
    (void)client.save_weights_external("a").result();
    (void)other.save_weights_for_sampler("a").result();
    for (auto const* path : {"/api/v1/save_weights_external", "/api/v1/save_weights_for_sampler"}) {
        auto const sent = tinker.transport->sent(path);
        ASSERT_GT(sent.size(), 2U);
        for (auto const& each : sent) EXPECT_EQ(each.header("x-stainless-retry-count"), "0");
    }
}

TEST_F(TrainingClientTest, DrawsFromTheWeightsAsTheyAre) {  // R-TRAIN-62, R-TRAIN-63
    auto const client = trainer();
    int refusals = 1;
    tinker.on_train = [&refusals](TrainSubmit const& submit) -> RawTinker::Answer {
        if (submit.path != "save_weights_for_sampler" || refusals-- <= 0) return std::nullopt;
        return json_reply("{}", 503);
    };
    auto pending = client.save_weights_and_get_sampling_client();
    auto const sampler = pending.get();
    EXPECT_EQ(sampler.sampling_session_id().get(), "session-1:sample:0");
    auto const sent = tinker.transport->sent("/api/v1/save_weights_for_sampler");
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0].body, sent[1].body) << "also the number of the sampling session";
    EXPECT_EQ(tinker.count("/api/v1/create_sampling_session"), 0U);
    auto drawn = sampler.sample(ModelInput::from_tokens({1}), {.max_tokens = 2});
    (void)drawn.get();
    EXPECT_EQ(tinker.submits().at(0).sampling_session_id, "session-1:sample:0");
}

TEST_F(TrainingClientTest, RecordsWhatStableReinforceNeeds) {  // R-TRAIN-68, R-SAMP-07
    auto const client = trainer();
    TrainedSamplerOptions options;
    options.record_stability_info = true;
    auto pending = client.save_weights_and_get_sampling_client(options);
    auto drawn = pending.get().sample(ModelInput::from_tokens({1}), {.max_tokens = 2});
    (void)drawn.get();
    EXPECT_TRUE(tinker.submits().at(0).body.at("record_stability_info").as_bool());
    auto other = client.create_sampling_client("tinker://r/sampler_weights/a", options)
                     .sample(ModelInput::from_tokens({1}), {.max_tokens = 2});
    (void)other.get();
    EXPECT_TRUE(tinker.submits().at(1).body.at("record_stability_info").as_bool());
}

TEST_F(TrainingClientTest, OpensASavedPath) {  // R-TRAIN-63
    auto const client = trainer();
    auto const sampler = client.create_sampling_client("tinker://r/sampler_weights/a");
    (void)sampler.sampling_session_id().get();
    EXPECT_EQ(body("create_sampling_session").at("model_path").as_string(),
              "tinker://r/sampler_weights/a");
    EXPECT_THROW((void)client.create_sampling_client("a"), ValidationError);
    TrainedSamplerOptions wrong;
    wrong.retry.max_connections = 0;
    EXPECT_EQ(failure(client.save_weights_and_get_sampling_client(wrong)).kind(),
              ErrorKind::validation);
}

TEST_F(TrainingClientTest, AnAnswerWithNeitherPathNorSessionIsAnError) {  // R-TRAIN-64
    tinker.train_result = [](TrainSubmit const& submit) -> std::string {
        return submit.path == "save_weights_for_sampler" ? R"({"path":null})" : "";
    };
    EXPECT_EQ(failure(trainer().save_weights_for_sampler("a")).kind(), ErrorKind::validation);
}

TEST_F(TrainingClientTest, TellsAboutItsModel) {  // R-TRAIN-65
    auto const info = trainer().get_info().get();
    EXPECT_EQ(info.model_id, "session-1:train:0");
    EXPECT_EQ(info.model_data.tokenizer_id, "org/tiny") << "without the revision";
    EXPECT_EQ(info.lora_rank, 8);
    EXPECT_EQ(body("get_info"),
              boost::json::parse(R"({"model_id":"session-1:train:0","type":"get_info"})"));
    EXPECT_EQ(tinker.transport->sent("/api/v1/get_info").at(0).purpose, Purpose::train);
}

TEST_F(TrainingClientTest, EncodesAndDecodesWithTheTokenizerOfItsModel) {  // R-EXT-90, R-TRAIN-90
    std::vector<std::string> loaded;
    Tokenizers const tokenizers{[&loaded](TokenizerId const& id) {
        loaded.push_back(id.repository);
        return std::make_shared<ByteTokenizer>();
    }};
    auto const client = trainer();
    EXPECT_THAT(client.encode("hi", tokenizers).get(), ElementsAre(104, 105));
    EXPECT_EQ(client.with({}).decode({111, 107}, tokenizers).get(), "ok");
    EXPECT_EQ(client.get_tokenizer(tokenizers).get()->encode("a").size(), 1U);
    EXPECT_THAT(loaded, ElementsAre("org/tiny"));
    EXPECT_EQ(tinker.count("/api/v1/get_info"), 1U);
    EXPECT_EQ(failure(TrainingClient{}.encode("hi", tokenizers)).kind(), ErrorKind::usage);
}

TEST_F(TrainingClientTest, AModelWithoutATokenizerSaysSo) {  // R-EXT-90, R-TRAIN-91
    Tokenizers const tokenizers{[](TokenizerId const&) -> std::shared_ptr<Tokenizer const> {
        throw std::runtime_error{"no disk"};
    }};
    auto const client = trainer();
    auto const broken = failure(client.encode("hi", tokenizers));
    EXPECT_EQ(broken.kind(), ErrorKind::callback);
    EXPECT_THAT(broken.what(), HasSubstr("no disk"));
    for (auto const* data : {"{}", R"({"model_name":"TML/x"})"}) {
        tinker.on_other = [data](SentRequest const& request) -> RawTinker::Answer {
            if (!request.path.ends_with("get_info")) return std::nullopt;
            return json_reply(R"({"model_id":"m","model_data":)" + std::string{data} + "}");
        };
        auto const other = service().create_lora_training_client("org/tiny").get();
        EXPECT_EQ(failure(other.decode({1}, tokenizers)).kind(), ErrorKind::validation);
    }
}

TEST_F(TrainingClientTest, UnloadsAModelBehindWhatWasAskedFor) {  // R-TRAIN-65
    auto const client = trainer();
    auto step = client.optim_step({});
    client.unload().get();
    (void)step.get();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("optim_step 1", "unload_model 0"));
    EXPECT_EQ(body("unload_model"),
              boost::json::parse(R"({"model_id":"session-1:train:0","type":"unload_model"})"));
    EXPECT_EQ(
        tinker.transport->sent("/api/v1/retrieve_future").back().header("X-Tinker-Request-Type"),
        "UnloadModel");
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_F(TrainingClientTest, LoadsIntoAModelThatExistsWithAWarning) {  // R-TRAIN-61, R-TRAIN-68
    auto const client = trainer();
    (void)client.load_state("tinker://r/weights/a").get();
    (void)client.load_state_with_optimizer("tinker://r/weights/b", "tml-other").get();
    EXPECT_EQ(body("load_weights"),
              boost::json::parse(R"({"model_id":"session-1:train:0","seq_id":1,)"
                                 R"("path":"tinker://r/weights/a","optimizer":false,)"
                                 R"("type":"load_weights"})"));
    EXPECT_EQ(body("load_weights", 1),
              boost::json::parse(R"({"model_id":"session-1:train:0","seq_id":2,)"
                                 R"("path":"tinker://r/weights/b","optimizer":true,)"
                                 R"("weights_access_token":"tml-other","type":"load_weights"})"));
    EXPECT_EQ(tinker.logged("create_training_client_from_state"), 1U) << "once per client";
}

TEST_F(TrainingClientTest, ATokenIsKeptOutOfErrorsAndDumps) {  // R-CONF-13, R-ERR-04
    client_options = tinker.options();
    client_options->dump_headers = true;
    auto const client = trainer();
    tinker.on_train = [](TrainSubmit const& submit) -> RawTinker::Answer {
        return json_reply(R"({"detail":[{"input":)" + submit.bytes + "}]}", 422);
    };
    auto const error = failure(client.load_state("tinker://r/weights/a", "tml-very-secret"));
    EXPECT_THAT(error.what(), Not(HasSubstr("very-secret")));
    EXPECT_THAT(std::string{error.body()}, Not(HasSubstr("very-secret")));
    run();
    EXPECT_EQ(tinker.logged("very-secret"), 0U);
    EXPECT_GT(tinker.logged("load_weights"), 0U);
}

TEST_F(TrainingClientTest, ANameForAnUnnamedSaveWarns) {  // R-TRAIN-63
    auto pending = trainer().save_weights_and_get_sampling_client("mine");
    (void)pending.get();
    EXPECT_EQ(tinker.logged("a name is deprecated"), 1U);
    EXPECT_FALSE(body("save_weights_for_sampler").as_object().contains("path"));
}
#pragma GCC diagnostic pop

}  // namespace
}  // namespace tinkxx
