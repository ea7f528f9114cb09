#pragma once

#include "text/jinja/values/value.hpp"

#include <string>
#include <string_view>

namespace tinkxx::text::jinja {

/// Python's `str(value)`, behind what `to` holds already.
void append_text(std::string& to, Value const& value);
/// Python's `repr(value)`; `depth` is how many containers were entered so far.
void append_repr(std::string& to, Value const& value, int depth = 0);
[[nodiscard]] std::string text_of(Value const& value);
[[nodiscard]] std::string repr_of(Value const& value);
/// Python's `ascii(value)`.
[[nodiscard]] std::string ascii_of(Value const& value);

/// Throws what Python raises when an undefined value is used.
[[noreturn]] void fail_undefined(Value const& value);

void append_integer(std::string& to, std::int64_t number);
/// Python's `repr` of a float, e.g. "1.0", "1e-05", "inf".
void append_real(std::string& to, double number);

}  // namespace tinkxx::text::jinja
