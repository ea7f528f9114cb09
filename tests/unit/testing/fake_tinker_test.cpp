#include <tinkxx/testing/fake_tinker.hpp>

#include <tinkxx/recovery.hpp>
#include <tinkxx/service_client.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Datum> lesson() {
    return {Datum{
        .model_input = ModelInput::from_tokens({1, 2, 3}),
        .loss_fn_inputs = {{"target_tokens", {2.0, 3.0, 4.0}}, {"weights", {0.0, 1.0, 1.0}}}}};
}

class FakeTinkerTest : public ::testing::Test {
protected:
    [[nodiscard]] TrainingClient trainer() const {
        return service.create_lora_training_client("fake/model", 8).get();
    }

    FakeTinker tinker;
    ServiceClient service{tinker.options()};
    SamplingClient sampler{service.create_sampling_client("fake/model")};
    ModelInput prompt{ModelInput::from_tokens({7, 8})};
};

TEST_F(FakeTinkerTest, AnswersSamplesAsItsScriptSays) {
    tinker.on_sample([](AskedSample const& asked) {
        EXPECT_EQ(asked.model, "fake/model");
        EXPECT_EQ(asked.params.max_tokens, 5);
        return SampleResponse{.sequences = {{.tokens = {4, 5}}}};
    });
    auto const response = sampler.sample(prompt, {.max_tokens = 5}).get();
    EXPECT_THAT(response.sequences.at(0).tokens, ElementsAre(4, 5));
    EXPECT_THAT(*response.sequences.at(0).logprobs, ElementsAre(-1, -1));
    ASSERT_EQ(tinker.samples().size(), 1U);
    EXPECT_EQ(tinker.samples()[0].prompt, prompt);
}

TEST_F(FakeTinkerTest, HasAnAnswerWithoutAScript) {
    auto const response = sampler.sample(prompt, {.max_tokens = 2}, 3).get();
    ASSERT_EQ(response.sequences.size(), 3U);
    EXPECT_THAT(response.sequences[2].tokens, ElementsAre(1, 2));
    EXPECT_EQ(response.sequences[2].stop_reason, StopReason::length);
    EXPECT_THAT(sampler.compute_logprobs(prompt).get(),
                ElementsAre(std::nullopt, std::optional{-1.0F}));
}

TEST_F(FakeTinkerTest, TrainsSavesAndSamplesWhatWasSaved) {
    auto const model = trainer();
    auto pass = model.forward_backward(lesson(), LossFn::cross_entropy);
    auto step = model.optim_step({.learning_rate = 0.5});
    EXPECT_EQ(pass.get().metrics.at("loss:sum"), 3);
    (void)step.get();
    auto const path = model.save_weights_for_sampler("done").get().path;
    EXPECT_THAT(tinker.step_names(), ElementsAre("create_model", "forward_backward", "optim_step",
                                                 "save_weights_for_sampler"));
    EXPECT_EQ(tinker.steps()[0].lora.rank, 8);
    EXPECT_EQ(tinker.steps()[1].data.size(), 1U);
    EXPECT_EQ(tinker.steps()[1].loss, "cross_entropy");
    EXPECT_EQ(tinker.steps()[2].adam.learning_rate, 0.5);
    (void)service.create_sampling_client(path).sample(prompt, {.max_tokens = 1}).get();
    EXPECT_EQ(tinker.samples().back().model, path);
    auto const newest = model.save_weights_and_get_sampling_client().get();
    (void)newest.sample(prompt, {.max_tokens = 1}).get();
    EXPECT_THAT(tinker.samples().back().model, HasSubstr(model.model_id()));
}

TEST_F(FakeTinkerTest, GivesPassesTheLossOfTheScript) {
    tinker.on_pass([](AskedStep const& asked) {
        return ForwardBackwardOutput{
            .loss_fn_output_type = "CrossEntropyLossReturn",
            .loss_fn_outputs = std::vector<LossFnOutput>(asked.data.size()),
            .metrics = {{"loss:sum", 0.25}}};
    });
    auto pass = trainer().forward(lesson(), LossFn::cross_entropy);
    EXPECT_EQ(pass.get().metrics.at("loss:sum"), 0.25);
    EXPECT_EQ(tinker.steps().back().call, "forward");
}

