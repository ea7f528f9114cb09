#pragma once

#include "engine/kernels/types.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tinkxx::engine {

/// The value of a bfloat16, exactly.
[[nodiscard]] inline float bf16_to_float(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The nearest bfloat16, ties to even; a NaN stays one (quiet).
[[nodiscard]] inline std::uint16_t float_to_bf16(float value) noexcept {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

/// The value of an IEEE half, exactly; a NaN becomes quiet, as the hardware makes it.
[[nodiscard]] float f16_to_float(std::uint16_t bits) noexcept;
/// The nearest half, ties to even; too large becomes infinite.
[[nodiscard]] std::uint16_t float_to_f16(float value) noexcept;

/// Widens `count` elements of `type` to floats. Neither side need be aligned.
void widen(float* to, ElementType type, void const* from, std::size_t count);
/// Rounds `count` floats to `type`.
void narrow(void* to, ElementType type, float const* from, std::size_t count);

}  // namespace tinkxx::engine
