#pragma once

#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/sampling.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Helpers that turn tokens and rewards into data, batches and learning rates.
namespace tinkxx::data {

/// A datum for next-token prediction: its input is all tokens except the last, and its targets are
/// all tokens except the first. `weights` has one number per token, the weight of the token as a
/// target; the first one is not used. Throws `ValidationError` if there are fewer than two tokens,
/// or if the numbers of tokens and weights differ. Tokens beyond `max_length` are cut off.
[[nodiscard]] Datum from_tokens(std::span<Token const> tokens, std::span<float const> weights,
                                std::optional<std::int64_t> max_length = std::nullopt);
/// As above, with weight 0 for the tokens of the prompt and 1 for those of the completion.
[[nodiscard]] Datum from_completion(std::span<Token const> prompt,
                                    std::span<Token const> completion,
                                    std::optional<std::int64_t> max_length = std::nullopt);
/// As above for input with images or audio, whose positions get weight 0. `weights` has one number
/// per token of the input. The input must end in text, and each image must have `expected_tokens`.
[[nodiscard]] Datum from_model_input(ModelInput const& input, std::span<float const> weights);
/// A datum for `importance_sampling` and related losses, from a sequence sampled for `prompt`. The
/// sampled tokens are targets with their logprobs and the advantage; for the prompt both are 0.
/// Spans are set if the sequence has an id. Throws `ValidationError` if the sequence is empty or
/// has no logprobs.
[[nodiscard]] Datum from_sample(std::span<Token const> prompt, SampledSequence const& sequence,
                                double advantage);

/// The number of input tokens of a datum; images without `expected_tokens` are not counted.
[[nodiscard]] std::int64_t token_count(Datum const& datum);
/// Splits data into batches of at most `max_tokens` tokens and, unless 0, `max_items` data, in
/// order. A datum larger than the budget gets a batch of its own. The spans point into `data`.
[[nodiscard]] std::vector<std::span<Datum const>> batches(std::span<Datum const> data,
                                                          std::int64_t max_tokens,
                                                          std::int64_t max_items = 0);

struct AdvantageOptions {
    /// Divides by the standard deviation of the group.
    bool divide_by_deviation{false};
    /// Added to the standard deviation.
    double epsilon{1e-6};
};
/// The difference of each reward from the mean of its group of `group_size` consecutive rewards.
/// Throws `ValidationError` if the number of rewards is not a multiple of `group_size`, or if a
/// reward is NaN or infinity.
[[nodiscard]] std::vector<double> group_relative_advantages(
    std::span<double const> rewards, std::size_t group_size,
    AdvantageOptions options = AdvantageOptions());

/// A learning rate that changes with the step.
struct LearningRateSchedule {
    enum class Shape : std::uint8_t { constant, linear, cosine };

    double peak{1e-4};
    /// The number of initial steps in which the rate grows linearly, starting at peak / (steps +
    /// 1).
    std::int64_t warmup_steps{0};
    /// The step at which the rate has fallen to `final_fraction` of its peak.
    std::int64_t total_steps{1};
    Shape shape{Shape::constant};
    double final_fraction{0};

    /// The rate of a step, counted from 0. After the last step the rate is constant.
    [[nodiscard]] double at(std::int64_t step) const;

    bool operator==(LearningRateSchedule const&) const = default;
};

}  // namespace tinkxx::data
