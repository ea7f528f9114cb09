#pragma once

#include <chrono>

namespace tinkxx::service {

/// The numbers of a recovery policy (R-EXT-40).
struct RecoveryRules {
    int max_attempts{3};
    std::chrono::milliseconds backoff{std::chrono::seconds{5}};
    std::chrono::milliseconds max_backoff{std::chrono::seconds{60}};
    std::chrono::milliseconds poll_interval{std::chrono::seconds{30}};
    int max_concurrent{1};

    /// With the default in place of each that cannot work.
    [[nodiscard]] RecoveryRules checked() const noexcept;
    /// How long to wait after an attempt that failed, 1 being the first: twice as long each time.
    [[nodiscard]] std::chrono::milliseconds delay_after(int attempt) const noexcept;

    bool operator==(RecoveryRules const&) const = default;
};

}  // namespace tinkxx::service
