#pragma once

#include <tinkxx/types/timestamp.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::cli {

/// In steps of 1024: "512 B", "1.5 KB", up to PB; "N/A" if it is not known.
[[nodiscard]] std::string size_words(std::optional<std::int64_t> bytes);
/// Seen from `now`: "just now", "5 minutes ago", "in 3 days", "2026-01-02".
[[nodiscard]] std::string time_words(Timestamp const& time, Timestamp::Time now);
/// As above; "Never" if there is none.
[[nodiscard]] std::string expiry_words(std::optional<Timestamp> const& time, Timestamp::Time now);
[[nodiscard]] std::string yes_or_no(bool yes);
/// "1 checkpoint", "3 checkpoints".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view what);
/// With two decimals.
[[nodiscard]] std::string fixed(double number, int decimals);

}  // namespace tinkxx::cli
