#pragma once

#include <tinkxx/types/training.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::service {

/// The results of the chunks of one call, as one result, and what is worth a line in the log.
struct Combined {
    ForwardBackwardOutput output{};
    /// For the level warning.
    std::vector<std::string> warnings{};
    /// Metrics that were left out and why, for the level debug.
    std::vector<std::string> notes{};
};

/// Puts the results of chunks together, in the order given (R-TRAIN-40 to R-TRAIN-43). A single
/// result is reduced too, as the official SDK does.
[[nodiscard]] Combined combine(std::vector<ForwardBackwardOutput> chunks);

/// The names of the reductions that `combine` knows, in alphabetical order.
[[nodiscard]] std::span<std::string_view const> known_reductions() noexcept;
/// The reductions of hashes, exactly; a metric holds them rounded to a double. Numbers lose what
/// is behind their point; those that are no number count as 0.
[[nodiscard]] std::uint64_t reduce_hash2(std::span<double const> values) noexcept;
[[nodiscard]] std::int64_t reduce_hash_unordered(std::span<double const> values);

}  // namespace tinkxx::service
