#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::text {

/// The replacement character, U+FFFD.
inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// How many bytes the character has that begins with `lead`, in valid UTF-8.
[[nodiscard]] constexpr std::size_t utf8_length(unsigned char lead) noexcept {
    if (lead < 0x80) return 1;
    if (lead < 0xe0) return 2;
    return lead < 0xf0 ? 3 : 4;
}

[[nodiscard]] constexpr std::size_t utf8_length_of(char32_t c) noexcept {
    if (c < 0x80) return 1;
    if (c < 0x800) return 2;
    return c < 0x10000 ? 3 : 4;
}

/// The character at `p`, in valid UTF-8; `p` goes behind it.
[[nodiscard]] inline char32_t next_character(char const*& p) noexcept {
    auto const at = [&p](int i) { return static_cast<unsigned char>(p[i]); };
    char32_t const lead = at(0);
    if (lead < 0x80) {
        p += 1;
        return lead;
    }
    if (lead < 0xe0) {
        auto const c = (lead & 0x1fU) << 6U | (at(1) & 0x3fU);
        p += 2;
        return c;
    }
    if (lead < 0xf0) {
        auto const c = (lead & 0xfU) << 12U | (at(1) & 0x3fU) << 6U | (at(2) & 0x3fU);
        p += 3;
        return c;
    }
    auto const c =
        (lead & 7U) << 18U | (at(1) & 0x3fU) << 12U | (at(2) & 0x3fU) << 6U | (at(3) & 0x3fU);
    p += 4;
    return c;
}

/// The character that ends before `p`, in valid UTF-8 that begins before it.
[[nodiscard]] inline char32_t character_before(char const* p) noexcept {
    do --p;
    while ((static_cast<unsigned char>(*p) & 0xc0) == 0x80);
    return next_character(p);
}

/// Whether a byte of valid UTF-8 is within a character, not its first.
[[nodiscard]] constexpr bool continues_character(char byte) noexcept {
    return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

/// The number of bytes of the character that begins with `first`, in valid UTF-8.
[[nodiscard]] constexpr std::size_t character_size(char first) noexcept {
    return utf8_length(static_cast<unsigned char>(first));
}

/// The character at `at`, in valid UTF-8; `at` goes behind it.
[[nodiscard]] inline char32_t next_character(std::string_view text, std::size_t& at) noexcept {
    char const* p = text.data() + at;
    auto const code = next_character(p);
    at = static_cast<std::size_t>(p - text.data());
    return code;
}

/// Where the character begins that ends before `at`, which must not be 0; in valid UTF-8.
[[nodiscard]] inline std::size_t previous_character(std::string_view text,
                                                    std::size_t at) noexcept {
    do --at;
    while (at > 0 && continues_character(text[at]));
    return at;
}

[[nodiscard]] bool is_ascii(std::string_view text) noexcept;

/// How many characters valid UTF-8 has; Python's `len`.
[[nodiscard]] std::size_t count_characters(std::string_view text) noexcept;

/// Where that character begins, in valid UTF-8; the end of the text if it has fewer.
[[nodiscard]] std::size_t offset_of_character(std::string_view text, std::size_t index) noexcept;

inline void append_utf8(std::string& text, char32_t c) {
    auto const put = [&text](char32_t byte) { text += static_cast<char>(byte); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xc0 | c >> 6U);
        put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        put(0xe0 | c >> 12U);
        put(0x80 | (c >> 6U & 0x3f));
        put(0x80 | (c & 0x3f));
    } else {
        put(0xf0 | c >> 18U);
        put(0x80 | (c >> 12U & 0x3f));
        put(0x80 | (c >> 6U & 0x3f));
        put(0x80 | (c & 0x3f));
    }
}

/// Where the first byte is that belongs to no character; the size of the text if it is UTF-8.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text) noexcept;

/// What begins a text, as a decoder of UTF-8 sees it.
struct Utf8Step {
    std::size_t length{};  ///< bytes that belong together
    enum class Kind : std::uint8_t { character, broken, cut } kind{};  ///< cut: more may follow
};

/// Looks at the beginning of a text that is not empty. Broken sequences are as long as Unicode
/// recommends (the maximal part of a character), so that each counts as one U+FFFD.
[[nodiscard]] Utf8Step utf8_step(std::string_view text) noexcept;

}  // namespace tinkxx::text
