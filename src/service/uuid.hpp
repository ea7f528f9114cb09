#pragma once

#include "service/random.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// The text of a random UUID (version 4) that has these bits where they are free.
[[nodiscard]] inline std::string uuid_text(std::uint64_t high, std::uint64_t low) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::array<std::uint64_t, 2> const words{
        (high & ~std::uint64_t{0xf000}) | 0x4000U,                      // version 4
        (low & ~(std::uint64_t{3} << 62U)) | (std::uint64_t{2} << 62U)  // variant 1
    };
    std::string text;
    text.reserve(36);
    for (unsigned digit = 0; digit < 32; ++digit) {
        if (digit == 8 || digit == 12 || digit == 16 || digit == 20) text += '-';
        text += hex[(words[digit / 16] >> (60U - 4U * (digit % 16))) & 15U];
    }
    return text;
}

[[nodiscard]] inline std::string random_uuid(Random& random) {
    auto const high = random.next();
    return uuid_text(high, random.next());
}

}  // namespace tinkxx::service
