#pragma once

#include "text/regex/piece.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Who wrote a regular expression, for whose engine.
enum class Dialect : std::uint8_t {
    ruby,  ///< a tokenizer.json: Oniguruma
    rust,  ///< tiktoken
};

/// A regular expression, compiled. Any thread.
class Pattern {
public:
    /// Throws `ValidationError` that names `field` if it cannot be compiled.
    Pattern(std::string_view regex, Dialect dialect, std::string const& field);
    /// Matches this text and nothing else; an empty one matches nowhere.
    [[nodiscard]] static Pattern literal(std::string_view text);
    Pattern(Pattern&&) noexcept;
    Pattern& operator=(Pattern&&) noexcept;
    ~Pattern();

    /// Adds all matches in valid UTF-8, from left to right. Throws `ValidationError` if the pattern
    /// takes too long for this text.
    void find_all(std::string_view text, std::vector<Piece>& matches) const;

private:
    struct Code;
    Pattern();

    std::string literal_;
    std::unique_ptr<Code> code_;
    std::string field_;
};

/// The same expression as PCRE2 writes it.
[[nodiscard]] std::string translated(std::string_view regex, Dialect dialect);

}  // namespace tinkxx::text
