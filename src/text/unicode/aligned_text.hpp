#pragma once

#include <tinkxx/text/tokenizer.hpp>

#include "text/errors/growth.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// One character of a changed text, and what it stands for.
struct Change {
    char32_t character{};
    /// 0: replaces the next character. 1: is inserted; belongs to the character before it.
    /// -n: replaces the next character and the n after it.
    int kind{0};
};

/// A text, and for each byte of it the range of the original text that it comes from.
///
/// The ranges are kept only if somebody asks for offsets. How they follow a change is part of what
/// a `tokenizer.json` means: offsets have to be those of Hugging Face's `tokenizers`.
///
/// Changes throw `ValidationError` once the text is much longer than what was assigned.
class AlignedText {
public:
    AlignedText() = default;

    /// Starts anew with a text that lies at `shift` of the original one.
    void assign(std::string_view text, std::size_t shift, bool tracked);
    void clear() noexcept;

    [[nodiscard]] std::string_view text() const noexcept { return text_; }
    [[nodiscard]] bool tracked() const noexcept { return tracked_; }
    [[nodiscard]] std::span<TextRange const> ranges() const noexcept { return ranges_; }

    /// Replaces the whole text, whose first `removed` characters have no successor.
    void transform(std::span<Change const> changes, std::size_t removed = 0);
    /// Inserts a text before the first character, if there is one.
    void prepend(std::string_view text);
    /// Replaces each of these ranges, which ascend, by `content`.
    void replace(std::span<TextRange const> matches, std::string_view content);
    /// Writes all bytes as the characters that stand for them in a byte-level vocabulary.
    void map_bytes();

    /// Adds a part of another text at the end.
    void append(AlignedText const& other, std::size_t begin, std::size_t end);

private:
    void check_size(std::size_t size) const;

    std::string text_;
    std::vector<TextRange> ranges_;
    bool tracked_{false};
    std::size_t limit_{longest_result(0)};
};

/// The range of the original text that a range of the changed one stands for.
[[nodiscard]] TextRange original_range(AlignedText const& text, std::size_t begin, std::size_t end);

/// The character that stands for a byte in a byte-level vocabulary.
[[nodiscard]] char32_t character_of_byte(unsigned char byte) noexcept;
/// The byte for which a character stands; -1 if for none.
[[nodiscard]] int byte_of_character(char32_t c) noexcept;

}  // namespace tinkxx::text
