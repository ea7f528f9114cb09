#pragma once

#include "text/jinja/values/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::text::jinja {

/// Decimal digits with an optional sign: an integer, or a big one, whose digits are kept.
[[nodiscard]] Value parse_integer(Arena& arena, std::string_view digits);
/// As above, or with a prefix such as `0x`. Throws for a big one with a prefix.
[[nodiscard]] Value parse_integer_literal(Arena& arena, std::string_view digits);
/// As JSON and Jinja write it, e.g. "1.5e3".
[[nodiscard]] std::optional<double> parse_real(std::string_view text);

/// Python's `int(text, base)`: white space, sign, prefix and underscores; none if it is no number.
[[nodiscard]] std::optional<Value> python_integer(Arena& arena, std::string_view text, int base);
/// Python's `float(text)`.
[[nodiscard]] std::optional<double> python_real(std::string_view text);

}  // namespace tinkxx::text::jinja
