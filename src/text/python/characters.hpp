#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::text::python {

// What Python's str methods know of single characters.

[[nodiscard]] bool is_printable(char32_t code) noexcept;
[[nodiscard]] bool is_alpha(char32_t code) noexcept;
[[nodiscard]] bool is_decimal(char32_t code) noexcept;
[[nodiscard]] bool is_digit(char32_t code) noexcept;
[[nodiscard]] bool is_numeric(char32_t code) noexcept;
[[nodiscard]] inline bool is_alphanumeric(char32_t code) noexcept {
    return is_alpha(code) || is_numeric(code);
}
/// `\w` of a regular expression.
[[nodiscard]] inline bool is_word(char32_t code) noexcept {
    return code == U'_' || is_alphanumeric(code);
}
[[nodiscard]] bool is_upper(char32_t code) noexcept;
[[nodiscard]] bool is_lower(char32_t code) noexcept;
/// Such as U+01C5, one letter that looks like two.
[[nodiscard]] bool is_title(char32_t code) noexcept;
[[nodiscard]] bool is_space(char32_t code) noexcept;
[[nodiscard]] bool starts_identifier(char32_t code) noexcept;
[[nodiscard]] bool continues_identifier(char32_t code) noexcept;
[[nodiscard]] inline bool is_cased(char32_t code) noexcept {
    return is_upper(code) || is_lower(code) || is_title(code);
}
/// What `str.splitlines` cuts at.
[[nodiscard]] bool is_line_end(char32_t code) noexcept;
/// The value of a decimal digit of any script; `code` must be one.
[[nodiscard]] int decimal_value(char32_t code) noexcept;

enum class Casing : std::uint8_t { upper, lower, title, fold };
/// Appends the character in another case; may be several characters.
void append_cased(std::string& to, char32_t code, Casing casing);

/// Python's methods of these names.
[[nodiscard]] std::string upper_text(std::string_view text);
[[nodiscard]] std::string lower_text(std::string_view text);
[[nodiscard]] std::string fold_text(std::string_view text);
[[nodiscard]] std::string title_text(std::string_view text);
[[nodiscard]] std::string capitalize_text(std::string_view text);
[[nodiscard]] std::string swap_case(std::string_view text);

}  // namespace tinkxx::text::python
