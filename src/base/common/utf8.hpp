#pragma once

#include <cstddef>

namespace tinkxx::base {

/// How many bytes at `at` are one character of UTF-8; 0 if they are none. `at` is before `end`.
[[nodiscard]] constexpr std::size_t utf8_character(char const* at, char const* end) noexcept {
    auto const byte = [at](std::size_t i) { return static_cast<unsigned char>(at[i]); };
    auto const follows = [&byte](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
    auto const left = static_cast<std::size_t>(end - at);
    auto const first = byte(0);
    if (first < 0x80) return 1;
    if (first < 0xc2) return 0;  // in the middle of one, or longer than need be
    if (first < 0xe0) return left >= 2 && follows(1) ? 2 : 0;
    if (first < 0xf0) {
        if (left < 3 || !follows(1) || !follows(2)) return 0;
        if (first == 0xe0 && byte(1) < 0xa0) return 0;
        if (first == 0xed && byte(1) > 0x9f) return 0;  // half a surrogate pair
        return 3;
    }
    if (first > 0xf4 || left < 4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
}

}  // namespace tinkxx::base
