#include <tinkxx/recovery_policy.hpp>

namespace tinkxx {
namespace {

// Longer than any program runs, and short enough to be added to any time.
constexpr std::chrono::milliseconds longest = std::chrono::hours{24 * 365 * 10};

bool works(std::chrono::milliseconds time) noexcept { return time.count() > 0 && time <= longest; }

}  // namespace

RecoveryPolicy RecoveryPolicy::checked() const {
    RecoveryPolicy const defaults;
    auto made = *this;
    if (max_attempts <= 0) made.max_attempts = defaults.max_attempts;
    if (!works(backoff)) made.backoff = defaults.backoff;
    if (!works(max_backoff)) made.max_backoff = defaults.max_backoff;
    if (!works(poll_interval)) made.poll_interval = defaults.poll_interval;
    if (max_concurrent <= 0) made.max_concurrent = defaults.max_concurrent;
    auto const* specific = std::get_if<SpecificCheckpoint>(&checkpoint);
    if (specific != nullptr && specific->path.empty()) made.checkpoint = LatestCheckpoint{};
    return made;
}

}  // namespace tinkxx
