#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;
/// Parses `debug`, `info`, `warn`, `warning`, `error` or `off`; empty for any other word.
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view word) noexcept;

/// Receives one line without its newline. Called on the callback executor, or on the calling thread
/// before the executor exists. Must not throw. Lines contain no secrets.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// `text` made safe for a terminal: line breaks become spaces; other control characters, and bytes
/// that are not valid UTF-8, become `?`. Needed because lines quote text from servers, clients and
/// files.
[[nodiscard]] std::string one_line(std::string_view text);

/// Writes each line as `tinkxx: warning: …` to stderr. The default sink, for warnings and errors.
[[nodiscard]] LogSink stderr_log();
/// Discards every line.
[[nodiscard]] LogSink silent_log();

}  // namespace tinkxx
