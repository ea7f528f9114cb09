#include "service/recovery/recovery_rules.hpp"

#include <algorithm>

namespace tinkxx::service {
namespace {

// Longer than any program runs, and short enough to be added to any time.
constexpr std::chrono::milliseconds longest = std::chrono::hours{24 * 365 * 10};

bool works(std::chrono::milliseconds time) noexcept { return time.count() > 0 && time <= longest; }

}  // namespace

RecoveryRules RecoveryRules::checked() const noexcept {
    RecoveryRules rules;
    if (max_attempts > 0) rules.max_attempts = max_attempts;
    if (works(backoff)) rules.backoff = backoff;
    if (works(max_backoff)) rules.max_backoff = max_backoff;
    if (works(poll_interval)) rules.poll_interval = poll_interval;
    if (max_concurrent > 0) rules.max_concurrent = max_concurrent;
    return rules;
}

std::chrono::milliseconds RecoveryRules::delay_after(int attempt) const noexcept {
    auto delay = std::min(backoff, max_backoff);
    for (int i = 1; i < attempt && delay < max_backoff; ++i) {
        delay = std::min(delay * 2, max_backoff);
    }
    return delay;
}

}  // namespace tinkxx::service
