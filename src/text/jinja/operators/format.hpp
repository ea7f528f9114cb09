#pragma once

#include "text/jinja/program/machine.hpp"
#include "text/jinja/values/call.hpp"
#include "text/jinja/values/value.hpp"

#include <string>
#include <string_view>

namespace tinkxx::text::jinja {

/// Python's `left % right` of a text.
[[nodiscard]] Value format_percent(Machine& machine, Value const& left, Value const& right);
/// Python's `text.format(…)` and, with a mapping, `text.format_map(mapping)`.
[[nodiscard]] Value format_braces(Machine& machine, Value const& text, Arguments const& arguments);
[[nodiscard]] Value format_braces(Machine& machine, Value const& text, Value const& mapping);

/// How a value is shown: Python's format specification.
struct FormatSpec {
    std::string_view fill{" "};
    char align{0};  ///< `<`, `>`, `^` or `=`; 0: as the type has it
    char sign{'-'};
    bool alternate{false};
    char grouping{0};
    std::int64_t width{0};
    std::int64_t precision{-1};
    char type{0};
};

/// A number of digits after the point and so on, as C's `printf` with that conversion.
[[nodiscard]] std::string show_real(double number, char conversion, std::int64_t precision,
                                    bool alternate);
[[nodiscard]] std::string format_value(Value const& value, std::string_view spec);

}  // namespace tinkxx::text::jinja
