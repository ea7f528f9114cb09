#pragma once

#include <tinkxx/transport.hpp>

#include <chrono>
#include <optional>

namespace tinkxx::service {

/// Waits that a server may ask for in an HTTP retry (R-RETRY-71).
inline constexpr std::chrono::seconds longest_retry_after{60};

/// How long the headers of an answer ask to wait: `retry-after-ms`, else `retry-after` as
/// seconds, else as a date. A value that is no number, not above zero, or above `longest` is
/// skipped and the next form is read.
[[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after(
    Headers const& headers, WallTime now, std::chrono::nanoseconds longest) noexcept;

}  // namespace tinkxx::service
