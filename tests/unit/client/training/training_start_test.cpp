// Custom losses, models from checkpoints, and copies of these.
#include <tinkxx/regularizers.hpp>
#include <tinkxx/service_client.hpp>

#include "support/held_executor.hpp"
#include "support/raw_tinker.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::HeldExecutor;
using support::json_reply;
using support::RawTinker;
using support::TrainSubmit;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::Reply;
using testing::SentRequest;
using ::testing::UnorderedElementsAre;

constexpr auto checkpoint = "tinker://r/weights/step-10";

std::vector<Datum> data(std::size_t count) {
    std::vector<Datum> made(count);
    for (auto& each : made) {
        each.model_input = ModelInput::from_tokens({1, 2});
        each.loss_fn_inputs.set("target_tokens", {2, 3});
    }
    return made;
}

Reply never() { return Reply{.status = 0, .delay = 24h, .failure = Failure{}}; }

/// Half the sum of squares: its gradient is the log-probabilities themselves.
CustomLossValue half_squares(std::span<Datum const>, std::span<TensorData const> logprobs) {
    CustomLossValue value;
    for (auto const& each : logprobs) {
        auto const& numbers = std::get<std::vector<float>>(each.data);
        for (auto const number : numbers) value.loss += 0.5 * number * number;
        value.gradient.push_back(numbers);
    }
    value.metrics = {{"mine", 7.0}};
    return value;
}

