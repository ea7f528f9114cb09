#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <cstdint>
#include <variant>

namespace tinkxx::service {

class BillingPause;

/// Whether a logical request may be made again after this error: timeouts, lost connections, 408,
/// 409, 429 and 5xx (R-RETRY-80).
[[nodiscard]] bool repeats_submit(Error const& error) noexcept;

/// Decides what follows each failure of one logical request: the second layer of retries, around
/// whole HTTP calls (R-RETRY-80..82). Touches no socket and reads no clock.
class SubmitRetry {
public:
    /// Time that a request may take until no further attempt follows; pauses for 402 apart.
    static constexpr std::chrono::seconds budget{300};
    static constexpr std::chrono::seconds longest_wait{30};

    struct Wait {
        std::chrono::nanoseconds delay{};
    };
    struct Fail {
        /// The error is one that would have been repeated, had there been time left.
        bool out_of_time{false};
    };
    using Action = std::variant<Wait, Fail>;

    explicit SubmitRetry(TimePoint start) noexcept : start_{start}, attempt_started_{start} {}

    [[nodiscard]] Action on_error(Error const& error, TimePoint now) noexcept;
    /// A 402 that is waited out: counts neither as an attempt nor as time.
    [[nodiscard]] Wait on_billing_pause(TimePoint now) noexcept;

    /// Attempts that failed and were counted.
    [[nodiscard]] int attempts() const noexcept { return attempts_; }
    [[nodiscard]] TimePoint started() const noexcept { return start_; }
    [[nodiscard]] std::chrono::nanoseconds elapsed(TimePoint now) const noexcept {
        return now - start_ - paused_;
    }

private:
    TimePoint start_;
    TimePoint attempt_started_;
    std::chrono::nanoseconds paused_{0};
    int attempts_{0};
};

}  // namespace tinkxx::service
