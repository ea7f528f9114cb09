#include <tinkxx/text/tokenizer.hpp>

#include <algorithm>

namespace tinkxx::text {

std::vector<TextRange> to_character_ranges(std::string_view text,
                                           std::span<TextRange const> ranges) {
    // Ranges mostly ascend, so each position is counted on from the one before it.
    std::size_t byte = 0;
    std::size_t characters = 0;
    auto const to_character = [&](std::size_t position) {
        position = std::min(position, text.size());
        if (position < byte) byte = characters = 0;
        for (; byte < position; ++byte) {
            characters += (static_cast<unsigned char>(text[byte]) & 0xc0) != 0x80;
        }
        return characters;
    };
    std::vector<TextRange> result;
    result.reserve(ranges.size());
    for (auto const& range : ranges) {
        auto const begin = to_character(range.begin);
        result.push_back({.begin = begin, .end = to_character(range.end)});
    }
    return result;
}

}  // namespace tinkxx::text
