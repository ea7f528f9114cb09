#pragma once

#include <array>
#include <cstdint>

namespace tinkxx::engine {

/// Philox 4x32-10: four random words as a pure function of a key and a counter. What it gives for
/// one place depends on nothing that it gives elsewhere.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key,
                                                            std::uint64_t counter_high,
                                                            std::uint64_t counter_low) noexcept {
    auto const low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
    auto const high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32U); };
    std::array<std::uint32_t, 4> word{low(counter_low), high(counter_low), low(counter_high),
                                      high(counter_high)};
    std::uint32_t key0 = low(key);
    std::uint32_t key1 = high(key);
    for (int round = 0; round < 10; ++round) {
        auto const first = std::uint64_t{0xD2511F53U} * word[0];
        auto const second = std::uint64_t{0xCD9E8D57U} * word[2];
        word = {high(second) ^ word[1] ^ key0, low(second), high(first) ^ word[3] ^ key1,
                low(first)};
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
    return word;
}

/// A uniform number in [0, 1) with 53 random bits.
[[nodiscard]] constexpr double uniform(std::uint64_t key, std::uint64_t counter_high,
                                       std::uint64_t counter_low) noexcept {
    auto const word = philox(key, counter_high, counter_low);
    auto const bits = std::uint64_t{word[0]} << 32U | word[1];
    return static_cast<double>(bits >> 11U) * 0x1p-53;
}

}  // namespace tinkxx::engine
