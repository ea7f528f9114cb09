#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/types/training.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::math {

// What is wrong with the arguments of a training call, before anything is sent. Messages name the
// operation, the datum and the input, what was found there and what is wanted.

/// That there is no data (R-TRAIN-23). Never turned off.
[[nodiscard]] std::optional<ErrorDetails> no_data_problem(std::string_view operation,
                                                          std::span<Datum const> data);

/// Shapes, lengths, element types, finite numbers, the inputs and the config of a loss that is
/// named by its type, and spans (R-TRAIN-31, R-TRAIN-38).
[[nodiscard]] std::optional<ErrorDetails> data_problem(std::string_view operation,
                                                       std::span<Datum const> data,
                                                       Loss const& loss);

/// Data for a custom loss: `target_tokens` in each, and what `data_problem` finds in them and in
/// `weights` (R-TRAIN-72).
[[nodiscard]] std::optional<ErrorDetails> custom_data_problem(std::string_view operation,
                                                              std::span<Datum const> data);
/// What a custom loss gave back: a gradient for each datum, with a number for each of its
/// log-probabilities (R-TRAIN-72).
[[nodiscard]] std::optional<ErrorDetails> custom_value_problem(
    std::string_view operation, CustomLossValue const& value, std::span<TensorData const> logprobs);

[[nodiscard]] std::optional<ErrorDetails> lora_problem(std::string_view operation,
                                                       LoraConfig const& config);
/// R-TRAIN-51, R-TRAIN-53. `family` is the one that the model was created with, if known.
[[nodiscard]] std::optional<ErrorDetails> optimizer_problem(
    std::string_view operation, OptimizerParams const& params,
    std::optional<OptimizerConfig> const& family);
[[nodiscard]] std::optional<ErrorDetails> optimizer_problem(std::string_view operation,
                                                            OptimizerConfig const& config);
/// A time to live must be positive (R-TRAIN-60); the rest is the server's to decide.
[[nodiscard]] std::optional<ErrorDetails> ttl_problem(std::string_view operation,
                                                      std::optional<std::int64_t> ttl_seconds);

}  // namespace tinkxx::math
