#pragma once

#include "text/jinja/values/arena.hpp"
#include "text/jinja/values/value.hpp"

#include <string>
#include <string_view>

namespace tinkxx::text::jinja {

/// The value of a JSON text, as Python's `json.loads`: order and the last of equal keys are kept,
/// numbers are integers or floats, NaN and Infinity are let through. Texts without escapes are not
/// copied, so `json` has to live as long as the value. Throws `Failure` of kind `input`; its
/// message begins with `what`, the name of the input.
[[nodiscard]] Value read_json(Arena& arena, std::string_view json, std::string_view what);

/// The parameters of `tojson`.
struct JsonStyle {
    bool ascii{false};
    bool sorted{false};
    bool indents{false};
    std::string indent{};
    std::string item_separator{", "};
    std::string key_separator{": "};
};

/// Python's `json.dumps`.
void write_json(std::string& to, Value const& value, JsonStyle const& style);

}  // namespace tinkxx::text::jinja
