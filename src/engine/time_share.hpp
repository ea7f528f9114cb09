#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace tinkxx::engine {

enum class WorkKind : std::uint8_t { sampling, training };

/// Shares the processor between sampling and training: while both have work each gets half of the
/// time, in slices as long as their steps happen to be. Told what each slice took; reads no clock.
class TimeShare {
public:
    /// Who is next of those that have work.
    [[nodiscard]] std::optional<WorkKind> next(bool sampling, bool training) noexcept {
        // Whoever has been idle may go first, but cannot save that time up.
        if (!sampling) sampling_ = std::max(sampling_, training_);
        if (!training) training_ = std::max(training_, sampling_);
        if (!sampling && !training) return std::nullopt;
        if (!training || (sampling && sampling_ <= training_)) return WorkKind::sampling;
        return WorkKind::training;
    }

    void ran(WorkKind kind, std::chrono::nanoseconds time) noexcept {
        (kind == WorkKind::sampling ? sampling_ : training_) += time;
    }

private:
    std::chrono::nanoseconds sampling_{0};
    std::chrono::nanoseconds training_{0};
};

}  // namespace tinkxx::engine