class TrainingStartTest : public ::testing::Test {
protected:
    ServiceClient& service() {
        if (!service_) service_.emplace(client_options);
        return *service_;
    }
    TrainingClient trainer() { return service().create_lora_training_client("org/tiny", 8).get(); }
    void run() {
        while (tinker.clock->run_ready()) {
        }
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
    /// Bodies that can be looked into.
    void speak_json() { client_options.submit_encoding = SubmitEncoding::json; }
    std::vector<std::string> paths_after_creation() {
        std::vector<std::string> paths;
        for (auto const& sent : tinker.transport->sent()) {
            auto path = sent.path.substr(std::string_view{"/api/v1/"}.size());
            if (path != "retrieve_future") paths.push_back(std::move(path));
        }
        return paths;
    }

    RawTinker tinker;
    ClientOptions client_options{tinker.options()};
    std::optional<ServiceClient> service_{};
};

// Custom losses ----------------------------------------------------------------------------------

TEST_F(TrainingStartTest, ACustomLossIsTwoPassesOfCrossEntropy) {  // R-TRAIN-70, R-TRAIN-71
    speak_json();
    auto const client = trainer();
    auto batch = data(2);
    auto const before = batch;
    auto const output = client.forward_backward_custom(batch, half_squares).get();
    EXPECT_EQ(batch, before);

    ASSERT_EQ(tinker.trained().size(), 3U);
    auto const& forward = tinker.trained()[1];
    EXPECT_EQ(forward.path, "forward");
    EXPECT_EQ(forward.seq_id, 1);
    auto const inputs = [](TrainSubmit const& submit, char const* member, std::size_t i) {
        auto const& input = submit.json.at(member);
        EXPECT_EQ(input.at("loss_fn").as_string(), "cross_entropy");
        return input.at("data").at(i).at("loss_fn_inputs");
    };
    EXPECT_EQ(inputs(forward, "forward_input", 1).at("weights").at("data"),
              boost::json::parse("[0,0]"));
    auto const& backward = tinker.trained()[2];
    EXPECT_EQ(backward.path, "forward_backward");
    EXPECT_EQ(backward.seq_id, 2);
    EXPECT_EQ(inputs(backward, "forward_backward_input", 0).at("weights").at("data"),
              boost::json::parse("[0.25,0.5]"))
        << "the gradient of the loss, negated";
    EXPECT_EQ(inputs(backward, "forward_backward_input", 1).at("target_tokens").at("data"),
              boost::json::parse("[2,3]"));
    EXPECT_THAT(output.metrics, UnorderedElementsAre(Pair("loss:sum", 0.3125), Pair("mine", 7.0),
                                                     Pair("surrogate_loss:sum", 3.0)));
    EXPECT_EQ(output.loss_fn_outputs.size(), 2U);
}

TEST_F(TrainingStartTest, AServerWithoutALossLeavesTheSurrogateOut) {  // R-TRAIN-70
    tinker.train_result = [](TrainSubmit const& submit) -> std::string {
        if (submit.path != "forward_backward") return {};
        return R"({"loss_fn_output_type":"scalar","loss_fn_outputs":[{"logprobs":)"
               R"({"data":[-1.0,-2.0],"dtype":"float32"}}],"metrics":{}})";
    };
    auto const output = trainer().forward_backward_custom(data(1), half_squares).get();
    EXPECT_THAT(output.metrics, UnorderedElementsAre(Pair("loss:sum", 2.5), Pair("mine", 7.0)));
}

TEST_F(TrainingStartTest, OnlyTargetsAndWeightsAreSentOfACustomLoss) {  // R-TRAIN-72
    speak_json();
    auto batch = data(1);
    batch[0].loss_fn_inputs.set("advantages", {1.0, 2.0});
    batch[0].loss_fn_inputs.set("weights", {0.5, 0.25});
    bool seen = false;
    auto const loss = [&seen](std::span<Datum const> given, std::span<TensorData const> logprobs) {
        seen = given[0].loss_fn_inputs.contains("advantages");
        return half_squares(given, logprobs);
    };
    (void)trainer().forward_backward_custom(batch, loss).get();
    EXPECT_TRUE(seen);
    auto const& sent = tinker.trained()[1].json.at("forward_input").at("data").at(0);
    auto const& inputs = sent.at("loss_fn_inputs").as_object();
    EXPECT_EQ(inputs.size(), 2U);
    EXPECT_EQ(inputs.at("weights").at("data"), boost::json::parse("[0.5,0.25]"));
}

TEST_F(TrainingStartTest, LogprobsComeInTheShapeOfTheirTargets) {  // R-TRAIN-70
    speak_json();
    tinker.train_result = [](TrainSubmit const& submit) -> std::string {
        if (!submit.path.starts_with("forward")) return {};
        return R"({"loss_fn_output_type":"T","loss_fn_outputs":[{"logprobs":)"
               R"({"data":[-1.0,-2.0,-3.0,-4.0],"dtype":"float32"}}],"metrics":{"loss:sum":1}})";
    };
    std::vector<Datum> batch(1);
    batch[0].model_input = ModelInput::from_tokens({1, 2});
    batch[0].loss_fn_inputs.set("target_tokens", std::vector<std::vector<int>>{{1, 2}, {3, 4}});
    std::optional<std::vector<std::int64_t>> shape;
    auto const loss = [&shape](std::span<Datum const> given, std::span<TensorData const> logprobs) {
        shape = logprobs[0].shape;
        return half_squares(given, logprobs);
    };
    (void)trainer().forward_backward_custom(batch, loss).get();
    EXPECT_THAT(shape.value(), ElementsAre(2, 2));
    auto const& weights = tinker.trained()[2]
                              .json.at("forward_backward_input")
                              .at("data")
                              .at(0)
                              .at("loss_fn_inputs")
                              .at("weights");
    EXPECT_EQ(weights.at("shape"), boost::json::parse("[2,2]"));
}

TEST_F(TrainingStartTest, RefusesACustomLossThatCannotWork) {  // R-TRAIN-72
    auto const client = trainer();
    std::vector<Datum> without(1);
    without[0].model_input = ModelInput::from_tokens({1});
    EXPECT_EQ(failure(client.forward_backward_custom(without, half_squares)).kind(),
              ErrorKind::validation);
    EXPECT_EQ(failure(client.forward_backward_custom(data(1), {})).field(), "loss");
    EXPECT_EQ(failure(client.forward_backward_custom({}, half_squares)).kind(),
              ErrorKind::validation);
    EXPECT_THAT(tinker.trained_steps(), IsEmpty());
}

TEST_F(TrainingStartTest, AGradientThatDoesNotFitIsAnErrorAndYieldsTheTurn) {  // R-TRAIN-72
    auto const client = trainer();
    auto const too_few = [](std::span<Datum const>, std::span<TensorData const>) {
        return CustomLossValue{.loss = 1, .gradient = {{1.0F}}};
    };
    auto pending = client.forward_backward_custom(data(1), too_few);
    auto step = client.optim_step({});
    EXPECT_EQ(failure(std::move(pending)).kind(), ErrorKind::validation);
    EXPECT_TRUE(step.result().has_value());
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "optim_step 2"));
}

