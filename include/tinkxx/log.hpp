#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;
/// Reads `debug`, `info`, `warn`, `warning`, `error`, `off`; empty for any other word.
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view word) noexcept;

/// Receives one line without its newline. Called on the callback executor, or on the calling
/// thread before there is one; must not throw. Lines hold no secrets.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// `text` as it can be shown: line breaks become spaces; other control characters, and bytes that
/// are not UTF-8, become `?`. Lines quote what servers, clients and files say, and none of them may
/// write to a terminal as it likes.
[[nodiscard]] std::string one_line(std::string_view text);

/// Writes `tinkxx: warning: …` to stderr, one line each. What is used when no sink is given,
/// for warnings and errors.
[[nodiscard]] LogSink stderr_log();
/// Drops everything: the explicit choice of silence.
[[nodiscard]] LogSink silent_log();

}  // namespace tinkxx
