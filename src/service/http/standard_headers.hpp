#pragma once

#include <tinkxx/transport.hpp>

#include "service/http/credentials.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// Release of the official SDK whose behaviour this library follows; servers resolve flags by it.
inline constexpr std::string_view parity_version = "0.36.0";

/// The lines that every request of a client carries (R-WIRE-01, C-63): Accept, User-Agent and
/// the X-Stainless group. The credential is not among them.
[[nodiscard]] Headers standard_headers(std::string_view sdk_version);

/// `tinkxx/<version>`.
[[nodiscard]] std::string user_agent();

/// What an attempt adds to a client's lines: the read timeout unless it is zero, how many attempts
/// came before, and the credential unless it is null.
void add_attempt_lines(Headers& lines, std::chrono::milliseconds read_timeout, int retries,
                       Credential const& credential);

/// Seconds in the shortest form: `60`, `0.25`.
[[nodiscard]] std::string seconds_text(std::chrono::milliseconds time);

}  // namespace tinkxx::service
