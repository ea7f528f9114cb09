#include "service/breaker/breaker_machine.hpp"

namespace tinkxx::service {

void BreakerMachine::enter(CircuitState state) noexcept {
    state_ = state;
    ++period_;
    failures_ = 0;
    trials_ = 0;
}

std::optional<std::uint64_t> BreakerMachine::admit(TimePoint now) noexcept {
    if (state_ == CircuitState::open && now >= open_until_) enter(CircuitState::half_open);
    if (state_ == CircuitState::open) return std::nullopt;
    if (state_ == CircuitState::half_open) {
        if (trials_ >= rules_.trial_calls) return std::nullopt;
        ++trials_;
    }
    return period_;
}

void BreakerMachine::on_success(std::uint64_t period) noexcept {
    if (period != period_) return;
    if (state_ == CircuitState::half_open) enter(CircuitState::closed);
    failures_ = 0;
}

void BreakerMachine::on_failure(std::uint64_t period, TimePoint now) noexcept {
    if (period != period_) return;
    if (state_ == CircuitState::closed && ++failures_ < rules_.failure_threshold) return;
    enter(CircuitState::open);
    open_until_ = now + rules_.open_duration;
}

void BreakerMachine::on_abandoned(std::uint64_t period) noexcept {
    if (period == period_ && state_ == CircuitState::half_open) --trials_;
}

void BreakerMachine::reset() noexcept { enter(CircuitState::closed); }

CircuitStatus BreakerMachine::status(TimePoint now) const noexcept {
    if (state_ == CircuitState::open && now >= open_until_) {
        return {.state = CircuitState::half_open};
    }
    CircuitStatus status{.state = state_, .failures = failures_, .trials = trials_};
    if (state_ == CircuitState::open) status.open_for = open_until_ - now;
    return status;
}

}  // namespace tinkxx::service
