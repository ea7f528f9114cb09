#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tinkxx::text {

__extension__ using Product = unsigned __int128;

[[nodiscard]] inline std::uint64_t load64(char const* p) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, p, sizeof value);
    return value;
}

[[nodiscard]] inline std::uint32_t load32(char const* p) noexcept {
    std::uint32_t value = 0;
    std::memcpy(&value, p, sizeof value);
    return value;
}

/// Both halves of a product: mixes all bits of both factors.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    auto const product = static_cast<Product>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

/// At most eight bytes, as a number; different for different texts of the same length.
[[nodiscard]] inline std::uint64_t load_up_to_8(char const* p, std::size_t size) noexcept {
    if (size == 8) return load64(p);
    if (size >= 4) {
        return load32(p) | static_cast<std::uint64_t>(load32(p + size - 4)) << 32U;
    }
    if (size == 0) return 0;
    auto const at = [p](std::size_t i) {
        return static_cast<std::uint64_t>(static_cast<unsigned char>(p[i]));
    };
    return at(0) | at(size / 2) << 8U | at(size - 1) << 16U;
}

/// Not for adversaries: who chooses the vocabulary can make it slow, not wrong.
[[nodiscard]] inline std::uint64_t hash_of(std::string_view text) noexcept {
    constexpr std::uint64_t a = 0x9e3779b97f4a7c15U;
    constexpr std::uint64_t b = 0xd6e8feb86659fd93U;
    auto const* p = text.data();
    auto size = text.size();
    auto hash = mix(size ^ a, b);
    for (; size > 8; size -= 8, p += 8) hash = mix(hash ^ load64(p), a);
    return mix(hash ^ load_up_to_8(p, size), b);
}

}  // namespace tinkxx::text