TEST_F(FakeTinkerTest, GoesOnFromACheckpoint) {
    auto const path = trainer().save_state("half").get().path;
    auto const next = service.create_training_client_from_state(path).get();
    EXPECT_EQ(tinker.steps().back().call, "load_weights");
    EXPECT_EQ(tinker.steps().back().path, path);
    EXPECT_THROW(
        (void)service.create_training_client_from_state("tinker://x:train:0/weights/none").get(),
        StatusError);
}

TEST_F(FakeTinkerTest, LetsSamplesWaitInTheQueue) {
    tinker.pause(QueueState::paused_capacity, "no machine is free", 10min);
    auto const before = tinker.clock().now();
    (void)sampler.sample(prompt, {.max_tokens = 1}).get();
    EXPECT_GE(tinker.clock().now() - before, 10min);
    EXPECT_THAT(tinker.log(), ::testing::Contains(HasSubstr("no machine is free")));
}

TEST_F(FakeTinkerTest, RefusesSoManyRequests) {
    tinker.refuse(429, 2, {{"retry-after", "3"}});
    auto const before = tinker.clock().now();
    (void)sampler.sample(prompt, {.max_tokens = 1}).get();
    EXPECT_GE(tinker.clock().now() - before, 6s);
    EXPECT_EQ(tinker.samples().size(), 1U);
}

TEST_F(FakeTinkerTest, BlocksBillingForAWhile) {
    tinker.block_billing(1min);
    auto const before = tinker.clock().now();
    (void)sampler.sample(prompt, {.max_tokens = 1}).get();
    EXPECT_GE(tinker.clock().now() - before, 1min);
}

TEST_F(FakeTinkerTest, FailsResultsOfTheScriptAndOfWhatItThrows) {
    auto const model = trainer();
    tinker.fail_results("the machine caught fire");
    EXPECT_THAT(model.optim_step({}).result().error().what(), HasSubstr("the machine caught fire"));
    tinker.on_pass([](AskedStep const&) -> ForwardBackwardOutput {
        throw std::runtime_error{"no such datum"};
    });
    EXPECT_THAT(model.forward(lesson(), LossFn::cross_entropy).result().error().what(),
                HasSubstr("no such datum"));
}

TEST_F(FakeTinkerTest, LosesItsModelsWhenItRestarts) {
    auto const model = trainer();
    (void)model.save_state("half").get();
    tinker.restart();
    EXPECT_THROW((void)model.optim_step({}).get(), StatusError);
    auto const run = service.create_rest_client().get_training_run(model.model_id()).get();
    EXPECT_TRUE(run.corrupted);
    RecoveryExecutor const recovery{service, {.enabled = true}};
    auto const recovered = recovery.recover(model).get();
    EXPECT_NE(recovered.client.model_id(), model.model_id());
    (void)recovered.client.optim_step({}).get();
}

TEST_F(FakeTinkerTest, SaysWhatItDoesNotKnow) {
    EXPECT_THAT(service.create_rest_client().get_session("x").result().error().what(),
                HasSubstr("FakeTinker does not know"));
}

TEST(FakeTinkerByHand, MovesItsClockOnlyWhenTold) {
    FakeTinker tinker{{.auto_advance = false}};
    ServiceClient const service{tinker.options()};
    auto const sampler = service.create_sampling_client("fake/model");
    tinker.pause(QueueState::paused_rate_limit, "too many samplers", 90s);
    auto pending = sampler.sample(ModelInput::from_tokens({1}), {.max_tokens = 1});
    tinker.clock().advance(89s);
    EXPECT_FALSE(pending.ready());
    auto status = service.status();
    tinker.clock().run_ready();
    EXPECT_THAT(status.get().pending.at(0).queue_reason, HasSubstr("too many samplers"));
    tinker.clock().advance(60s);
    EXPECT_TRUE(pending.ready());
}

}  // namespace
}  // namespace tinkxx::testing
