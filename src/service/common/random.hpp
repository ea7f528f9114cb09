#pragma once

#include "base/common/entropy.hpp"

#include <cstdint>

namespace tinkxx::service {

/// A small generator (SplitMix64) for jitter and keys; seeded from `Scheduler::entropy`.
class Random {
public:
    explicit constexpr Random(std::uint64_t seed) noexcept : state_{seed} {}

    constexpr std::uint64_t next() noexcept {
        auto const value = base::mix(state_);
        state_ += 0x9e3779b97f4a7c15U;
        return value;
    }
    /// In [0, 1).
    constexpr double unit() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }

private:
    std::uint64_t state_;
};

}  // namespace tinkxx::service
