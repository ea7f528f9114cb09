#pragma once

#include <tinkxx/scheduler.hpp>

#include <optional>
#include <string_view>

namespace tinkxx::service {

/// Reads a date in any of the three forms of RFC 9110 §5.6.7; also with a numeric zone or none
/// (meaning UTC), as some servers send. The name of the weekday is not checked.
///
/// `now` settles the century of a two-digit year: never more than 50 years ahead.
[[nodiscard]] std::optional<WallTime> parse_http_date(std::string_view text, WallTime now) noexcept;

}  // namespace tinkxx::service
