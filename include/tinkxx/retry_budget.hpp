#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tinkxx {

/// How much repeating all calls of one handler may do together. Once it is spent, errors surface
/// that would have been retried. It pays for every repetition: requests that are sent again after
/// a failure or a refusal for load (429), and polls that are repeated since no answer came. At
/// least one of the limits must be set.
///
///     RetryConfig{.retry_budget = RetryBudget{.capacity = 100, .refill_per_second = 5}}
struct RetryBudget {
    /// Retries that may follow each other at once; every retry takes one. Empty: no such limit.
    std::optional<std::int64_t> capacity{};
    /// Retries that are given back each second, up to `capacity`. Zero: `capacity` is all there
    /// will ever be.
    double refill_per_second{0};
    /// Time spent on retries: the waits before them, and what those took that failed again, added
    /// up for all calls. Nothing is given back. A retry that is under way is not cut off; a
    /// deadline does that. Empty: no such limit.
    std::optional<std::chrono::milliseconds> total_delay{};

    /// Throws `ValidationError`, naming field and value, for settings that cannot work.
    void validate() const;

    bool operator==(RetryBudget const&) const = default;
};

}  // namespace tinkxx
