#include "text/tokenizer/steps/normalizers.hpp"

#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <vector>

namespace tinkxx::text {
namespace {

template <class Function>
void for_each_character(std::string_view text, Function function) {
    for (char const *p = text.data(), *end = p + text.size(); p < end;) {
        function(next_character(p));
    }
}

template <class Predicate>
bool any_character(std::string_view text, Predicate predicate) {
    for (char const *p = text.data(), *end = p + text.size(); p < end;) {
        if (predicate(next_character(p))) return true;
    }
    return false;
}

/// Removes the characters of a kind. What is removed counts as part of the character before it.
template <class Removed>
void remove_if(AlignedText& text, Removed removed) {
    std::vector<Change> kept;
    std::size_t removed_first = 0;
    for_each_character(text.text(), [&](char32_t c) {
        if (!removed(c)) {
            kept.push_back({.character = c});
        } else if (kept.empty()) {
            ++removed_first;
        } else {
            --kept.back().kind;
        }
    });
    text.transform(kept, removed_first);
}

template <class Map>
void map_characters(AlignedText& text, Map map) {
    std::vector<Change> changes;
    for_each_character(text.text(), [&](char32_t c) { changes.push_back({.character = map(c)}); });
    text.transform(changes);
}

void lowercase(AlignedText& text) {
    std::vector<Change> changes;
    for_each_character(text.text(), [&](char32_t c) {
        auto const lower = to_lower(c);
        changes.push_back({.character = lower[0]});
        if (lower[1] != 0) changes.push_back({.character = lower[1], .kind = 1});
    });
    text.transform(changes);
}

constexpr bool is_ideograph(char32_t c) noexcept {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

constexpr bool is_nmt_removed(char32_t c) noexcept {
    return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
           c == 0x9f;
}

constexpr bool is_nmt_space(char32_t c) noexcept {
    return c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
           (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xfeff || c == 0xfffd;
}

}  // namespace

void NormalFormNormalizer::apply(AlignedText& text) const {
    text.transform(normalized(text.text(), form_));
}

bool NormalFormNormalizer::keeps(std::string_view text) const {
    return form_ == NormalForm::nfc ? is_surely_nfc(text) : is_ascii(text);
}

void LowercaseNormalizer::apply(AlignedText& text) const { lowercase(text); }

bool LowercaseNormalizer::keeps(std::string_view text) const {
    return std::ranges::all_of(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x80 && (c < 'A' || c > 'Z'); });
}

bool StripNormalizer::keeps(std::string_view text) const {
    if (text.empty()) return true;
    auto const* p = text.data();
    if (left_ && is_space(next_character(p))) return false;
    return !right_ || !is_space(character_before(text.data() + text.size()));
}

void StripNormalizer::apply(AlignedText& text) const {
    std::vector<char32_t> characters;
    for_each_character(text.text(), [&](char32_t c) { characters.push_back(c); });
    auto const count = characters.size();
    std::size_t begin = 0;
    std::size_t end = count;
    if (left_) {
        while (begin < count && is_space(characters[begin])) ++begin;
    }
    if (right_) {
        while (end > 0 && is_space(characters[end - 1])) --end;
    }
    std::vector<Change> changes;
    for (auto i = begin; i < end; ++i) changes.push_back({.character = characters[i]});
    if (!changes.empty() && end < count) changes.back().kind = -static_cast<int>(count - end);
    text.transform(changes, begin);
}

void StripAccentsNormalizer::apply(AlignedText& text) const { remove_if(text, is_combining_mark); }

bool StripAccentsNormalizer::keeps(std::string_view text) const {
    return !any_character(text, is_combining_mark);
}

void ReplaceNormalizer::apply(AlignedText& text) const {
    std::vector<Piece> pieces;
    pattern_.find_all(text.text(), pieces);
    std::vector<TextRange> ranges;
    ranges.reserve(pieces.size());
    for (auto const& piece : pieces) ranges.push_back({.begin = piece.begin, .end = piece.end});
    text.replace(ranges, content_);
}

bool ReplaceNormalizer::keeps(std::string_view text) const { return text.empty(); }

void BertNormalizer::apply(AlignedText& text) const {
    if (options_.clean_text) {
        auto const is_line = [](char32_t c) { return c == '\t' || c == '\n' || c == '\r'; };
        remove_if(text, [&](char32_t c) {
            return c == 0 || c == 0xfffd || (is_control(c) && !is_line(c));
        });
        map_characters(text, [](char32_t c) { return is_space(c) ? U' ' : c; });
    }
    if (options_.space_ideographs) {
        std::vector<Change> changes;
        for_each_character(text.text(), [&](char32_t c) {
            if (is_ideograph(c)) {
                changes.push_back({.character = U' '});
                changes.push_back({.character = c, .kind = 1});
                changes.push_back({.character = U' ', .kind = 1});
            } else {
                changes.push_back({.character = c});
            }
        });
        text.transform(changes);
    }
    if (options_.strip_accents) {
        text.transform(normalized(text.text(), NormalForm::nfd));
        remove_if(text, is_accent);
    }
    if (options_.lowercase) lowercase(text);
}

void NmtNormalizer::apply(AlignedText& text) const {
    remove_if(text, is_nmt_removed);
    map_characters(text, [](char32_t c) { return is_nmt_space(c) ? U' ' : c; });
}

bool NmtNormalizer::keeps(std::string_view text) const {
    return !any_character(text, [](char32_t c) { return is_nmt_removed(c) || is_nmt_space(c); });
}

}  // namespace tinkxx::text
