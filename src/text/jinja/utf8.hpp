#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tinkxx::text::jinja {

// Texts in here are valid UTF-8: the template and the input are checked once, where they come in.

/// Where the first byte stands that is not part of valid UTF-8; npos if there is none.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text) noexcept;

[[nodiscard]] bool is_ascii(std::string_view text) noexcept;

[[nodiscard]] constexpr bool continues_character(char byte) noexcept {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// How many code points; Python's `len`.
[[nodiscard]] std::size_t count_characters(std::string_view text) noexcept;

/// The byte at which that character begins; the end of the text if it has fewer.
[[nodiscard]] std::size_t offset_of_character(std::string_view text, std::size_t index) noexcept;

/// The number of bytes of the character that begins with `first`.
[[nodiscard]] constexpr std::size_t character_size(char first) noexcept {
    auto const byte = static_cast<unsigned char>(first);
    if (byte < 0x80U) return 1;
    if (byte < 0xE0U) return 2;
    return byte < 0xF0U ? 3 : 4;
}

/// Takes the character at `at`, which is moved behind it.
[[nodiscard]] inline char32_t next_character(std::string_view text, std::size_t& at) noexcept {
    auto const byte = [&](std::size_t i) {
        return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
    };
    auto const first = byte(0);
    auto const size = character_size(text[at]);
    char32_t code = first;
    if (size == 2) code = ((first & 0x1FU) << 6U) | (byte(1) & 0x3FU);
    if (size == 3) code = ((first & 0x0FU) << 12U) | ((byte(1) & 0x3FU) << 6U) | (byte(2) & 0x3FU);
    if (size == 4) {
        code = ((first & 0x07U) << 18U) | ((byte(1) & 0x3FU) << 12U) | ((byte(2) & 0x3FU) << 6U) |
               (byte(3) & 0x3FU);
    }
    at += size;
    return code;
}

/// The byte at which the character before `at` begins; `at` must not be 0.
[[nodiscard]] inline std::size_t previous_character(std::string_view text,
                                                    std::size_t at) noexcept {
    do --at;
    while (at > 0 && continues_character(text[at]));
    return at;
}

void append_utf8(std::string& to, char32_t code);

}  // namespace tinkxx::text::jinja