TEST_F(TrainingStartTest, WhatTheLossFunctionThrowsIsTheCallsError) {  // R-TRAIN-72
    auto const client = trainer();
    auto const thrower = [](std::span<Datum const>,
                            std::span<TensorData const>) -> CustomLossValue {
        throw std::runtime_error{"log of zero"};
    };
    auto const error = failure(client.forward_backward_custom(data(1), thrower));
    EXPECT_EQ(error.kind(), ErrorKind::callback);
    EXPECT_THAT(error.what(), HasSubstr("forward_backward_custom: the loss function threw: log"));
    EXPECT_THROW(std::rethrow_exception(error.exception()), std::runtime_error);
    auto const own = [](std::span<Datum const>, std::span<TensorData const>) -> CustomLossValue {
        throw ValidationError{{.kind = ErrorKind::validation, .message = "mine"}};
    };
    EXPECT_EQ(failure(client.forward_backward_custom(data(1), own)).kind(), ErrorKind::validation);
    EXPECT_TRUE(client.optim_step({}).result().has_value());
    EXPECT_EQ(tinker.trained_steps().back(), "optim_step 3") << "a number for each forward pass";
}

TEST_F(TrainingStartTest, LaterCallsStayBehindTheGradientOfACustomLoss) {  // R-TRAIN-11, R-TRAIN-70
    auto const client = trainer();
    auto pending = client.forward_backward_custom(data(1), half_squares);
    auto step = client.optim_step({});
    (void)step.get();
    EXPECT_THAT(tinker.trained_steps(),
                ElementsAre("forward_backward 1", "forward_backward 2", "optim_step 3"));
    (void)pending.get();
}

TEST_F(TrainingStartTest, TheStatusSaysThatALossIsComputed) {  // R-TRAIN-73, R-TEST-01
    auto const executor = std::make_shared<HeldExecutor>();
    client_options.runtime = Runtime{
        {.threads = 0, .executor = executor, .scheduler = tinker.clock, .log = silent_log()}};
    auto const client = trainer();
    tinker.clock->set_auto_advance(false);
    executor->held = true;
    bool called = false;
    auto const loss = [&called](std::span<Datum const> given,
                                std::span<TensorData const> logprobs) {
        called = true;
        return half_squares(given, logprobs);
    };
    auto pending = client.forward_backward_custom(data(1), loss);
    auto step = client.optim_step({});
    run();
    EXPECT_FALSE(called) << "it runs on the callback executor only";
    auto asked = service().status();
    run();
    auto const status = asked.get();
    ASSERT_EQ(status.pending.size(), 2U);
    EXPECT_EQ(status.pending[0].operation, "forward_backward_custom");
    EXPECT_EQ(status.pending[0].stage, Stage::computing_loss);
    EXPECT_EQ(status.pending[1].stage, Stage::waiting_for_turn);
    pending.cancel();
    run();
    EXPECT_THAT(tinker.trained_steps(), ElementsAre("forward_backward 1", "optim_step 2"))
        << "the turn is given up although the function has not returned";
    executor->release();
    run();
    EXPECT_EQ(tinker.trained_steps().size(), 2U);
}

/// Keeps what it is told of losses.
class LossNotes final : public Observer {
public:
    void on_loss(LossEvent const& event) override { events.push_back(event); }
    std::vector<std::string> lines() const {
        std::vector<std::string> made;
        for (auto const& event : events) {
            auto const kind = event.kind == LossEvent::Kind::start  ? "start"
                              : event.kind == LossEvent::Kind::stop ? "stop"
                                                                    : "exception";
            made.push_back(kind + (event.regularizer.empty() ? "" : " " + event.regularizer));
        }
        return made;
    }
    std::vector<LossEvent> events{};
};

