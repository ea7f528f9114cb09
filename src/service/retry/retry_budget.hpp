#pragma once

#include <tinkxx/retry_budget.hpp>
#include <tinkxx/scheduler.hpp>

#include <chrono>

namespace tinkxx::service {

/// What is left of a `RetryBudget` (R-RETRY-23). Reads no clock: it is told the time, which
/// never goes back.
class RetryBudgetState {
public:
    /// The budget is valid.
    explicit RetryBudgetState(RetryBudget budget) noexcept;

    /// Pays for one retry that follows after `delay`. False, and nothing is taken, if the budget
    /// does not allow it.
    [[nodiscard]] bool take(TimePoint now, std::chrono::nanoseconds delay) noexcept;

    /// Retries that could be paid for now; only meaningful with a `capacity`.
    [[nodiscard]] double tokens(TimePoint now) const noexcept;
    /// The waits paid for so far.
    [[nodiscard]] std::chrono::nanoseconds delayed() const noexcept { return delayed_; }

private:
    RetryBudget budget_;
    double tokens_{0};
    TimePoint counted_at_{};  ///< when `tokens_` was right
    bool counted_{false};
    std::chrono::nanoseconds delayed_{0};
};

}  // namespace tinkxx::service
