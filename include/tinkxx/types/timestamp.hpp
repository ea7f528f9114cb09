#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx {

/// A point in time as the service writes it, to the microsecond.
struct Timestamp {
    using Time = std::chrono::sys_time<std::chrono::microseconds>;

    /// In UTC. Without an offset: the time of day as it was written.
    Time time{};
    /// East of UTC, as it was written. Empty: the text had no offset.
    std::optional<std::chrono::minutes> offset{std::chrono::minutes{0}};

    bool operator==(Timestamp const&) const = default;
};

/// ISO 8601 with the offset that the time has: `2026-01-02T03:04:05.678901Z`,
/// `2026-01-02T03:04:05+05:30`, or without any. Fractions are written if there are some.
[[nodiscard]] std::string to_string(Timestamp const& time);

/// The time in an ISO 8601 text: a date alone or with a time of day, after a `T` or a blank, with
/// fractions of a second and an offset where there are some. A number is taken as seconds since
/// 1970, a large one as milliseconds. Empty for any other text.
[[nodiscard]] std::optional<Timestamp> parse_timestamp(std::string_view text) noexcept;

}  // namespace tinkxx
