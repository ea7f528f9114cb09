#include "text/tokenizer/steps/post_processor.hpp"

#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>

namespace tinkxx::text {
namespace {

/// How byte-level vocabularies spell a space.
constexpr char32_t byte_level_space = 0x120;

bool is_outer_space(char32_t c) { return c == byte_level_space || is_space(c); }

}  // namespace

OuterSpace outer_space(std::string_view token) {
    OuterSpace outer;
    char const* p = token.data();
    char const* const end = p + token.size();
    while (p < end && is_outer_space(next_character(p))) ++outer.leading;
    for (p = end; p > token.data(); ++outer.trailing) {
        auto const c = character_before(p);
        if (!is_outer_space(c)) break;
        p -= utf8_length_of(c);
    }
    return outer;
}

void trim_range(TextRange& range, std::string_view text, OuterSpace outer, bool first,
                bool add_prefix_space) {
    auto leading = outer.leading;
    if ((first || range.begin == 0) && add_prefix_space && leading == 1) leading = 0;
    for (; leading > 0 && range.begin < range.end; --leading) {
        range.begin += utf8_length(static_cast<unsigned char>(text[range.begin]));
    }
    range.begin = std::min(range.begin, range.end);
    // More spaces than there are characters before the end leave it alone.
    auto const before = text.substr(0, range.end);
    auto end = range.end;
    for (auto left = outer.trailing; left > 0; --left) {
        if (end == 0) return;
        end -= utf8_length_of(character_before(before.data() + end));
    }
    range.end = std::max(end, range.begin);
}

}  // namespace tinkxx::text
