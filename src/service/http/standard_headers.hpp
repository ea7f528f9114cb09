#pragma once

#include <tinkxx/transport.hpp>

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

/// Seconds in the shortest form: `60`, `0.25`.
[[nodiscard]] std::string seconds_text(std::chrono::milliseconds time);

}  // namespace tinkxx::service