TEST_F(TrainingStartTest, ObserversHearOfLossesAndTheirRegularizers) {  // R-EXT-30
    auto const notes = std::make_shared<LossNotes>();
    client_options.observers.push_back(notes);
    client_options.metadata = {{"who", "me"}};
    auto const client = trainer();
    auto const loss = with_regularizers(
        half_squares, {{.name = "size", .fn = regularizers::l1()},
                       {.name = "bad", .fn = [](auto, auto, auto const&) -> CustomLossValue {
                            throw std::runtime_error{"log of zero"};
                        }}});
    (void)client.forward_backward_custom(data(1), half_squares).get();
    ASSERT_THAT(notes->lines(), ElementsAre("start", "stop"));
    EXPECT_EQ(notes->events[1].model_id, client.model_id());
    EXPECT_EQ(notes->events[1].metadata.at("who"), "me");
    notes->events.clear();
    (void)failure(client.forward_backward_custom(data(1), loss));
    run();
    ASSERT_THAT(notes->lines(), ElementsAre("start", "start size", "start bad", "stop size",
                                            "exception bad", "exception"));
    EXPECT_EQ(notes->events[4].model_id, client.model_id());
    EXPECT_STREQ(notes->events[4].error.value().what(), "log of zero");
    EXPECT_EQ(notes->events[5].error.value().kind(), ErrorKind::callback);
    notes->events.clear();
    (void)with_regularizers(half_squares, {{.name = "size", .fn = regularizers::l1()}})({}, {});
    EXPECT_THAT(notes->events, IsEmpty()) << "nobody's client called it";
}

TEST_F(TrainingStartTest, AForwardPassWithoutLogprobsIsAnError) {  // R-TRAIN-70
    tinker.train_result = [](TrainSubmit const& submit) -> std::string {
        if (submit.path != "forward_backward") return {};
        return R"({"loss_fn_output_type":"T","loss_fn_outputs":[{}],"metrics":{}})";
    };
    auto const error = failure(trainer().forward_backward_custom(data(1), half_squares));
    EXPECT_EQ(error.kind(), ErrorKind::validation);
    EXPECT_THAT(error.what(), HasSubstr("no logprobs for datum 0"));
}

// From a checkpoint ------------------------------------------------------------------------------

TEST_F(TrainingStartTest, MakesAModelLikeItsCheckpointAndLoadsIt) {  // R-TRAIN-80, R-TRAIN-81
    auto const client = service().create_training_client_from_state(checkpoint).get();
    EXPECT_EQ(client.model_id(), "session-1:train:0");
    EXPECT_EQ(body("weights_info"),
              boost::json::parse(R"({"tinker_path":")" + std::string{checkpoint} + R"("})"));
    EXPECT_EQ(body("create_model").at("lora_config"),
              boost::json::parse(R"({"rank":8,"train_unembed":false,"train_mlp":true,)"
                                 R"("train_attn":true})"));
    EXPECT_EQ(body("create_model").at("base_model").as_string(), "org/tiny");
    auto const sent = tinker.transport->sent();
    auto const asked = std::ranges::find(sent, "/api/v1/weights_info", &SentRequest::path);
    ASSERT_NE(asked, sent.end());
    EXPECT_EQ(asked->header("x-sdk-method"), "get_weights_info_by_tinker_path");  // R-REST-02
    EXPECT_FALSE(asked->header("x-sdk-version").empty());
    EXPECT_EQ(body("load_weights"),
              boost::json::parse(R"({"model_id":"session-1:train:0","seq_id":1,"path":")" +
                                 std::string{checkpoint} +
                                 R"(","optimizer":false,"type":"load_weights"})"));
    (void)client.optim_step({}).get();
    EXPECT_EQ(body("optim_step").at("seq_id").as_int64(), 2);
    EXPECT_EQ(tinker.logged("deprecated"), 0U);
}

