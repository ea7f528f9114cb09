#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/training.hpp>

#include "engine/jobs.hpp"
#include "wire/server/requests.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Between the words of the API and those of the engine.

namespace tinkxx::local {

/// The tokens of a prompt or a model input; fails for images and audio, which nobody here reads.
[[nodiscard]] Result<std::vector<Token>> tokens_of(std::string_view operation,
                                                   ModelInput const& input);

/// How many tokens it has.
[[nodiscard]] std::size_t token_count(ModelInput const& input) noexcept;

struct TrainingBatch {
    std::vector<engine::Datum> data{};
    engine::Loss loss{};
    std::size_t tokens{0};
    /// For each datum the columns of its targets; 0: they are a plain list.
    std::vector<std::size_t> columns{};
};
struct BatchLimits {
    /// Of one datum.
    std::size_t tokens{0};
    /// Targets of one token.
    std::size_t columns{0};
    /// Numbers in the inputs of all data, those counted that a sparse matrix leaves out.
    std::size_t cells{0};
};
/// What the engine is to compute. Fails with the reason if it cannot: an unknown loss, an input
/// that is missing, unknown or of another type, no data, more of something than the limits allow.
/// They are checked before memory is taken: a sparse matrix may stand for far more than came over
/// the wire.
[[nodiscard]] Result<TrainingBatch> to_batch(wire::server::ForwardBackward const& request,
                                             BatchLimits const& most);

/// The answer of the API.
[[nodiscard]] ForwardBackwardOutput to_output(std::string_view loss_fn,
                                              std::vector<std::size_t> const& columns,
                                              engine::BatchResult result);

}  // namespace tinkxx::local
