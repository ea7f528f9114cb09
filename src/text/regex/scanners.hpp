#pragma once

#include "text/regex/piece.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Patterns that are so common that they have code of their own.
enum class KnownPattern : std::uint8_t {
    gpt2,
    cl100k,  ///< as tiktoken has it
    llama3,  ///< cl100k as in a tokenizer.json
    qwen2,   ///< numbers digit by digit
    qwen35,  ///< marks belong to words
    o200k,
    kimi,               ///< o200k with Chinese apart
    mistral,            ///< o200k without contractions, numbers digit by digit
    deepseek,           ///< the last of three patterns, the others being trivial
    deepseek_sequence,  ///< all three
};

/// The pattern that a regular expression is, if it is known by its text.
[[nodiscard]] std::optional<KnownPattern> known_pattern(std::string_view regex) noexcept;
/// The same for several that are applied in turn.
[[nodiscard]] std::optional<KnownPattern> known_sequence(
    std::span<std::string_view const> regexes) noexcept;

/// How far a text has been cut.
struct ScanState {
    std::size_t at{};
    std::size_t part_end{};  ///< of a part that later patterns of a sequence may not leave
};

/// Cuts the next words off a text in valid UTF-8; what matches nothing is a word too. Fills `out`
/// and returns how much of it. 0: the end is reached.
[[nodiscard]] std::size_t scan(KnownPattern pattern, std::string_view text, ScanState& state,
                               std::span<Piece> out);

}  // namespace tinkxx::text
