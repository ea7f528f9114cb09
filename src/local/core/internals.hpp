#pragma once

#include <cstddef>
#include <cstdint>

// What the files of the core share beside its header.

namespace tinkxx::local {

/// Copies of a sampling client count their samples from multiples of this.
inline constexpr std::int64_t clone_stride = 1'000'000'000;

/// A result that takes more is encoded off the loop.
inline constexpr std::size_t loop_result_bytes = std::size_t{64} << 10U;

}  // namespace tinkxx::local
