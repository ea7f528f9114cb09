#pragma once

#include <tinkxx/scheduler.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::local {

/// `2026-01-02T03:04:05.678901Z`; the fraction is left out if it is zero.
[[nodiscard]] std::string iso_time(WallTime time);
/// The time that such a text names, with `Z` or an offset; none if it is no such text, or one
/// outside of the years 1700 to 2200.
[[nodiscard]] std::optional<WallTime> parse_time(std::string_view text);
/// `Wed, 27 May 2026 20:00:00 GMT`.
[[nodiscard]] std::string http_date(WallTime time);
/// Microseconds since 1970, as times are kept.
[[nodiscard]] std::int64_t to_micros(WallTime time);
[[nodiscard]] WallTime from_micros(std::int64_t micros);

}  // namespace tinkxx::local
