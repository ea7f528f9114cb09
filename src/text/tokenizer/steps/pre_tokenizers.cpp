#include "text/tokenizer/steps/pre_tokenizers.hpp"

#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace tinkxx::text {
namespace {

/// A part of a text, and whether it is a delimiter.
struct Part {
    Piece piece{};
    bool match{};
};

/// All parts of a text, given those that match.
void cover(std::size_t size, std::span<Piece const> matches, bool invert,
           std::vector<Part>& parts) {
    parts.clear();
    std::size_t at = 0;
    for (auto const& match : matches) {
        if (match.begin > at) parts.push_back({{.begin = at, .end = match.begin}, invert});
        parts.push_back({match, !invert});
        at = match.end;
    }
    if (at < size) parts.push_back({{.begin = at, .end = size}, invert});
}

/// Joins each delimiter with the part before it, unless that is one too.
void merge_with_previous(std::vector<Part>& parts) {
    std::size_t kept = 0;
    auto after_match = false;
    for (auto const& part : parts) {
        if (part.match && !after_match && kept > 0) {
            parts[kept - 1].piece.end = part.piece.end;
        } else {
            parts[kept++].piece = part.piece;
        }
        after_match = part.match;
    }
    parts.resize(kept);
}

void merge_with_next(std::vector<Part>& parts) {
    std::ranges::reverse(parts);
    std::size_t kept = 0;
    auto after_match = false;
    for (auto const& part : parts) {
        if (part.match && !after_match && kept > 0) {
            parts[kept - 1].piece.begin = part.piece.begin;
        } else {
            parts[kept++].piece = part.piece;
        }
        after_match = part.match;
    }
    parts.resize(kept);
    std::ranges::reverse(parts);
}

void merge_equal(std::vector<Part>& parts) {
    std::size_t kept = 0;
    auto previous = false;
    for (auto const& part : parts) {
        if (part.match == previous && kept > 0) {
            parts[kept - 1].piece.end = part.piece.end;
        } else {
            parts[kept++].piece = part.piece;
        }
        previous = part.match;
    }
    parts.resize(kept);
}

void arrange(std::vector<Part>& parts, SplitBehavior behavior) {
    switch (behavior) {
        case SplitBehavior::removed:
            std::erase_if(parts, &Part::match);
            break;
        case SplitBehavior::isolated:
            break;
        case SplitBehavior::merged_with_previous:
            merge_with_previous(parts);
            break;
        case SplitBehavior::merged_with_next:
            merge_with_next(parts);
            break;
        case SplitBehavior::contiguous:
            merge_equal(parts);
            break;
    }
}

/// Cuts each piece; `find(text, matches)` adds the delimiters in a text.
template <class Find>
void split_pieces(PreTokenized& state, SplitBehavior behavior, bool invert, Find find) {
    std::vector<Piece> result;
    std::vector<Piece> matches;
    std::vector<Part> parts;
    for (auto const& piece : state.pieces) {
        auto const text = state.text.text().substr(piece.begin, piece.end - piece.begin);
        matches.clear();
        find(text, matches);
        cover(text.size(), matches, invert, parts);
        arrange(parts, behavior);
        for (auto const& part : parts) {
            if (part.piece.begin == part.piece.end) continue;
            result.push_back(
                {.begin = piece.begin + part.piece.begin, .end = piece.begin + part.piece.end});
        }
    }
    state.pieces = std::move(result);
}

/// Rewrites each piece; `rewrite(text, piece)` is given a copy of its text.
template <class Rewrite>
void rewrite_pieces(PreTokenized& state, Rewrite rewrite) {
    AlignedText all;
    std::vector<Piece> pieces;
    for (auto const& piece : state.pieces) {
        AlignedText text;
        text.append(state.text, piece.begin, piece.end);
        rewrite(text, piece);
        auto const begin = all.text().size();
        all.append(text, 0, text.text().size());
        if (begin < all.text().size()) pieces.push_back({.begin = begin, .end = all.text().size()});
    }
    state.text = std::move(all);
    state.pieces = std::move(pieces);
}

template <class Predicate>
void find_characters(std::string_view text, std::vector<Piece>& matches, Predicate predicate) {
    char const* const begin = text.data();
    for (char const *p = begin, *end = begin + text.size(); p < end;) {
        auto const* const from = p;
        if (!predicate(next_character(p))) continue;
        matches.push_back({.begin = static_cast<std::size_t>(from - begin),
                           .end = static_cast<std::size_t>(p - begin)});
    }
}

void find_literal(std::string_view text, std::string_view wanted, std::vector<Piece>& matches) {
    for (auto at = text.find(wanted); at != std::string_view::npos;
         at = text.find(wanted, at + wanted.size())) {
        matches.push_back({.begin = at, .end = at + wanted.size()});
    }
}

}  // namespace

