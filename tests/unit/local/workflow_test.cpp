// The ordinary client against the server in its own process.
#include "local_fixture.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Workflow : public LocalTest {
protected:
    Workflow() { client_options.chunks.items = 2; }

    static std::vector<Datum> batch() {
        return {text_datum("red is a colour."), text_datum("blue is a colour."),
                text_datum("green is a colour."), text_datum("pink is a colour."),
                text_datum("grey is a colour.")};
    }
    static double step(TrainingClient const& trainer) {
        auto grads = trainer.forward_backward(batch(), LossFn::cross_entropy);
        auto applied = trainer.optim_step({.learning_rate = 0.02});
        auto const loss = grads.get().metrics.at("loss:sum");
        applied.get();
        return loss;
    }
};

TEST_F(Workflow, TrainsInChunksUntilTheLossHasFallen) {
    auto const trainer = service().create_lora_training_client("test/bytes", 8).get();
    auto const first = step(trainer);
    double last = first;
    for (int i = 0; i < 12; ++i) last = step(trainer);
    EXPECT_LT(last, first / 2);
    EXPECT_EQ(trainer.get_info().get().model_name, "test/bytes");
}

TEST_F(Workflow, GoesOnFromACheckpointToTheLastBit) {
    auto const trainer = service().create_lora_training_client("test/bytes", 4).get();
    for (int i = 0; i < 3; ++i) (void)step(trainer);
    auto const saved = trainer.save_state("three").get();
    EXPECT_EQ(saved.path, "tinker://" + trainer.model_id() + "/weights/three");
    std::vector<double> uninterrupted;
    for (int i = 0; i < 3; ++i) uninterrupted.push_back(step(trainer));

    auto const again = service().create_training_client_from_state_with_optimizer(saved.path).get();
    for (auto const loss : uninterrupted) EXPECT_EQ(step(again), loss);
    // Without the optimizer's state the first loss is the same and the next ones are not.
    auto const anew = service().create_training_client_from_state(saved.path).get();
    EXPECT_EQ(step(anew), uninterrupted[0]);
    EXPECT_NE(step(anew), uninterrupted[1]);
}

TEST_F(Workflow, SavesWeightsThatCanBeDrawnFrom) {
    auto const trainer = service().create_lora_training_client("test/bytes", 8).get();
    for (int i = 0; i < 40; ++i) (void)step(trainer);
    auto const named = trainer.save_weights_for_sampler("forty").get();
    auto const unnamed = trainer.save_weights_and_get_sampling_client().get();
    for (int i = 0; i < 5; ++i) (void)step(trainer);  // what was saved stays as it was

    auto const sampler = service().create_sampling_client(named.path);
    SamplingParams const params{.max_tokens = 20, .stop = ".", .temperature = 0};
    auto const drawn = sampler.sample(text_prompt("red is"), params).get();
    std::string text;
    for (auto const token : drawn.sequences.at(0).tokens) text += static_cast<char>(token);
    EXPECT_EQ(text, " a colour.");
    EXPECT_EQ(drawn.sequences.at(0).stop_reason, StopReason::stop);
    EXPECT_EQ(unnamed.sample(text_prompt("red is"), params).get().sequences.at(0).tokens,
              drawn.sequences.at(0).tokens);
    EXPECT_EQ(sampler.get_base_model().get(), "test/bytes");
}

TEST_F(Workflow, AgreesOnLogprobsByAllWaysToAskForThem) {
    auto const trainer = service().create_lora_training_client("test/bytes", 8).get();
    for (int i = 0; i < 5; ++i) (void)step(trainer);
    std::string const text = "grey is a colour.";
    auto const forward = trainer.forward({text_datum(text)}, LossFn::cross_entropy).get();
    auto const& expected =
        std::get<std::vector<float>>(forward.loss_fn_outputs.at(0).at("logprobs").data);
    auto const sampler = trainer.save_weights_and_get_sampling_client().get();
    auto const prompt = sampler.compute_logprobs(text_prompt(text)).get();
    ASSERT_THAT(prompt, SizeIs(text.size()));
    EXPECT_FALSE(prompt[0].has_value());
    for (std::size_t i = 1; i < prompt.size(); ++i) {
        EXPECT_NEAR(prompt[i].value(), expected[i - 1], 1e-4);
    }
}

