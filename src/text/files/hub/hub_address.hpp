#pragma once

#include <string>
#include <string_view>

namespace tinkxx::text::files {

/// Scheme, host and port of `https://host[:port]/...` in lower case; empty for what is no such URL,
/// or has a user in it.
[[nodiscard]] std::string origin_of(std::string_view url);

/// Whether what is sent there can be read by nobody on the way: TLS, or this machine itself.
[[nodiscard]] bool is_private(std::string_view origin);

/// Where a `Location` of an answer from `url` leads; empty if it is not a URL.
[[nodiscard]] std::string redirected(std::string_view url, std::string_view location);

}  // namespace tinkxx::text::files
