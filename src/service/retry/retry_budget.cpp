#include "service/retry/retry_budget.hpp"

#include "service/retry/refusal.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace tinkxx {

void RetryBudget::validate() const {
    if (!capacity && !total_delay) {
        service::refuse_field("RetryBudget", "capacity", "empty",
                              "set, unless total_delay is; leave retry_budget out for none");
    }
    if (capacity && *capacity < 0)
        service::refuse_field("RetryBudget", "capacity", std::to_string(*capacity), "0 or above");
    if (!std::isfinite(refill_per_second) || refill_per_second < 0) {
        service::refuse_field("RetryBudget", "refill_per_second",
                              service::number_text(refill_per_second), "a number from 0 up");
    }
    if (total_delay && total_delay->count() < 0) {
        service::refuse_field("RetryBudget", "total_delay",
                              std::to_string(total_delay->count()) + " ms", "0 or above");
    }
}

}  // namespace tinkxx

namespace tinkxx::service {

RetryBudgetState::RetryBudgetState(RetryBudget budget) noexcept
    : budget_{budget}, tokens_{static_cast<double>(budget.capacity.value_or(0))} {}

double RetryBudgetState::tokens(TimePoint now) const noexcept {
    if (!counted_) return tokens_;
    auto const seconds = std::chrono::duration<double>{now - counted_at_}.count();
    auto const full = static_cast<double>(budget_.capacity.value_or(0));
    return std::min(full, tokens_ + seconds * budget_.refill_per_second);
}

bool RetryBudgetState::take(TimePoint now, std::chrono::nanoseconds delay) noexcept {
    // Compared by what is left, so that no sum can overflow.
    if (budget_.total_delay && delay > *budget_.total_delay - delayed_) return false;
    if (budget_.capacity) {
        auto const left = tokens(now);
        // A refill that fell short of a whole token by rounding alone is one.
        if (left < 1 - 1e-9) return false;
        tokens_ = std::max(0.0, left - 1);
        counted_at_ = now;
        counted_ = true;
    }
    if (budget_.total_delay) delayed_ += delay;
    return true;
}

}  // namespace tinkxx::service