TEST_F(Workflow, DrawsTheSameForTheSameSeed) {
    auto const sampler = service().create_sampling_client("test/bytes");
    SamplingParams const params{.max_tokens = 6, .seed = 11, .stop = Stop::nowhere()};
    auto const one = sampler.sample(text_prompt("x"), params, 3).get();
    auto const two = sampler.sample(text_prompt("x"), params, 3).get();
    ASSERT_THAT(one.sequences, SizeIs(3));
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(one.sequences[i].tokens, two.sequences[i].tokens);
        EXPECT_THAT(one.sequences[i].tokens, SizeIs(6));
        EXPECT_FALSE(one.sequences[i].sequence_id.empty());
    }
    EXPECT_NE(one.sequences[0].tokens, one.sequences[1].tokens);
}

TEST_F(Workflow, ScoresWhatElseCouldHaveBeenDrawn) {
    auto const sampler = service().create_sampling_client("test/bytes");
    TensorData asked{.data = std::vector<std::int64_t>{98, -1, 99, 100},
                     .shape = std::vector<std::int64_t>{2, 2}};
    auto const response =
        sampler
            .sample(text_prompt("abc"), {.max_tokens = 3, .seed = 1, .stop = Stop::nowhere()},
                    SampleOptions{.include_prompt_logprobs = true,
                                  .topk_prompt_logprobs = 2,
                                  .topk_sample_logprobs = 256,
                                  .target_prompt_logprobs = asked})
            .get();
    auto const& targets =
        std::get<std::vector<float>>(response.target_prompt_logprobs.value().data);
    // What was asked for is what the prompt itself has there.
    EXPECT_NEAR(targets.at(0), response.prompt_logprobs.value().at(1).value(), 1e-5);
    EXPECT_EQ(targets.at(1), 0.0F);
    EXPECT_NEAR(targets.at(2), response.prompt_logprobs.value().at(2).value(), 1e-5);
    EXPECT_FALSE(response.topk_prompt_logprobs.value().at(0).has_value());
    EXPECT_THAT(response.topk_prompt_logprobs.value().at(1).value(), SizeIs(2));
    auto const& sequence = response.sequences.at(0);
    auto const& rows = sequence.topk_logprobs.value();
    ASSERT_THAT(rows, SizeIs(3));
    for (std::size_t i = 0; i < 3; ++i) {
        auto const& row = rows[i].value();
        auto const own = std::ranges::find(row, sequence.tokens[i], &TokenLogprob::token);
        ASSERT_NE(own, row.end());
        EXPECT_EQ(own->logprob, sequence.logprobs.value()[i]);
    }
}

TEST_F(Workflow, StreamsTokensAsTheyAreDrawn) {
    auto const sampler = service().create_sampling_client("test/bytes");
    SamplingParams const params{.max_tokens = 5, .seed = 3, .stop = Stop::nowhere()};
    std::vector<Token> streamed;
    std::string reason;
    sampler
        .sample_stream(text_prompt("ab"), params,
                       [&](SampleChunk const& chunk) {
                           if (chunk.token_id) streamed.push_back(*chunk.token_id);
                           if (chunk.finish_reason) reason = *chunk.finish_reason;
                       })
        .get();
    EXPECT_EQ(streamed, sampler.sample(text_prompt("ab"), params).get().sequences.at(0).tokens);
    EXPECT_EQ(reason, "length");
}

TEST_F(Workflow, RunsALossOfTheCallersOwn) {
    auto const trainer = service().create_lora_training_client("test/bytes", 4).get();
    auto const loss = [](std::span<Datum const>, std::span<TensorData const> logprobs) {
        CustomLossValue value;
        for (auto const& one : logprobs) {
            auto const& numbers = std::get<std::vector<float>>(one.data);
            for (auto const number : numbers) value.loss -= number;
            value.gradient.emplace_back(numbers.size(), -1.0F);
        }
        return value;
    };
    auto const own = trainer.forward_backward_custom(batch(), loss).get();
    auto const built_in = trainer.forward(batch(), LossFn::cross_entropy).get();
    EXPECT_NEAR(own.metrics.at("loss:sum"), built_in.metrics.at("loss:sum"), 1e-2);
}

