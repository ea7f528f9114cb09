#pragma once

#include <cstdint>

// What the files of the core share beside its header.

namespace tinkxx::local {

/// Copies of a sampling client count their samples from multiples of this.
inline constexpr std::int64_t clone_stride = 1'000'000'000;

}  // namespace tinkxx::local
