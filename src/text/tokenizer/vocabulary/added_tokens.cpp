#include "text/tokenizer/vocabulary/added_tokens.hpp"

#include "text/errors/refuse.hpp"
#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tinkxx::text {
namespace {

/// White space at the end of a text begins here.
std::size_t trailing_space(std::string_view text) {
    auto const* const begin = text.data();
    auto const* p = begin + text.size();
    while (p > begin) {
        auto const c = character_before(p);
        if (!is_space(c)) break;
        p -= utf8_length_of(c);
    }
    return static_cast<std::size_t>(p - begin);
}

/// White space at the beginning of a text ends here.
std::size_t leading_space(std::string_view text) {
    char const* p = text.data();
    char const* const end = p + text.size();
    while (p < end) {
        auto const* const before = p;
        if (!is_space(next_character(p))) return static_cast<std::size_t>(before - text.data());
    }
    return text.size();
}

bool is_word_beside(std::string_view text, std::size_t begin, std::size_t end) {
    if (begin > 0 && is_word(character_before(text.data() + begin))) return true;
    if (end == text.size()) return false;
    auto const* p = text.data() + end;
    return is_word(next_character(p));
}

}  // namespace

TextFinder::TextFinder(std::vector<Wanted> wanted) : wanted_{std::move(wanted)} {
    std::ranges::sort(wanted_, {}, &Wanted::text);
    for (std::uint32_t i = 0; i < wanted_.size(); ++i) {
        auto const byte = static_cast<unsigned char>(wanted_[i].text.front());
        auto& range = by_first_byte_[byte];
        if (range.end == 0) {
            range.begin = i;
            first_bytes_.push_back(byte);
        }
        range.end = i + 1;
    }
}

bool TextFinder::next(std::string_view text, std::size_t from, Found& found) const noexcept {
    if (first_bytes_.size() == 1) {
        // Nearly always all begin with the same byte, often "<".
        while (from < text.size()) {
            auto const* const p = static_cast<char const*>(
                std::memchr(text.data() + from, first_bytes_[0], text.size() - from));
            if (p == nullptr) return false;
            from = static_cast<std::size_t>(p - text.data());
            if (match(text, from, found)) return true;
            ++from;
        }
        return false;
    }
    for (; from < text.size(); ++from) {
        if (by_first_byte_[static_cast<unsigned char>(text[from])].end == 0) continue;
        if (match(text, from, found)) return true;
    }
    return false;
}

bool TextFinder::match(std::string_view text, std::size_t at, Found& found) const noexcept {
    auto const range = by_first_byte_[static_cast<unsigned char>(text[at])];
    auto first = wanted_.begin() + range.begin;
    auto last = wanted_.begin() + range.end;
    auto any = false;
    // In each round, those that agree with the text up to `depth`; the shortest comes first.
    for (std::size_t depth = 1; first != last; ++depth) {
        if (first->text.size() == depth) {
            found = {.begin = at, .end = at + depth, .index = first->index};
            any = true;
            if (++first == last) break;
        }
        if (at + depth == text.size()) break;
        auto const byte = static_cast<unsigned char>(text[at + depth]);
        auto const byte_of = [depth](Wanted const& one) {
            return static_cast<unsigned char>(one.text[depth]);
        };
        auto const equal = std::ranges::equal_range(first, last, byte, {}, byte_of);
        first = equal.begin();
        last = equal.end();
    }
    return any;
}

AddedTokens::AddedTokens(std::vector<Entry> entries) : entries_{std::move(entries)} {
    std::vector<TextFinder::Wanted> plain;
    std::vector<TextFinder::Wanted> normalized;
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        auto const& entry = entries_[i];
        if (entry.token.normalized) {
            if (!entry.normalized.empty()) normalized.push_back({entry.normalized, i});
        } else {
            plain.push_back({entry.token.text, i});
        }
    }
    in_text_ = TextFinder{std::move(plain)};
    in_normalized_ = TextFinder{std::move(normalized)};
}

AddedTokens::Entry const* AddedTokens::find(std::uint32_t id) const noexcept {
    auto const found = std::ranges::lower_bound(entries_, static_cast<Token>(id), {},
                                                [](Entry const& entry) { return entry.token.id; });
    if (found == entries_.end() || found->token.id != static_cast<Token>(id)) return nullptr;
    return &*found;
}

void AddedTokens::split(std::string_view text, bool normalized, SpecialText policy,
                        std::vector<Part>& parts) const {
    parts.clear();
    auto const& finder = normalized ? in_normalized_ : in_text_;
    std::size_t done = 0;
    TextFinder::Found found;
    for (std::size_t at = 0; finder.next(text, at, found); at = found.end) {
        auto const& entry = entries_[found.index];
        auto const& token = entry.token;
        if (token.special && policy == SpecialText::as_text) continue;
        auto [begin, end] = std::pair{found.begin, found.end};
        if (token.single_word && is_word_beside(text, begin, end)) continue;
        if (token.special && policy == SpecialText::forbid) {
            refuse("encode: the text contains the special token \"" + token.text + "\" at byte " +
                       std::to_string(begin) +
                       "; remove it, or choose SpecialText::parse or SpecialText::as_text",
                   "text", token.text);
        }
        // What an earlier token took belongs to that.
        if (token.lstrip) begin = std::max(trailing_space(text.substr(0, begin)), done);
        if (token.rstrip) end += leading_space(text.substr(end));
        if (done < begin) parts.push_back({.begin = done, .end = begin});
        parts.push_back({.begin = begin, .end = end, .token = &entry});
        done = end;
    }
    if (done < text.size()) parts.push_back({.begin = done, .end = text.size()});
}

}  // namespace tinkxx::text