TEST_F(Workflow, AStepBehindACallThatComesToNothingIsNotHeldUp) {  // R-TRAIN-13
    auto const trainer = service().create_lora_training_client("test/bytes", 4).get();
    auto const throws = [](std::span<Datum const>, std::span<TensorData const>) -> CustomLossValue {
        throw std::runtime_error{"not today"};
    };
    auto const wrong = [](std::span<Datum const>, std::span<TensorData const>) {
        return CustomLossValue{.loss = 1, .gradient = {{1.0F}}};
    };
    auto const quick_step = [&](std::string const& behind) {
        auto const before = clock->now();
        auto applied = trainer.optim_step({});
        EXPECT_TRUE(applied.result()) << behind;
        EXPECT_LT(clock->now() - before, 1s) << behind;
    };
    EXPECT_GT(step(trainer), 0);
    {
        auto before_it_began = trainer.forward_backward(batch(), LossFn::cross_entropy);
        before_it_began.cancel();
    }
    quick_step("one that is cancelled before it began");
    for (int turns = 1; turns < 40; ++turns) {  // also between any two of its chunks
        auto grads = trainer.forward_backward(batch(), LossFn::cross_entropy);
        for (int i = 0; i < turns; ++i) (void)clock->run_ready();
        grads.cancel();
        quick_step("one that is cancelled after " + std::to_string(turns) + " turns of the loop");
    }
    auto thrown = trainer.forward_backward_custom(batch(), throws);
    quick_step("a loss that throws");
    EXPECT_FALSE(thrown.result());
    auto misfit = trainer.forward_backward_custom(batch(), wrong);
    quick_step("a loss with a wrong gradient");
    EXPECT_FALSE(misfit.result());
    EXPECT_GT(step(trainer), 0);
}

TEST_F(Workflow, TellsWhatIsWrongWithDataAndGoesOn) {
    client_options.check_data = false;
    auto const trainer = service().create_lora_training_client("test/bytes", 4).get();
    auto strange = text_datum("abc");
    strange.loss_fn_inputs.set("mask", TensorData{.data = std::vector<float>{1, 1}});
    auto const refused = trainer.forward_backward({strange}, LossFn::cross_entropy).result();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::request_failed);
    EXPECT_EQ(refused.error().category(), ErrorCategory::user);
    EXPECT_THAT(refused.error().what(), HasSubstr("has no input mask"));
    auto const unknown = trainer.forward_backward({text_datum("abc")}, "stable_reinforce").result();
    ASSERT_FALSE(unknown);
    EXPECT_THAT(unknown.error().what(), HasSubstr("stable_reinforce is not known"));
    EXPECT_GT(step(trainer), 0);
}

TEST(WorkflowWithThreads, TrainsAndDraws) {
    TemporaryFolder const home;
    auto options = tiny_server();
    options.compute = Compute::own_threads;
    options.threads = 2;
    options.home = home.path();
    auto const service = service_client(options);
    auto const trainer = service.create_lora_training_client("test/bytes", 4).get();
    std::vector<Datum> const data{text_datum("one and two"), text_datum("two and three")};
    double first = 0;
    double last = 0;
    for (int i = 0; i < 8; ++i) {
        auto grads = trainer.forward_backward(data, LossFn::cross_entropy);
        auto applied = trainer.optim_step({.learning_rate = 0.02});
        last = grads.get().metrics.at("loss:sum");
        if (i == 0) first = last;
        applied.get();
    }
    EXPECT_LT(last, first);
    auto const sampler = trainer.save_weights_and_get_sampling_client().get();
    std::vector<Future<SampleResponse>> pending;
    for (int i = 0; i < 20; ++i) {
        pending.push_back(sampler.sample(text_prompt("one"), {.max_tokens = 4}));
    }
    for (auto& one : pending) EXPECT_EQ(one.get().sequences.size(), 1U);
    service.close().get();
}

}  // namespace
}  // namespace tinkxx::local
