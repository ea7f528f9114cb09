#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace tinkxx::observe {

/// The newest values of a series, and their ranks (R-EXT-10).
class ValueWindow {
public:
    static constexpr std::size_t most = 1000;

    struct Ranks {
        double p50{0};
        double p95{0};
        double p99{0};
    };

    void add(double value) {
        if (values_.size() < most) return values_.push_back(value);
        values_[oldest_] = value;
        oldest_ = (oldest_ + 1) % most;
    }
    void clear() noexcept {
        values_.clear();
        oldest_ = 0;
    }

    /// All 0 if there is no value.
    [[nodiscard]] Ranks ranks() const {
        if (values_.empty()) return {};
        auto sorted = values_;
        std::ranges::sort(sorted);
        auto const size = sorted.size();
        auto const middle = sorted[size / 2];
        return {.p50 = size % 2 == 1 ? middle : std::midpoint(sorted[size / 2 - 1], middle),
                .p95 = sorted[nearest(size, 95)],
                .p99 = sorted[nearest(size, 99)]};
    }

private:
    // In whole numbers: 0.95 times a size can come out just above a rank that it should meet.
    static std::size_t nearest(std::size_t size, std::size_t percent) noexcept {
        return (size * percent + 99) / 100 - 1;
    }

    std::vector<double> values_{};
    std::size_t oldest_{0};
};

}  // namespace tinkxx::observe
