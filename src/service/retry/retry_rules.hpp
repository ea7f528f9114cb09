#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/retry_config.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace tinkxx::service {

/// The wait before repetition `k` = 0, 1, 2 … (R-RETRY-30); `chance` is a draw from [0, 1).
[[nodiscard]] inline std::chrono::nanoseconds retry_delay(RetryConfig const& config, std::int64_t k,
                                                          double chance) noexcept {
    using Seconds = std::chrono::duration<double>;
    auto const base = Seconds{config.retry_delay_base}.count();
    auto const most = Seconds{config.retry_delay_max}.count();
    // Beyond the largest exponent of a double the product is infinite, and the limit applies.
    auto const grown = std::ldexp(base, static_cast<int>(std::min<std::int64_t>(k, 5000)));
    auto const plain = std::isfinite(grown) ? std::min(grown, most) : most;
    auto const jittered = plain + plain * config.jitter_factor * (2 * chance - 1);
    return std::chrono::ceil<std::chrono::nanoseconds>(Seconds{std::clamp(jittered, 0.0, most)});
}

/// Whether errors of this kind are never repeated, whatever the settings say.
[[nodiscard]] constexpr bool never_repeated(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::validation:
        case ErrorKind::request_failed:
        case ErrorKind::cancelled:
        case ErrorKind::queue_full:
        case ErrorKind::closed:
        case ErrorKind::usage:
        case ErrorKind::callback:
            return true;
        default:
            return false;
    }
}

}  // namespace tinkxx::service
