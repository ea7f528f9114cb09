#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::load {

/// Looks whether a process grows, from one look at it each second.
class MemoryWatch {
public:
    explicit MemoryWatch(std::size_t seconds) { bytes_.reserve(seconds + 8); }

    void add(std::uint64_t bytes) { bytes_.push_back(bytes); }

    /// The peaks of the two halves of the time after the start, in which caches fill.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> halves() const {
        auto const from = bytes_.begin() + static_cast<std::ptrdiff_t>(
                                               std::min<std::size_t>(bytes_.size() / 4, 120));
        auto const middle = from + (bytes_.end() - from) / 2;
        if (from == middle || middle == bytes_.end()) return {0, 0};
        return {*std::max_element(from, middle), *std::max_element(middle, bytes_.end())};
    }
    [[nodiscard]] bool flat() const {
        auto const [first, second] = halves();
        return second <= first + first / 10 + (std::uint64_t{16} << 20U);
    }
    [[nodiscard]] std::uint64_t peak() const {
        return bytes_.empty() ? 0 : *std::max_element(bytes_.begin(), bytes_.end());
    }

private:
    std::vector<std::uint64_t> bytes_{};
};

}  // namespace tinkxx::load