TEST_F(TrainingStartTest, TakesTheOptimizerFromTheCheckpointWithItsState) {  // R-TRAIN-84
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("weights_info")) return std::nullopt;
        return json_reply(R"({"base_model":"org/tiny","is_lora":true,"lora_rank":4,)"
                          R"("optimizer_config":{"type":"dimuon","version":1}})");
    };
    auto const client =
        service().create_training_client_from_state_with_optimizer(checkpoint).get();
    EXPECT_EQ(body("create_model").at("optimizer_config").at("type").as_string(), "dimuon");
    EXPECT_TRUE(body("load_weights").at("optimizer").as_bool());
    FromStateOptions other;
    other.optimizer = AdamConfig{};
    EXPECT_EQ(failure(service().create_training_client_from_state_with_optimizer(checkpoint, other))
                  .field(),
              "optimizer");
    (void)service().create_training_client_from_state(checkpoint).get();
    EXPECT_EQ(body("create_model", 1).at("optimizer_config").at("type").as_string(), "adamw");
    other.optimizer = DimuonConfig{};
    other.base_model = "org/long";
    other.user_metadata = {{"x", "y"}};
    (void)service().create_training_client_from_state(checkpoint, other).get();
    EXPECT_EQ(body("create_model", 2).at("optimizer_config").at("type").as_string(), "dimuon");
    EXPECT_EQ(body("create_model", 2).at("base_model").as_string(), "org/long");
    EXPECT_EQ(body("create_model", 2).at("user_metadata"), boost::json::parse(R"({"x":"y"})"));
}

TEST_F(TrainingStartTest, RefusesACheckpointThatCannotBeTrainedOn) {  // R-TRAIN-81
    for (auto const* info : {R"({"base_model":"m","is_lora":false})",
                             R"({"base_model":"m","is_lora":true,"lora_rank":null})"}) {
        tinker.on_other = [info](SentRequest const& request) -> RawTinker::Answer {
            if (!request.path.ends_with("weights_info")) return std::nullopt;
            return json_reply(info);
        };
        auto const error = failure(service().create_training_client_from_state(checkpoint));
        EXPECT_EQ(error.kind(), ErrorKind::validation);
        EXPECT_EQ(error.value(), checkpoint);
    }
    EXPECT_THAT(tinker.trained(), IsEmpty());
}

TEST_F(TrainingStartTest, MakesAModelByOneLoadIfTheServerWantsThat) {  // R-TRAIN-82, R-TRAIN-84
    tinker.flags["create_model_via_load_weights"] = true;
    FromStateOptions wanted;
    wanted.base_model = "org/long";
    wanted.user_metadata = {{"x", "y"}};
    wanted.weights_access_token = "tml-other";
    wanted.optimizer = DimuonConfig{};
    auto const client = service().create_training_client_from_state(checkpoint, wanted).get();
    EXPECT_EQ(client.model_id(), "session-1:train:0");
    EXPECT_EQ(body("load_weights"),
              boost::json::parse(R"({"session_id":"session-1","model_seq_id":0,)"
                                 R"("base_model":"org/long","user_metadata":{"x":"y"},"path":")" +
                                 std::string{checkpoint} +
                                 R"(","optimizer":false,"optimizer_config":{"type":"dimuon",)"
                                 R"("version":1},"weights_access_token":"tml-other",)"
                                 R"("type":"load_weights"})"));
    EXPECT_EQ(tinker.count("/api/v1/weights_info"), 0U);
    EXPECT_EQ(tinker.count("/api/v1/create_model"), 0U);
    (void)client.optim_step(DimuonParams{.learning_rate = 0.1}).get();
    EXPECT_EQ(body("optim_step").at("seq_id").as_int64(), 1);

    auto const second =
        service().create_training_client_from_state_with_optimizer(checkpoint).get();
    EXPECT_EQ(second.model_id(), "session-1:train:1");
    EXPECT_FALSE(body("load_weights", 1).as_object().contains("optimizer_config"));
}

TEST_F(TrainingStartTest, AsksForAForeignCheckpointWithItsToken) {  // R-TRAIN-83
    FromStateOptions foreign;
    foreign.weights_access_token = "tml-other";
    (void)service().create_training_client_from_state(checkpoint, foreign).get();
    EXPECT_EQ(tinker.transport->sent("/api/v1/weights_info").at(0).header("X-API-Key"),
              "tml-other");
    EXPECT_EQ(tinker.transport->sent("/api/v1/create_model").at(0).header("X-API-Key"),
              "tml-test-key");
    EXPECT_EQ(body("load_weights").at("weights_access_token").as_string(), "tml-other");
}

