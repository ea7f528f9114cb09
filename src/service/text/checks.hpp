#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/transport.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// A field of a public struct cannot be as it is: `FIELD RULE, got "VALUE"`.
[[nodiscard]] ErrorDetails invalid_field(std::string_view field, std::string value,
                                         std::string rule);
/// Whether it can stand in a line of a header.
[[nodiscard]] bool is_field_value(std::string_view text) noexcept;

/// Why these cannot be used, or nothing.
[[nodiscard]] std::optional<ErrorDetails> check_timeouts(Timeouts const& timeouts);
[[nodiscard]] std::optional<ErrorDetails> check_retries(int max_retries);
[[nodiscard]] std::optional<ErrorDetails> check_headers(Headers const& headers,
                                                        std::string_view field);

}  // namespace tinkxx::service
