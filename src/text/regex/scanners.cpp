#include "text/regex/scanners.hpp"

#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tinkxx::text {
namespace {

struct KnownText {
    std::string_view regex;
    KnownPattern pattern;
};

constexpr std::string_view deepseek_numbers = R"(\p{N}{1,3})";
constexpr std::string_view deepseek_east_asian = "[一-龥぀-ゟ゠-ヿ]+";

constexpr std::array known_texts{
    KnownText{R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
              KnownPattern::gpt2},
    KnownText{R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
              KnownPattern::gpt2},
    KnownText{R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)",
              KnownPattern::gpt2},
    KnownText{
        R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
        KnownPattern::cl100k},
    KnownText{
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::llama3},
    KnownText{
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::qwen2},
    KnownText{
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::qwen35},
    KnownText{
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::o200k},
    KnownText{
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::mistral},
    KnownText{
        R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        KnownPattern::kimi},
    KnownText{
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\"
        "p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
        KnownPattern::deepseek},
};

enum class Contractions : std::uint8_t { none, lower, any };

/// Walks through a text of valid UTF-8.
class Walker {
public:
    Walker(char const* end) : end_{end}, table_{ClassTable::get()} {}  // NOLINT: never converted

    struct Seen {
        std::uint8_t classes{};
        std::uint8_t length{};
    };

    [[nodiscard]] char const* end() const noexcept { return end_; }

    /// The character at `p`, which is not the end.
    [[nodiscard]] Seen look(char const* p) const noexcept {
        auto const lead = static_cast<unsigned char>(*p);
        if (lead < 0x80) return {table_[lead], 1};
        auto const* const before = p;
        auto const c = next_character(p);
        return {table_[c], static_cast<std::uint8_t>(p - before)};
    }
    /// Behind the characters from `p` on that have one of these classes.
    [[nodiscard]] char const* run(char const* p, unsigned classes) const noexcept {
        while (p < end_) {
            auto const seen = look(p);
            if ((seen.classes & classes) == 0) break;
            p += seen.length;
        }
        return p;
    }
    /// Behind those that have none of them.
    [[nodiscard]] char const* run_without(char const* p, unsigned classes) const noexcept {
        while (p < end_) {
            auto const seen = look(p);
            if ((seen.classes & classes) != 0) break;
            p += seen.length;
        }
        return p;
    }
    [[nodiscard]] bool has(char const* p, unsigned classes) const noexcept {
        return p < end_ && (look(p).classes & classes) != 0;
    }
    [[nodiscard]] bool lacks(char const* p, unsigned classes) const noexcept {
        return p < end_ && (look(p).classes & classes) == 0;
    }
    [[nodiscard]] char const* newlines(char const* p, bool slash = false) const noexcept {
        while (p < end_ && (*p == '\n' || *p == '\r' || (slash && *p == '/'))) ++p;
        return p;
    }

private:
    char const* end_;
    ClassTable const& table_;
};

/// Behind an English contraction at `p`; null if there is none.
template <Contractions Kind>
char const* contraction(Walker const& walker, char const* p) noexcept {
    if (Kind == Contractions::none || *p != '\'' || walker.end() - p < 2) return nullptr;
    constexpr auto fold = Kind == Contractions::any ? 0x20 : 0;
    auto const at = [p](int i) { return static_cast<char>(p[i] | fold); };
    // `| 0x20` makes no letter of what is none, except for "@[\]^_" and control characters.
    auto const is_letter = [p](int i) { return p[i] >= 'A' && p[i] <= 'z'; };
    if (!is_letter(1)) {
        // U+017F, the long s, is an s in another case.
        auto const long_s = Kind == Contractions::any && walker.end() - p >= 3 &&
                            std::memcmp(p + 1, "\xc5\xbf", 2) == 0;
        return long_s ? p + 3 : nullptr;
    }
    switch (at(1)) {
        case 's':
        case 't':
        case 'm':
        case 'd':
            return p + 2;
        default:
            break;
    }
    if (walker.end() - p < 3 || !is_letter(2)) return nullptr;
    auto const both = std::pair{at(1), at(2)};
    auto const known =
        both == std::pair{'r', 'e'} || both == std::pair{'v', 'e'} || both == std::pair{'l', 'l'};
    return known ? p + 3 : nullptr;
}

