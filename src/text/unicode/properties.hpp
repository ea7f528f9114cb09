#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Classes of characters as regular expressions know them; a character has several.
enum CharacterClass : std::uint8_t {
    letter = 1,   ///< \p{L}
    number = 2,   ///< \p{N}
    mark = 4,     ///< \p{M}
    upper = 8,    ///< \p{Lu}, \p{Lt}
    lower = 16,   ///< \p{Ll}
    symbol = 32,  ///< \p{P}, \p{S}
    space = 64,   ///< \s
    word = 128,   ///< \w
};

/// The classes of every character, one byte each up to U+1FFFF.
class ClassTable {
public:
    static constexpr char32_t direct = 0x20000;

    [[nodiscard]] static ClassTable const& get();

    [[nodiscard]] std::uint8_t operator[](char32_t c) const noexcept {
        return c < direct ? classes_[c] : search(c);
    }

private:
    ClassTable();
    [[nodiscard]] static std::uint8_t search(char32_t c) noexcept;

    std::vector<std::uint8_t> classes_;
};

[[nodiscard]] inline std::uint8_t classes_of(char32_t c) { return ClassTable::get()[c]; }
[[nodiscard]] inline bool is_space(char32_t c) { return (classes_of(c) & space) != 0; }
[[nodiscard]] inline bool is_word(char32_t c) { return (classes_of(c) & word) != 0; }

/// A digit or another number, for the pre-tokenizer `Digits`.
[[nodiscard]] bool is_numeric(char32_t c) noexcept;
/// Punctuation, for the pre-tokenizers `Punctuation` and `BertPreTokenizer`.
[[nodiscard]] bool is_punctuation(char32_t c) noexcept;
/// What `BertNormalizer` takes for control characters, white space included.
[[nodiscard]] bool is_control(char32_t c) noexcept;
/// What `BertNormalizer` takes for accents.
[[nodiscard]] bool is_accent(char32_t c) noexcept;
/// What `StripAccents` removes.
[[nodiscard]] bool is_combining_mark(char32_t c) noexcept;

/// The lower case of a character: one or two characters, 0 for none.
[[nodiscard]] std::array<char32_t, 2> to_lower(char32_t c) noexcept;

/// 0 for characters that do not combine with the one before.
[[nodiscard]] std::uint8_t combining_class(char32_t c) noexcept;
/// What a character is made of, in canonical order; empty for characters that are not composed, and
/// for Hangul syllables.
[[nodiscard]] std::span<char32_t const> decomposition(char32_t c, bool compatible) noexcept;
/// The character that two make together; 0 if there is none.
[[nodiscard]] char32_t compose(char32_t first, char32_t second) noexcept;

/// A number for the script of a character, the same for all of East Asia's.
[[nodiscard]] int script_of(char32_t c) noexcept;
/// The number of characters that any script uses.
inline constexpr int any_script = 0;

/// Where the cluster ends that a text in valid UTF-8 begins with: what a reader takes for one
/// character. The text is not empty.
[[nodiscard]] std::size_t cluster_length(std::string_view text) noexcept;

/// What a character means for normal form C.
enum class NfcKind : std::uint8_t {
    inert,      ///< stays, whatever is beside it
    combining,  ///< stays if the order of the marks is right
    unsure,     ///< changes, or may be joined with the one before
};

/// The kinds of all characters below a limit.
[[nodiscard]] std::vector<NfcKind> nfc_kinds(char32_t limit);

}  // namespace tinkxx::text
