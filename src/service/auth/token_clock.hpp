#pragma once

#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <optional>

namespace tinkxx::service {

/// Decides when a token is exchanged anew (R-AUTH-12, R-AUTH-13). Reads no clock; expiry is a
/// matter of the time of day.
class TokenClock {
public:
    /// So long before its end a token is renewed in the background.
    static constexpr std::chrono::seconds margin{300};
    /// With no more than this left it is renewed before it is used.
    static constexpr std::chrono::seconds least{60};
    /// After a failure, and for a token whose end cannot be read.
    static constexpr std::chrono::seconds pause{60};

    /// A token came. Gives the wait until it is to be renewed.
    [[nodiscard]] std::chrono::nanoseconds on_token(std::optional<WallTime> expiry,
                                                    WallTime now) noexcept;
    /// The background renewal failed. Gives the wait until the next.
    [[nodiscard]] std::chrono::nanoseconds on_failure() const noexcept { return pause; }
    /// The wait is over: what is left of it. Waits are cut, and the time of day may have jumped.
    [[nodiscard]] std::chrono::nanoseconds due_in(WallTime now) const noexcept;
    /// Whether the token can be used as it is.
    [[nodiscard]] bool fresh(WallTime now) const noexcept;

private:
    std::optional<WallTime> expiry_{};
    std::optional<WallTime> came_{};
};

}  // namespace tinkxx::service
