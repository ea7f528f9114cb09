#pragma once

#include "text/jinja/program/machine.hpp"
#include "text/jinja/values/call.hpp"
#include "text/jinja/values/names.hpp"
#include "text/jinja/values/value.hpp"

#include <string_view>
#include <vector>

namespace tinkxx::text::jinja {

/// Whether the type has a method of that name that a template may call.
[[nodiscard]] bool has_method(Value const& owner, Attribute name) noexcept;
/// Whether the type has a method of that name that the sandbox refuses, since it would change a
/// value.
[[nodiscard]] bool is_unsafe(Value const& owner, Attribute name) noexcept;
/// Either of them.
[[nodiscard]] inline bool is_attribute(Value const& owner, Attribute name) noexcept {
    return has_method(owner, name) || is_unsafe(owner, name);
}
/// What is no method, e.g. `range.start`; missing if there is none.
[[nodiscard]] Value data_attribute(Machine& machine, Value const& owner, Attribute name);

/// The owner has to have the method.
[[nodiscard]] Value call_method(Machine& machine, Value const& owner, Attribute method,
                                std::string_view name, Arguments const& arguments);
[[nodiscard]] Value call_text_method(Machine& machine, Value const& owner, Attribute method,
                                     std::string_view name, Arguments const& arguments);

[[nodiscard]] Value call_function(Machine& machine, Function function, Arguments const& arguments);

/// Python's `str.strip`, `lstrip` and `rstrip`: of white space, or of the characters that are
/// given.
[[nodiscard]] std::string_view strip_text(std::string_view text, Value const& characters, bool left,
                                          bool right);
/// Python's `str.splitlines`.
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
/// Python's `str.replace`; all if `count` is negative.
[[nodiscard]] Value replace_text(Machine& machine, std::string_view text, std::string_view before,
                                 std::string_view after, std::int64_t count);
/// Python's `str.center`.
[[nodiscard]] Value center_text(Machine& machine, std::string_view text, std::int64_t width,
                                std::string_view fill);

}  // namespace tinkxx::text::jinja
