#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tinkxx {

/// Limits the retries of all calls of one handler together. Once it is spent, errors are reported
/// that would otherwise be retried. Every repetition counts: requests that are sent again after a
/// failure or a refusal for load (429), and polls that are repeated because no answer came. At
/// least one of the limits must be set.
///
///     RetryConfig{.retry_budget = RetryBudget{.capacity = 100, .refill_per_second = 5}}
struct RetryBudget {
    /// The size of the token bucket; every retry takes one token. Empty: no such limit.
    std::optional<std::int64_t> capacity{};
    /// Tokens that are added each second, up to `capacity`. Zero: none, so that `capacity` is the
    /// total.
    double refill_per_second{0};
    /// The total time spent on retries, over all calls: the delays before them, and the duration of
    /// those that failed again. It is never refilled. A retry in flight is not cut off; use a
    /// deadline for that. Empty: no such limit.
    std::optional<std::chrono::milliseconds> total_delay{};

    /// Throws `ValidationError`, naming field and value, for settings that cannot work.
    void validate() const;

    bool operator==(RetryBudget const&) const = default;
};

}  // namespace tinkxx
