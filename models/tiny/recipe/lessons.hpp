#pragma once

#include <tinkxx/result.hpp>

#include "engine/common/threads.hpp"
#include "engine/model/adapter.hpp"

#include "corpus.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

// How the tiny model is made, and what is asked of it. The recipe's program and the tests share
// these, so that what is printed and what is tested are the same.

namespace tinkxx::tiny {

/// Seeds of texts: what is learnt, and what is only measured.
inline constexpr std::uint64_t training_seed = 1;
inline constexpr std::uint64_t held_out_seed = 2;

/// The shape of the model: Qwen3, 2.8 million weights.
engine::ModelConfig shape();

/// One stretch of pre-training; the learning rate rises, then falls to nothing.
struct Schedule {
    std::uint64_t seed{training_seed};
    std::size_t steps{0};
    std::size_t batch{0};
    std::size_t length{256};
    double learning_rate{0};
};
/// Each goes on from the weights that the one before has written, with larger batches of other
/// text.
inline constexpr std::array<Schedule, 3> stretches{{
    {.steps = 6000, .batch = 2, .learning_rate = 1.5e-3},
    {.seed = training_seed + 2, .steps = 1000, .batch = 4, .learning_rate = 6e-4},
    {.seed = training_seed + 3, .steps = 800, .batch = 16, .learning_rate = 6e-4},
}};

/// The start of the first: all weights random.
std::shared_ptr<engine::Model const> random_start();

/// Trains all weights of a model; `tell` hears the mean loss of each step.
std::unique_ptr<engine::Adapter> pretrain(
    std::shared_ptr<engine::Model const> const& model, Schedule const& schedule,
    engine::Threads& threads, std::function<void(std::size_t step, double loss)> const& tell);

/// All weights in float32, those of the last norm, and so the logits, a tenth larger: at
/// temperature 1 the rare slip of the pen is rarer, and held-out text as likely as before.
engine::Weights sharpened(engine::Model const& model);

/// Writes a model of this shape as a folder with bfloat16 weights and how its tokens are made.
Result<void> write_folder(std::filesystem::path const& folder, engine::Weights const& weights);

/// Mean loss of a token, in nats, over `sequences` stretches of 256 tokens of held-out text.
double held_out_loss(std::shared_ptr<engine::Model const> const& model, engine::Threads& threads,
                     std::size_t sequences);

/// How many of `count` texts, drawn from nothing, are texts of the grammar.
std::size_t parsed(std::shared_ptr<engine::Model const> const& model, engine::Threads& threads,
                   std::size_t count, double temperature);

/// The line that follows each prompt, drawn at `temperature`; without the line's end.
std::vector<std::string> answers(std::shared_ptr<engine::Model const> const& model,
                                 std::shared_ptr<engine::Adapter const> const& adapter,
                                 engine::Threads& threads, std::vector<Question> const& questions,
                                 double temperature, std::size_t samples, std::uint64_t seed);

/// The share of answers that are right.
double accuracy(std::shared_ptr<engine::Model const> const& model,
                std::shared_ptr<engine::Adapter const> const& adapter, engine::Threads& threads,
                std::vector<Question> const& questions, double temperature, std::size_t samples,
                std::uint64_t seed);

struct StyleResult {
    std::size_t asked{0};
    /// How many of the held-out answers were as asked, before and after.
    std::size_t before{0};
    std::size_t after{0};
};

/// Teaches an adapter to say "Lima, my friend!" instead of "Lima" by `steps` supervised steps, and
/// asks 20 questions that it was not taught.
StyleResult teach_style(std::shared_ptr<engine::Model const> const& model, engine::Threads& threads,
                        std::size_t steps);

struct RewardResult {
    /// The share of right sums at temperature 1, of sums that were not practised.
    double before{0};
    double after{0};
};

/// Teaches an adapter to add and subtract with care, from nothing but a reward for right answers.
/// `tell` hears the mean reward of each step.
RewardResult practise_sums(std::shared_ptr<engine::Model const> const& model,
                           engine::Threads& threads, std::size_t steps,
                           std::function<void(std::size_t step, double reward)> const& tell);

}  // namespace tinkxx::tiny