bool PreTokenized::is_start(Piece const& piece) const noexcept {
    if (text.tracked()) return text.ranges()[piece.begin].begin == 0;
    return shift == 0 && piece.begin == 0;
}

void SplitPreTokenizer::apply(PreTokenized& state) const {
    split_pieces(state, behavior_, invert_, [this](std::string_view text, auto& matches) {
        pattern_.find_all(text, matches);
    });
}

void KnownPreTokenizer::apply(PreTokenized& state) const {
    std::vector<Piece> result;
    std::array<Piece, 256> batch;
    for (auto const& piece : state.pieces) {
        auto const text = state.text.text().substr(piece.begin, piece.end - piece.begin);
        ScanState scan_state;
        while (auto const count = scan(pattern_, text, scan_state, batch)) {
            for (auto const& one : std::span{batch}.first(count)) {
                result.push_back({.begin = piece.begin + one.begin, .end = piece.begin + one.end});
            }
        }
    }
    state.pieces = std::move(result);
}

void CharacterPreTokenizer::apply(PreTokenized& state) const {
    split_pieces(state, behavior_, false, [this](std::string_view text, auto& matches) {
        find_characters(text, matches, [this](char32_t c) { return predicate_(c, parameter_); });
    });
}

void PrefixSpacePreTokenizer::apply(PreTokenized& state) const {
    rewrite_pieces(state, [](AlignedText& text, Piece const& /*piece*/) {
        if (!text.text().starts_with(' ')) text.prepend(" ");
    });
}

void MapBytesPreTokenizer::apply(PreTokenized& state) const {
    rewrite_pieces(state, [](AlignedText& text, Piece const& /*piece*/) { text.map_bytes(); });
}

void MetaspacePreTokenizer::apply(PreTokenized& state) const {
    rewrite_pieces(state, [&](AlignedText& text, Piece const& piece) {
        auto const start = state.is_start(piece);
        std::vector<Piece> spaces;
        find_literal(text.text(), " ", spaces);
        std::vector<TextRange> ranges;
        for (auto const& space : spaces) ranges.push_back({.begin = space.begin, .end = space.end});
        text.replace(ranges, replacement_);
        if (text.text().starts_with(replacement_)) return;
        if (scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && start)) {
            text.prepend(replacement_);
        }
    });
    if (!split_) return;
    split_pieces(state, SplitBehavior::merged_with_next, false,
                 [this](std::string_view text, auto& matches) {
                     find_literal(text, replacement_, matches);
                 });
}

void WhitespacePreTokenizer::apply(PreTokenized& state) const {
    split_pieces(state, SplitBehavior::removed, true, [](std::string_view text, auto& matches) {
        auto const kind = [](char32_t c) {
            auto const classes = classes_of(c);
            if ((classes & word) != 0) return 1;
            return (classes & space) != 0 ? 0 : 2;
        };
        char const* const begin = text.data();
        auto last = 0;
        for (char const *p = begin, *end = begin + text.size(); p < end;) {
            auto const from = static_cast<std::size_t>(p - begin);
            auto const now = kind(next_character(p));
            auto const to = static_cast<std::size_t>(p - begin);
            if (now != 0 && now == last) {
                matches.back().end = to;
            } else if (now != 0) {
                matches.push_back({.begin = from, .end = to});
            }
            last = now;
        }
    });
}

void FixedLengthPreTokenizer::apply(PreTokenized& state) const {
    split_pieces(state, SplitBehavior::isolated, false,
                 [this](std::string_view text, auto& matches) {
                     std::size_t begin = 0;
                     std::size_t characters = 0;
                     for (std::size_t at = 0; at < text.size();) {
                         at += utf8_length(static_cast<unsigned char>(text[at]));
                         if (++characters < length_ && at < text.size()) continue;
                         matches.push_back({.begin = begin, .end = at});
                         begin = at;
                         characters = 0;
                     }
                 });
}

void UnicodeScriptsPreTokenizer::apply(PreTokenized& state) const {
    split_pieces(state, SplitBehavior::removed, true, [](std::string_view text, auto& matches) {
        // Characters that any script uses belong to the one before, and set no border.
        int last = -1;
        char const* const begin = text.data();
        auto cut = std::string_view::npos;
        for (char const *p = begin, *end = begin + text.size(); p < end;) {
            auto const from = static_cast<std::size_t>(p - begin);
            auto const now = script_of(next_character(p));
            if (now == any_script) continue;
            if (now != last) {
                if (cut != std::string_view::npos) matches.push_back({.begin = cut, .end = from});
                cut = from;
            }
            last = now;
        }
        if (cut != std::string_view::npos) matches.push_back({.begin = cut, .end = text.size()});
    });
}

}  // namespace tinkxx::text
