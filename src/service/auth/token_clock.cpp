#include "service/auth/token_clock.hpp"

#include <algorithm>

namespace tinkxx::service {

namespace {

using std::chrono::nanoseconds;

// Longer waits are made of several: a machine may sleep, its time of day may be set.
constexpr std::chrono::hours longest_wait{1};

}  // namespace

nanoseconds TokenClock::on_token(std::optional<WallTime> expiry, WallTime now) noexcept {
    auto const before = came_;
    expiry_ = expiry;
    came_ = now;
    if (!expiry_) return pause;
    auto const wait = due_in(now);
    if (wait > nanoseconds::zero() || !before) return wait;
    // A server that gives out tokens that are nearly over must not be asked without end.
    auto const since = now - *before;
    return since < pause ? nanoseconds{pause} : wait;
}

nanoseconds TokenClock::due_in(WallTime now) const noexcept {
    if (!expiry_) return nanoseconds::zero();
    return std::clamp<nanoseconds>(*expiry_ - margin - now, nanoseconds::zero(), longest_wait);
}

bool TokenClock::fresh(WallTime now) const noexcept { return expiry_ && *expiry_ - now > least; }

}  // namespace tinkxx::service
