#include "load/users/training.hpp"

#include <utility>

namespace tinkxx::load {
namespace {

constexpr std::size_t steps_of_a_round = 4;
constexpr std::size_t rounds_between_saves = 3;
constexpr std::size_t batch_size = 4;
constexpr std::size_t text_length = 32;

}  // namespace

std::vector<Datum> UserTraining::batch(std::uint64_t step) const {
    std::vector<Datum> data;
    for (std::size_t i = 0; i < batch_size; ++i) {
        std::vector<Token> tokens;
        for (std::size_t j = 0; j < text_length; ++j) {
            auto const mixed =
                (seed_ + static_cast<std::uint64_t>(number_) * 31 + step * 7 + i * 3 + j * j) *
                2654435761U;
            tokens.push_back(static_cast<Token>(97 + (mixed >> 7U) % 26));
        }
        data.push_back(data::from_tokens(tokens, std::vector<float>(tokens.size(), 1)));
    }
    return data;
}

void UserTraining::train(ServiceClient const& service, std::atomic<bool> const& open,
                         std::size_t rounds, std::chrono::seconds patience) {
    TrainingOptions options;
    options.lora.rank = 4;
    options.lora.seed = static_cast<std::int64_t>(seed_ % 1000) + number_;
    auto const trainer = service.create_lora_training_client(model_name, options).get(patience);
    std::uint64_t step = 0;
    while (open && rounds_.size() < rounds) {
        std::vector<Future<ForwardBackwardOutput>> passes;
        std::vector<Future<OptimStepResult>> steps;
        for (std::size_t i = 0; i < steps_of_a_round; ++i) {
            passes.push_back(trainer.forward_backward(batch(step++), LossFn::cross_entropy));
            steps.push_back(trainer.optim_step({.learning_rate = 1e-3}));
        }
        Round round;
        for (std::size_t i = 0; i < steps_of_a_round; ++i) {
            round.losses.push_back(passes[i].get(patience).metrics.at("loss:sum"));
            auto const metrics = steps[i].get(patience).metrics.value();
            round.norms.push_back(metrics.at("unclipped_grad_l2:mean"));
            // As many inputs as targets: one less than the text has.
            tokens_ += batch_size * (text_length - 1);
            ++steps_;
        }
        if (rounds_.size() % rounds_between_saves == 0) round.drawn = draw(trainer, patience);
        rounds_.push_back(std::move(round));
    }
}

SampledSequence UserTraining::draw(TrainingClient const& trainer, std::chrono::seconds patience) {
    // Both at once; the state in place of the one before.
    auto state = trainer.save_state("state", {.overwrite = true});
    auto weights = trainer.save_weights_for_sampler("weights-" + std::to_string(samples_));
    (void)state.get(patience);
    auto const sampler = trainer.create_sampling_client(weights.get(patience).path);
    saves_ += 2;
    auto drawn =
        sampler.sample(text_input("Q: What is two"),
                       {.max_tokens = tokens_of_a_sample, .seed = seed_, .stop = Stop::nowhere()});
    auto response = drawn.get(patience);
    ++samples_;
    auto sequence = std::move(response.sequences.at(0));
    sequence.sequence_id.clear();  // names the request
    return sequence;
}

}  // namespace tinkxx::load
