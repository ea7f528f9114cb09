#pragma once

#include <tinkxx/transport.hpp>

#include <string>
#include <string_view>

namespace tinkxx {

/// Stands in place of a secret in logs, dumps and errors.
inline constexpr std::string_view redaction_marker = "<redacted>";

/// An API key as it may be shown: its first six and last four characters, or only stars if it
/// has fewer than 16.
[[nodiscard]] std::string redact_key(std::string_view key);

/// Whether the values of this header are secrets, whatever its case.
[[nodiscard]] bool is_secret_header(std::string_view name) noexcept;

/// The same lines with the values of secret headers replaced by the marker.
[[nodiscard]] Headers redact(Headers const& headers);

/// The same URL without user name and password.
[[nodiscard]] std::string redact_url(std::string_view url);

}  // namespace tinkxx