/// White space at `p`: `\s*[\r\n]+|\s+(?!\S)|\s+`, where the first is left out if not `Lines`.
/// With `WholeTail`, white space at the end of the text is one word.
template <bool Lines, bool WholeTail>
char const* white_space(Walker const& walker, char const* p) noexcept {
    char const* last = p;        // where the last character begins
    char const* line = nullptr;  // behind the last line end
    auto const* q = p;
    while (q < walker.end()) {
        auto const seen = walker.look(q);
        if ((seen.classes & space) == 0) break;
        last = q;
        q += seen.length;
        if (*last == '\n' || *last == '\r') line = q;
    }
    if (WholeTail && q == walker.end()) return q;
    if (Lines && line != nullptr) return line;
    return q == walker.end() || last == p ? q : last;
}

char const* gpt2_word(Walker const& walker, char const* p) noexcept {
    if (auto const* const end = contraction<Contractions::lower>(walker, p)) return end;
    auto const* const start = *p == ' ' && p + 1 < walker.end() ? p + 1 : p;
    auto const seen = walker.look(start);
    if ((seen.classes & letter) != 0) return walker.run(start + seen.length, letter);
    if ((seen.classes & number) != 0) return walker.run(start + seen.length, number);
    if ((seen.classes & space) == 0) {
        return walker.run_without(start + seen.length, letter | number | space);
    }
    return white_space<false, false>(walker, p);
}

char const* numbers(Walker const& walker, char const* p, int most) noexcept {
    for (; most > 0 && p < walker.end(); --most) {
        auto const seen = walker.look(p);
        if ((seen.classes & number) == 0) break;
        p += seen.length;
    }
    return p;
}

/// ` ?[^\s\p{L}\p{N}]+[\r\n]*` at `p`, with marks among the letters if they are in `Words`.
template <unsigned Words, bool Slash>
char const* symbols(Walker const& walker, char const* p) noexcept {
    auto const* const start = *p == ' ' ? p + 1 : p;
    auto const* const end = walker.run_without(start, Words | number | space);
    return end == start ? nullptr : walker.newlines(end, Slash);
}

template <int Digits, unsigned Words, bool WholeTail>
char const* cl100k_word(Walker const& walker, char const* p) noexcept {
    if (auto const* const end = contraction<Contractions::any>(walker, p)) return end;
    auto const seen = walker.look(p);
    if ((seen.classes & Words) != 0) {
        return walker.run(p + seen.length, Words);
    }
    if ((seen.classes & number) != 0) return numbers(walker, p, Digits);
    if (*p != '\r' && *p != '\n' && walker.has(p + seen.length, Words)) {
        return walker.run(p + seen.length, Words);
    }
    if (auto const* const end = symbols<Words, false>(walker, p)) return end;
    return white_space<true, WholeTail>(walker, p);
}

/// The script of Chinese characters, in Unicode 16.
bool is_han(char32_t c) noexcept {
    struct Range {
        char32_t first;
        char32_t last;
    };
    constexpr std::array ranges{
        Range{0x2e80, 0x2e99},   Range{0x2e9b, 0x2ef3},   Range{0x2f00, 0x2fd5},
        Range{0x3005, 0x3005},   Range{0x3007, 0x3007},   Range{0x3021, 0x3029},
        Range{0x3038, 0x303b},   Range{0x3400, 0x4dbf},   Range{0x4e00, 0x9fff},
        Range{0xf900, 0xfa6d},   Range{0xfa70, 0xfad9},   Range{0x16fe2, 0x16fe3},
        Range{0x16ff0, 0x16ff1}, Range{0x20000, 0x2a6df}, Range{0x2a700, 0x2b739},
        Range{0x2b740, 0x2b81d}, Range{0x2b820, 0x2cea1}, Range{0x2ceb0, 0x2ebe0},
        Range{0x2ebf0, 0x2ee5d}, Range{0x2f800, 0x2fa1d}, Range{0x30000, 0x3134a},
        Range{0x31350, 0x323af},
    };
    if (c < ranges.front().first) return false;
    auto const* const found = std::ranges::lower_bound(ranges, c, {}, &Range::last);
    return found != ranges.end() && found->first <= c;
}

bool is_han_at(char const* p) noexcept {
    return static_cast<unsigned char>(*p) >= 0xe2 && is_han(next_character(p));
}

