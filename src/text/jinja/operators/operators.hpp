#pragma once

#include "text/jinja/program/machine.hpp"
#include "text/jinja/values/value.hpp"

namespace tinkxx::text::jinja {

// Python's operators. They throw `Failure` where Python raises.

[[nodiscard]] Value add(Machine& machine, Value const& left, Value const& right);
[[nodiscard]] Value subtract(Value const& left, Value const& right);
[[nodiscard]] Value multiply(Machine& machine, Value const& left, Value const& right);
[[nodiscard]] Value divide(Value const& left, Value const& right);
[[nodiscard]] Value floor_divide(Value const& left, Value const& right);
/// Also formats, if the left one is a text.
[[nodiscard]] Value modulo(Machine& machine, Value const& left, Value const& right);
[[nodiscard]] Value power(Value const& left, Value const& right);
[[nodiscard]] Value negate(Value const& value);
[[nodiscard]] Value plus(Value const& value);

/// `value[start:stop:step]`; a bound that is left out is missing.
[[nodiscard]] Value slice(Machine& machine, Value const& value, Value const& start,
                          Value const& stop, Value const& step);
/// The character, element or number at an index, which may count from the end; missing if there is
/// none.
[[nodiscard]] Value element(Value const& sequence, std::int64_t index);

/// `&`, `<`, `>` and quotes as HTML writes them.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace tinkxx::text::jinja
