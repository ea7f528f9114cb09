#pragma once

#include <tinkxx/transport.hpp>

#include <string>
#include <string_view>

namespace tinkxx {

/// Replaces secrets in logs, dumps and errors.
inline constexpr std::string_view redaction_marker = "<redacted>";

/// An API key in a form that may be shown: its first six and last four characters, or only stars if
/// it has fewer than 16.
[[nodiscard]] std::string redact_key(std::string_view key);

/// Whether the values of this header are secrets, ignoring case.
[[nodiscard]] bool is_secret_header(std::string_view name) noexcept;

/// A copy in which the values of secret headers are replaced by the marker.
[[nodiscard]] Headers redact(Headers const& headers);

/// The URL without user name and password.
[[nodiscard]] std::string redact_url(std::string_view url);

}  // namespace tinkxx