/// The character at `p`; if there is an alternative for `Han`, those are no letters to the others.
template <bool Han>
Walker::Seen look_at_letter(Walker const& walker, char const* p) noexcept {
    auto seen = walker.look(p);
    if (Han && is_han_at(p)) seen.classes = 0;
    return seen;
}

/// Letters of o200k at `p`: first those that may be capital, then those that may be small, at least
/// one of the latter; null if that cannot be.
template <bool Han>
char const* small_word(Walker const& walker, char const* p) noexcept {
    char const* both = nullptr;  // behind the last character that may be either
    while (p < walker.end()) {
        auto const seen = look_at_letter<Han>(walker, p);
        if ((seen.classes & lower) != 0) {
            // From here on small ones, or such as may be either.
            for (p += seen.length; p < walker.end();) {
                auto const next = look_at_letter<Han>(walker, p);
                if ((next.classes & (letter | mark)) == 0 || (next.classes & upper) != 0) break;
                p += next.length;
            }
            return p;
        }
        if ((seen.classes & (letter | mark)) == 0) break;
        p += seen.length;
        if ((seen.classes & upper) == 0) both = p;
    }
    return both;
}

/// Capital letters, and such as may be; null if there is none. No small one follows.
template <bool Han>
char const* capital_word(Walker const& walker, char const* p) noexcept {
    auto const* q = p;
    while (q < walker.end()) {
        auto const seen = look_at_letter<Han>(walker, q);
        if ((seen.classes & (letter | mark)) == 0 || (seen.classes & lower) != 0) break;
        q += seen.length;
    }
    return q == p ? nullptr : q;
}

template <Contractions Kind, int Digits, bool Han = false>
char const* o200k_word(Walker const& walker, char const* p) noexcept {
    if (Han && is_han_at(p)) {
        while (p < walker.end() && is_han_at(p)) p += walker.look(p).length;
        return p;
    }
    auto const seen = walker.look(p);
    auto const with_tail = [&walker](char const* end) {
        if (end == walker.end()) return end;
        auto const* const tail = contraction<Kind>(walker, end);
        return tail == nullptr ? end : tail;
    };
    if ((seen.classes & number) != 0) return numbers(walker, p, Digits);
    auto const leads = (seen.classes & letter) == 0 && *p != '\r' && *p != '\n';
    auto const begins = (seen.classes & (letter | mark)) != 0;
    auto const* const behind = p + seen.length;
    if (leads) {
        if (auto const* const end = small_word<Han>(walker, behind)) return with_tail(end);
    }
    if (begins) {
        if (auto const* const end = small_word<Han>(walker, p)) return with_tail(end);
    }
    if (leads) {
        if (auto const* const end = capital_word<Han>(walker, behind)) return with_tail(end);
    }
    if (begins) {
        if (auto const* const end = capital_word<Han>(walker, p)) return with_tail(end);
    }
    if (auto const* const end = symbols<letter, !Han>(walker, p)) return end;
    return white_space<true, false>(walker, p);
}

