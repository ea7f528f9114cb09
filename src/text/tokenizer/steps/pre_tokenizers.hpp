#pragma once

#include "text/regex/pattern.hpp"
#include "text/regex/piece.hpp"
#include "text/regex/scanners.hpp"
#include "text/unicode/aligned_text.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::text {

/// A text while it is cut. Empty pieces are left out.
struct PreTokenized {
    AlignedText text{};
    std::vector<Piece> pieces{};
    std::size_t shift{};  ///< where the text was cut out of the original one

    /// Whether a piece is the beginning of the original text.
    [[nodiscard]] bool is_start(Piece const& piece) const noexcept;
};

/// Cuts the pieces of a text into smaller ones. Any thread.
class PreTokenizer {
public:
    PreTokenizer() = default;
    PreTokenizer(PreTokenizer const&) = delete;
    PreTokenizer& operator=(PreTokenizer const&) = delete;
    virtual ~PreTokenizer() = default;

    virtual void apply(PreTokenized& state) const = 0;
};

using PreTokenizers = std::vector<std::unique_ptr<PreTokenizer const>>;

/// What becomes of the delimiters between the parts.
enum class SplitBehavior : std::uint8_t {
    removed,
    isolated,
    merged_with_previous,
    merged_with_next,
    contiguous,
};

/// Cuts at the matches of a pattern.
class SplitPreTokenizer final : public PreTokenizer {
public:
    SplitPreTokenizer(Pattern pattern, SplitBehavior behavior, bool invert)
        : pattern_{std::move(pattern)}, behavior_{behavior}, invert_{invert} {}
    void apply(PreTokenized& state) const override;

private:
    Pattern pattern_;
    SplitBehavior behavior_;
    bool invert_;
};

/// Cuts where a pattern that is known does.
class KnownPreTokenizer final : public PreTokenizer {
public:
    explicit KnownPreTokenizer(KnownPattern pattern) : pattern_{pattern} {}
    void apply(PreTokenized& state) const override;
    [[nodiscard]] KnownPattern pattern() const noexcept { return pattern_; }

private:
    KnownPattern pattern_;
};

/// Cuts at each character of a kind.
class CharacterPreTokenizer final : public PreTokenizer {
public:
    using Predicate = bool (*)(char32_t, char32_t);

    /// `predicate` is given a character and `parameter`.
    CharacterPreTokenizer(Predicate predicate, char32_t parameter, SplitBehavior behavior)
        : predicate_{predicate}, parameter_{parameter}, behavior_{behavior} {}
    void apply(PreTokenized& state) const override;

private:
    Predicate predicate_;
    char32_t parameter_;
    SplitBehavior behavior_;
};

/// Puts a space before each piece that has none.
class PrefixSpacePreTokenizer final : public PreTokenizer {
public:
    void apply(PreTokenized& state) const override;
};

/// Writes each byte as the character that stands for it.
class MapBytesPreTokenizer final : public PreTokenizer {
public:
    void apply(PreTokenized& state) const override;
};

enum class PrependScheme : std::uint8_t { first, never, always };

/// Writes spaces as another character, and cuts before each of them.
class MetaspacePreTokenizer final : public PreTokenizer {
public:
    MetaspacePreTokenizer(std::string replacement, PrependScheme scheme, bool split)
        : replacement_{std::move(replacement)}, scheme_{scheme}, split_{split} {}
    void apply(PreTokenized& state) const override;

private:
    std::string replacement_;
    PrependScheme scheme_;
    bool split_;
};

/// Words, and what stands between them and is no space: `\w+|[^\w\s]+`.
class WhitespacePreTokenizer final : public PreTokenizer {
public:
    void apply(PreTokenized& state) const override;
};

/// Pieces of so many characters.
class FixedLengthPreTokenizer final : public PreTokenizer {
public:
    explicit FixedLengthPreTokenizer(std::size_t length) : length_{length} {}
    void apply(PreTokenized& state) const override;

private:
    std::size_t length_;
};

/// Cuts where the script changes.
class UnicodeScriptsPreTokenizer final : public PreTokenizer {
public:
    void apply(PreTokenized& state) const override;
};

}  // namespace tinkxx::text
