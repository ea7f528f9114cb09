#pragma once

#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace tinkxx::service {

/// Decides which calls a circuit breaker lets through (R-EXT-01). Holds no lock and reads no
/// clock: it is told the time, which never goes back.
///
/// A period begins with every change of state. A call belongs to the period in which it was let
/// through; how it ends is of no interest in a later one, since the question has been decided.
class BreakerMachine {
public:
    struct Rules {
        int failure_threshold{5};
        std::chrono::nanoseconds open_duration{std::chrono::seconds{30}};
        int trial_calls{1};
    };

    explicit BreakerMachine(Rules rules) noexcept : rules_{rules} {}

    /// The period of a call that is let through; none if it is refused.
    [[nodiscard]] std::optional<std::uint64_t> admit(TimePoint now) noexcept;
    void on_success(std::uint64_t period) noexcept;
    void on_failure(std::uint64_t period, TimePoint now) noexcept;
    /// The call was never made, or nobody knows how it ended.
    void on_abandoned(std::uint64_t period) noexcept;
    void reset() noexcept;

    [[nodiscard]] CircuitStatus status(TimePoint now) const noexcept;

private:
    void enter(CircuitState state) noexcept;

    Rules rules_;
    CircuitState state_{CircuitState::closed};
    std::uint64_t period_{0};
    int failures_{0};
    int trials_{0};
    TimePoint open_until_{};
};

}  // namespace tinkxx::service
