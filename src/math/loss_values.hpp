#pragma once

#include <tinkxx/types/training.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::math {

[[noreturn]] void refuse_loss(std::string_view loss, std::string field, std::string const& why);

/// The log-probabilities of a datum; throws `ValidationError` if they are no dense float32.
[[nodiscard]] std::span<float const> logprobs_of(std::string_view loss, TensorData const& logprobs,
                                                 std::size_t datum);

/// The loss input of a datum, dense, one number for each of its `size` log-probabilities; throws
/// `ValidationError` if it has another size.
[[nodiscard]] std::optional<std::vector<double>> find_input(std::string_view loss,
                                                            Datum const& datum, std::size_t index,
                                                            std::string_view name,
                                                            std::size_t size);
/// As above; throws if there is none.
[[nodiscard]] std::vector<double> input_of(std::string_view loss, Datum const& datum,
                                           std::size_t index, std::string_view name,
                                           std::size_t size);

/// Throws `ValidationError` unless there are log-probabilities for each datum.
void check_sizes(std::string_view loss, std::span<Datum const> data,
                 std::span<TensorData const> logprobs);

}  // namespace tinkxx::math
