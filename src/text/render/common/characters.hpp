#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Text as Python's `str` treats it, since that is where the formats of models are defined. Texts
/// in here may be broken: they come from users and from models.
namespace tinkxx::text::render {

/// A character and how many bytes it takes; a byte that starts none is one of its own, U+FFFD.
struct Decoded {
    char32_t code{0};
    std::size_t size{0};
};
/// The character at `at`, which must be within the text. Surrogates are taken as characters, since
/// JSON may hold single ones.
[[nodiscard]] Decoded decode_at(std::string_view text, std::size_t at) noexcept;
/// The character that ends before `end`, which must be above 0.
[[nodiscard]] Decoded decode_before(std::string_view text, std::size_t end) noexcept;
[[nodiscard]] std::string_view strip_left(std::string_view text) noexcept;
[[nodiscard]] std::string_view strip_right(std::string_view text) noexcept;
[[nodiscard]] std::string_view strip(std::string_view text) noexcept;
/// As above, for one character instead of white space.
[[nodiscard]] std::string_view strip_left(std::string_view text, char c) noexcept;
[[nodiscard]] std::string_view strip(std::string_view text, char c) noexcept;

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) noexcept {
    return text.find(part) != std::string_view::npos;
}
/// How often a part occurs, without overlaps.
[[nodiscard]] std::size_t count(std::string_view text, std::string_view part) noexcept;

}  // namespace tinkxx::text::render
