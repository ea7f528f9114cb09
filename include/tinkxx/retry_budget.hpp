#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tinkxx {

/// How much repeating all calls of one handler may do together. Once it is spent, errors surface
/// that would have been retried. At least one of the limits must be set.
///
///     RetryConfig{.retry_budget = RetryBudget{.capacity = 100, .refill_per_second = 5}}
struct RetryBudget {
    /// Retries that may follow each other at once; every retry takes one. Empty: no such limit.
    std::optional<std::int64_t> capacity{};
    /// Retries that are given back each second, up to `capacity`. Zero: `capacity` is all there
    /// will ever be.
    double refill_per_second{0};
    /// The waits before all retries, added up. Nothing is given back. Empty: no such limit.
    std::optional<std::chrono::milliseconds> total_delay{};

    /// Throws `ValidationError`, naming field and value, for settings that cannot work.
    void validate() const;

    bool operator==(RetryBudget const&) const = default;
};

}  // namespace tinkxx