TEST_F(TrainingStartTest, HandsOnATokenAsTheServiceWantsTokens) {  // R-TRAIN-83
    tinker.flags["pjwt_auth_enabled"] = true;
    FromStateOptions foreign;
    foreign.weights_access_token = "tml-other";
    (void)service().create_training_client_from_state(checkpoint, foreign).get();
    (void)service().create_training_client_from_state_with_optimizer(checkpoint, foreign).get();
    EXPECT_EQ(body("load_weights", 0).at("weights_access_token").as_string(), "a.b.c");
    EXPECT_EQ(body("load_weights", 1).at("weights_access_token").as_string(), "a.b.c");
    tinker.flags["create_model_via_load_weights"] = true;
    ServiceClient const other{tinker.options()};
    (void)other.create_training_client_from_state(checkpoint, foreign).get();
    EXPECT_EQ(body("load_weights", 2).at("weights_access_token").as_string(), "a.b.c");
}

TEST_F(TrainingStartTest, TheStatusShowsWhatAForeignCheckpointWaitsFor) {  // R-TEST-01
    (void)trainer();
    tinker.clock->set_auto_advance(false);
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("weights_info")) return std::nullopt;
        return never();
    };
    FromStateOptions foreign;
    foreign.weights_access_token = "tml-other";
    auto pending = service().create_training_client_from_state(checkpoint, foreign);
    run();
    auto asked = service().status();
    run();
    auto const status = asked.get();
    ASSERT_EQ(status.pending.size(), 1U);
    EXPECT_EQ(status.pending[0].operation, "create_training_client_from_state");
    auto closing = service().close();
    run();
    EXPECT_EQ(failure(std::move(pending)).kind(), ErrorKind::cancelled);
}

TEST_F(TrainingStartTest, CancellingAModelFromACheckpointStopsItsRequests) {
    (void)trainer();
    tinker.clock->set_auto_advance(false);
    tinker.on_other = [](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("weights_info")) return std::nullopt;
        return never();
    };
    auto pending = service().create_training_client_from_state(checkpoint);
    run();
    EXPECT_EQ(tinker.transport->open_count(), 1U);
    pending.cancel();
    run();
    EXPECT_EQ(tinker.transport->open_count(), 0U);
}

// Copies -----------------------------------------------------------------------------------------

TEST_F(TrainingStartTest, CopiesACheckpointWithOneKeyForAllRepeats) {  // R-TRAIN-85, R-RETRY-84
    int refusals = 12;
    tinker.on_other = [&refusals](SentRequest const& request) -> RawTinker::Answer {
        if (!request.path.ends_with("copy_weights") || refusals-- <= 0) return std::nullopt;
        return json_reply("{}", 503);
    };
    CopyWeightsOptions wanted;
    wanted.destination_project = "proj-2";
    wanted.ttl = 1h;
    wanted.weights_access_token = "tml-other";
    EXPECT_EQ(service().copy_weights(checkpoint, wanted).get(), "tinker://copy:train:0/weights/a");
    (void)service().copy_weights(checkpoint, wanted).get();
    auto const sent = tinker.transport->sent("/api/v1/copy_weights");
    ASSERT_EQ(sent.size(), 14U);
    auto const key = sent[0].header("X-Idempotency-Key");
    EXPECT_EQ(key.size(), 36U) << "a plain UUID";
    for (std::size_t i = 0; i < 13; ++i) {
        EXPECT_EQ(sent[i].header("X-Idempotency-Key"), key);
        EXPECT_EQ(sent[i].body, sent[0].body);
    }
    EXPECT_NE(sent[13].header("X-Idempotency-Key"), key);
    EXPECT_EQ(sent[0].header("X-Tinker-Weights-Access-Token"), "tml-other");
    EXPECT_EQ(boost::json::parse(sent[0].body),
              boost::json::parse(R"({"source_path":")" + std::string{checkpoint} +
                                 R"(","destination_project_id":"proj-2","ttl_seconds":3600})"));
    EXPECT_EQ(tinker.count("/api/v1/create_session"), 0U);
}

TEST_F(TrainingStartTest, CopiesToTheClientsProjectUnlessToldOtherwise) {  // R-TRAIN-85
    EXPECT_EQ(failure(service().copy_weights(checkpoint)).field(), "destination_project");
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
    client_options.project_id = "mine";
    ServiceClient const with_project{client_options};
    (void)with_project.copy_weights(checkpoint).get();
    EXPECT_EQ(body("copy_weights").at("destination_project_id").as_string(), "mine");
}

}  // namespace
}  // namespace tinkxx
