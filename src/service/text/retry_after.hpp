#pragma once

#include <tinkxx/transport.hpp>

#include <chrono>
#include <optional>

namespace tinkxx::service {

/// The longest wait that a server can ask for (R-RETRY-71).
inline constexpr std::chrono::seconds longest_retry_after{60};

/// How long the headers of an answer ask to wait: `retry-after-ms`, else `retry-after` as
/// seconds, else as a date. A value that is no number or not above zero is skipped and the next
/// form is read. One above `longest` means `longest`: who asks for an hour must not be asked again
/// at once.
[[nodiscard]] std::optional<std::chrono::nanoseconds> retry_after(
    Headers const& headers, WallTime now, std::chrono::nanoseconds longest) noexcept;

}  // namespace tinkxx::service