constexpr bool is_ascii_letter(char c) noexcept {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// Null if nothing matches at `p`.
char const* deepseek_match(Walker const& walker, char const* p) noexcept {
    auto const seen = walker.look(p);
    auto const* const behind = p + seen.length;
    auto const ascii_mark = static_cast<unsigned char>(*p) < 0x80 && (seen.classes & symbol) != 0;
    if (ascii_mark && behind < walker.end() && is_ascii_letter(*behind)) {
        auto const* q = behind;
        while (q < walker.end() && is_ascii_letter(*q)) ++q;
        return q;
    }
    if ((seen.classes & (letter | mark)) != 0) return walker.run(behind, letter | mark);
    if ((seen.classes & symbol) == 0 && *p != '\r' && *p != '\n' &&
        walker.has(behind, letter | mark)) {
        return walker.run(behind, letter | mark);
    }
    auto const* const start = *p == ' ' ? behind : p;
    if (walker.has(start, symbol)) return walker.newlines(walker.run(start, symbol));
    return (seen.classes & space) != 0 ? white_space<true, false>(walker, p) : nullptr;
}

/// As the pattern; what matches nothing is a word up to the next that does.
char const* deepseek_word(Walker const& walker, char const* p) noexcept {
    if (auto const* const end = deepseek_match(walker, p)) return end;
    do p += walker.look(p).length;
    while (p < walker.end() && deepseek_match(walker, p) == nullptr);
    return p;
}

constexpr bool is_deepseek_east_asian(char32_t c) noexcept {
    return (c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x3040 && c <= 0x30ff);
}

/// Where the part ends that all three patterns of DeepSeek leave to the last one.
char const* deepseek_part(Walker const& walker, char const* p) noexcept {
    auto const kind = [&walker](char const* at, char const*& behind) {
        auto const* q = at;
        auto const c = next_character(q);
        behind = q;
        if (is_deepseek_east_asian(c)) return 1;
        return (walker.look(at).classes & number) != 0 ? 2 : 0;
    };
    auto const* behind = p;
    auto const first = kind(p, behind);
    if (first == 2) return numbers(walker, p, 3);
    while (behind < walker.end()) {
        auto const* const at = behind;
        // Most of a text is of small letters and spaces.
        if (first == 0 && (is_ascii_letter(*at) || *at == ' ')) {
            ++behind;
            continue;
        }
        if (kind(at, behind) != first) return at;
    }
    return behind;
}

template <class Word>
std::size_t scan_words(std::string_view text, std::size_t& at, std::span<Piece> out, Word word) {
    Walker const walker{text.data() + text.size()};
    auto const* p = text.data() + at;
    std::size_t count = 0;
    while (count < out.size() && p < walker.end()) {
        auto const* const end = word(walker, p);
        auto const begin = static_cast<std::size_t>(p - text.data());
        out[count++] = {.begin = begin, .end = static_cast<std::size_t>(end - text.data())};
        p = end;
    }
    at = static_cast<std::size_t>(p - text.data());
    return count;
}

std::size_t scan_deepseek(std::string_view text, ScanState& state, std::span<Piece> out) {
    Walker const walker{text.data() + text.size()};
    std::size_t count = 0;
    while (count < out.size() && state.at < text.size()) {
        if (state.at == state.part_end) {
            auto const* const end = deepseek_part(walker, text.data() + state.at);
            state.part_end = static_cast<std::size_t>(end - text.data());
        }
        count +=
            scan_words(text.substr(0, state.part_end), state.at, out.subspan(count), deepseek_word);
    }
    return count;
}

}  // namespace

std::optional<KnownPattern> known_pattern(std::string_view regex) noexcept {
    auto const* const found = std::ranges::find(known_texts, regex, &KnownText::regex);
    if (found == known_texts.end()) return std::nullopt;
    return found->pattern;
}

std::optional<KnownPattern> known_sequence(std::span<std::string_view const> regexes) noexcept {
    if (regexes.size() == 1) return known_pattern(regexes[0]);
    if (regexes.size() == 3 && regexes[0] == deepseek_numbers &&
        regexes[1] == deepseek_east_asian && known_pattern(regexes[2]) == KnownPattern::deepseek) {
        return KnownPattern::deepseek_sequence;
    }
    return std::nullopt;
}

std::size_t scan(KnownPattern pattern, std::string_view text, ScanState& state,
                 std::span<Piece> out) {
    auto& at = state.at;
    constexpr auto any = Contractions::any;
    constexpr auto none = Contractions::none;
    switch (pattern) {
        case KnownPattern::gpt2:
            return scan_words(text, at, out, gpt2_word);
        case KnownPattern::cl100k:
            return scan_words(text, at, out, cl100k_word<3, letter, true>);
        case KnownPattern::llama3:
            return scan_words(text, at, out, cl100k_word<3, letter, false>);
        case KnownPattern::qwen2:
            return scan_words(text, at, out, cl100k_word<1, letter, false>);
        case KnownPattern::qwen35:
            return scan_words(text, at, out, cl100k_word<1, letter | mark, false>);
        case KnownPattern::o200k:
            return scan_words(text, at, out, o200k_word<any, 3>);
        case KnownPattern::kimi:
            return scan_words(text, at, out, o200k_word<any, 3, true>);
        case KnownPattern::mistral:
            return scan_words(text, at, out, o200k_word<none, 1>);
        case KnownPattern::deepseek:
            return scan_words(text, at, out, deepseek_word);
        case KnownPattern::deepseek_sequence:
            return scan_deepseek(text, state, out);
    }
    return 0;
}

}  // namespace tinkxx::text
