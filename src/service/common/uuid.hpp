#pragma once

#include "service/common/random.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::service {

inline constexpr std::size_t uuid_size = 36;

/// Writes the `uuid_size` characters of a random UUID (version 4) that has these bits where they
/// are free.
inline void write_uuid(char* to, std::uint64_t high, std::uint64_t low) noexcept {
    constexpr std::string_view hex = "0123456789abcdef";
    std::array<std::uint64_t, 2> const words{
        (high & ~std::uint64_t{0xf000}) | 0x4000U,                      // version 4
        (low & ~(std::uint64_t{3} << 62U)) | (std::uint64_t{2} << 62U)  // variant 1
    };
    for (unsigned digit = 0; digit < 32; ++digit) {
        if (digit == 8 || digit == 12 || digit == 16 || digit == 20) *to++ = '-';
        *to++ = hex[(words[digit / 16] >> (60U - 4U * (digit % 16))) & 15U];
    }
}

[[nodiscard]] inline std::string uuid_text(std::uint64_t high, std::uint64_t low) {
    std::string text(uuid_size, '\0');
    write_uuid(text.data(), high, low);
    return text;
}

[[nodiscard]] inline std::string random_uuid(Random& random) {
    auto const high = random.next();
    return uuid_text(high, random.next());
}

}  // namespace tinkxx::service
