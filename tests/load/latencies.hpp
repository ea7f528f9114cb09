#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tinkxx::load {

/// Times in buckets that are a tenth wider each, so that any number of them takes no memory. One
/// thread.
class Latencies {
public:
    void add(std::chrono::nanoseconds time) {
        auto const us = std::max(1.0, std::chrono::duration<double, std::micro>{time}.count());
        auto const at = static_cast<std::size_t>(std::log(us) / step());
        ++buckets_[std::min(at, buckets_.size() - 1)];
        ++count_;
        longest_ = std::max(longest_, time);
    }
    /// In seconds, a tenth too large at most; `part` of them are not above it.
    [[nodiscard]] double quantile(double part) const {
        auto left = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(count_)));
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            if (left <= buckets_[i]) {
                return std::min(std::exp(static_cast<double>(i + 1) * step()) * 1e-6, longest());
            }
            left -= buckets_[i];
        }
        return longest();
    }
    [[nodiscard]] double longest() const { return std::chrono::duration<double>{longest_}.count(); }
    [[nodiscard]] std::uint64_t count() const { return count_; }

private:
    static double step() { return std::log(1.1); }

    std::array<std::uint64_t, 256> buckets_{};  // to some nine hours
    std::uint64_t count_{0};
    std::chrono::nanoseconds longest_{0};
};

}  // namespace tinkxx::load
