#pragma once

#include <tinkxx/text/tokenizer.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// One thing that is done to the tokens of a text in the end.
struct PostStep {
    enum class Kind : std::uint8_t {
        trim,      ///< ranges lose the white space at their ends
        surround,  ///< tokens are put around the text
    };
    Kind kind{Kind::surround};
    /// Trim: one space before the first token was added, and has no range to lose.
    bool add_prefix_space{};
    /// Surround: the tokens before, between and behind copies of the text; as a rule two lists.
    std::vector<std::vector<Token>> around{};
};

using PostSteps = std::vector<PostStep>;

/// How many characters of white space a token begins and ends with, spelled as in the vocabulary.
struct OuterSpace {
    std::size_t leading{};
    std::size_t trailing{};
};
[[nodiscard]] OuterSpace outer_space(std::string_view token);

/// Moves a range's ends inwards, counting in characters of the text.
void trim_range(TextRange& range, std::string_view text, OuterSpace outer, bool first,
                bool add_prefix_space);

}  // namespace tinkxx::text
