#pragma once

#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/sampling.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// From tokens and rewards to data, batches and learning rates.
namespace tinkxx::data {

/// A datum that teaches a model to continue: it reads all tokens but the last, and its targets are
/// all but the first. `weights` has one number for each token, which says how much the token counts
/// as a target; that of the first counts nothing. Throws `ValidationError` if there are fewer than
/// two tokens or another number of weights. Tokens beyond `max_length` are cut off.
[[nodiscard]] Datum from_tokens(std::span<Token const> tokens, std::span<float const> weights,
                                std::optional<std::int64_t> max_length = std::nullopt);
/// As above; tokens count 0 in the prompt and 1 in the completion.
[[nodiscard]] Datum from_completion(std::span<Token const> prompt,
                                    std::span<Token const> completion,
                                    std::optional<std::int64_t> max_length = std::nullopt);
/// As above for input with images or audio, whose places are targets of weight 0. `weights` has one
/// number for each token of the input; the input ends in text, and each image says how many tokens
/// it makes.
[[nodiscard]] Datum from_model_input(ModelInput const& input, std::span<float const> weights);
/// A datum for `importance_sampling` and its kin, from a sequence that was drawn for `prompt`:
/// its tokens are targets with their logprobs and the advantage; in the prompt both are 0. Spans
/// are set if the sequence has an id. Throws `ValidationError` if the sequence is empty or has no
/// logprobs.
[[nodiscard]] Datum from_sample(std::span<Token const> prompt, SampledSequence const& sequence,
                                double advantage);

/// How many tokens a datum has for the model to read; images that do not say count nothing.
[[nodiscard]] std::int64_t token_count(Datum const& datum);
/// Cuts data into batches of at most `max_tokens` tokens and, unless 0, `max_items` data; in order,
/// none empty. What is larger than the budget is a batch of its own. The spans point into `data`.
[[nodiscard]] std::vector<std::span<Datum const>> batches(std::span<Datum const> data,
                                                          std::int64_t max_tokens,
                                                          std::int64_t max_items = 0);

struct AdvantageOptions {
    /// Divides by the standard deviation of the group.
    bool divide_by_deviation{false};
    /// Added to the deviation.
    double epsilon{1e-6};
};
/// By how much each reward is better than the mean of its group: of `group_size` rewards that
/// follow each other. Throws `ValidationError` if the groups do not come out even, or if a reward
/// is not finite.
[[nodiscard]] std::vector<double> group_relative_advantages(
    std::span<double const> rewards, std::size_t group_size,
    AdvantageOptions options = AdvantageOptions());

/// A learning rate that changes with the step.
struct LearningRateSchedule {
    enum class Shape : std::uint8_t { constant, linear, cosine };

    double peak{1e-4};
    /// Steps at the beginning in which the rate grows linearly, from peak / (steps + 1).
    std::int64_t warmup_steps{0};
    /// The step at which the rate has come down to `final_fraction` of its peak.
    std::int64_t total_steps{1};
    Shape shape{Shape::constant};
    double final_fraction{0};

    /// The rate of a step; the first step is 0. After the last one the rate stays.
    [[nodiscard]] double at(std::int64_t step) const;

    bool operator==(LearningRateSchedule const&) const = default;
};

}  // namespace tinkxx::data
