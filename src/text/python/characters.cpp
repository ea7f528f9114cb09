#include "text/python/characters.hpp"

#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace tinkxx::text::python {
namespace {

/// Characters from `first` to `last`, every `step`th, that move by the same distance.
struct CaseRun {
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t step;
    std::int32_t distance;
};

struct CaseSeveral {
    std::uint32_t code;
    std::array<std::uint32_t, 3> becomes;
};

#include "text/python/tables.inc"

enum Property : std::uint32_t {
    printable = 1U,
    alpha = 2U,
    number_low = 4U,
    number_high = 8U,
    upper = 16U,
    lower = 32U,
    space = 64U,
    ignored = 128U,
    identifier_start = 256U,
    identifier_part = 512U,
};

std::uint32_t properties_of(char32_t code) noexcept {
    // The last step at or before the character; the lower 11 bits are what holds from there on.
    auto const* const after = std::upper_bound(std::begin(property_steps), std::end(property_steps),
                                               (static_cast<std::uint32_t>(code) << 11U) | 0x7FFU);
    return after[-1] & 0x7FFU;
}

bool has(char32_t code, std::uint32_t property) noexcept {
    return (properties_of(code) & property) != 0;
}

std::uint32_t number_level(char32_t code) noexcept { return (properties_of(code) >> 2U) & 3U; }

struct CaseTable {
    std::span<CaseRun const> runs;
    std::span<CaseSeveral const> several;
};

CaseTable table_of(Casing casing) noexcept {
    switch (casing) {
        case Casing::upper:
            return {upper_runs, upper_several};
        case Casing::lower:
            return {lower_runs, lower_several};
        case Casing::title:
            return {title_runs, title_several};
        case Casing::fold:
            break;
    }
    return {fold_runs, fold_several};
}

/// Whether the sigma that begins at `at` ends a word.
bool ends_word(std::string_view text, std::size_t at) noexcept {
    bool before = false;
    for (auto place = at; place > 0;) {
        place = previous_character(text, place);
        auto copy = place;
        auto const code = next_character(text, copy);
        if (has(code, ignored)) continue;
        before = is_cased(code);
        break;
    }
    if (!before) return false;
    (void)next_character(text, at);
    while (at < text.size()) {
        auto const code = next_character(text, at);
        if (has(code, ignored)) continue;
        return !is_cased(code);
    }
    return true;
}

void append_lower(std::string& to, std::string_view text, std::size_t begin, char32_t code) {
    if (code == 0x3A3U) {
        append_utf8(to, ends_word(text, begin) ? 0x3C2U : 0x3C3U);
    } else {
        append_cased(to, code, Casing::lower);
    }
}

std::string change_case(std::string_view text, Casing casing) {
    std::string changed;
    changed.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        auto const begin = at;
        auto const code = next_character(text, at);
        if (casing == Casing::lower) {
            append_lower(changed, text, begin, code);
        } else {
            append_cased(changed, code, casing);
        }
    }
    return changed;
}

}  // namespace

bool is_printable(char32_t code) noexcept {
    if (code < 0x7FU) return code >= 0x20U;
    return has(code, printable);
}
bool is_alpha(char32_t code) noexcept { return has(code, alpha); }
bool is_decimal(char32_t code) noexcept { return number_level(code) == 3; }
bool is_digit(char32_t code) noexcept { return number_level(code) >= 2; }
bool is_numeric(char32_t code) noexcept { return number_level(code) >= 1; }
bool is_upper(char32_t code) noexcept { return has(code, upper); }
bool is_lower(char32_t code) noexcept { return has(code, lower); }
bool is_title(char32_t code) noexcept {
    return code == 0x1C5U || code == 0x1C8U || code == 0x1CBU || code == 0x1F2U ||
           (code >= 0x1F88U && code <= 0x1F8FU) || (code >= 0x1F98U && code <= 0x1F9FU) ||
           (code >= 0x1FA8U && code <= 0x1FAFU) || code == 0x1FBCU || code == 0x1FCCU ||
           code == 0x1FFCU;
}
bool is_space(char32_t code) noexcept {
    if (code < 0x80U) return code == U' ' || (code >= 9 && code <= 13) || (code >= 28 && code < 32);
    return has(code, space);
}
bool starts_identifier(char32_t code) noexcept { return has(code, identifier_start); }
bool continues_identifier(char32_t code) noexcept { return has(code, identifier_part); }
bool is_line_end(char32_t code) noexcept {
    return (code >= 10 && code <= 13) || (code >= 28 && code <= 30) || code == 0x85U ||
           code == 0x2028U || code == 0x2029U;
}

int decimal_value(char32_t code) noexcept {
    // Digits of a script stand in rows of ten; the row begins at most nine before.
    if (code < 0x80U) return static_cast<int>(code - U'0');
    char32_t first = code;
    while (code - first < 9 && is_decimal(first - 1)) --first;
    // Several rows can follow each other; the first of these begins at a multiple of ten of it.
    while (is_decimal(first - 1)) --first;
    return static_cast<int>((code - first) % 10);
}

void append_cased(std::string& to, char32_t code, Casing casing) {
    if (code < 0x80U) {
        bool const up = casing == Casing::upper || casing == Casing::title;
        if (up && code >= U'a' && code <= U'z') code -= 32;
        if (!up && code >= U'A' && code <= U'Z') code += 32;
        to += static_cast<char>(code);
        return;
    }
    auto const [runs, several] = table_of(casing);
    auto const value = static_cast<std::uint32_t>(code);
    auto const one = std::lower_bound(
        several.begin(), several.end(), value,
        [](CaseSeveral const& entry, std::uint32_t wanted) { return entry.code < wanted; });
    if (one != several.end() && one->code == value) {
        for (auto const part : one->becomes) {
            if (part != 0) append_utf8(to, part);
        }
        return;
    }
    auto const run = std::lower_bound(
        runs.begin(), runs.end(), value,
        [](CaseRun const& entry, std::uint32_t wanted) { return entry.last < wanted; });
    if (run != runs.end() && run->first <= value && (value - run->first) % run->step == 0) {
        code = static_cast<char32_t>(static_cast<std::int32_t>(value) + run->distance);
    }
    append_utf8(to, code);
}

std::string upper_text(std::string_view text) { return change_case(text, Casing::upper); }
std::string lower_text(std::string_view text) { return change_case(text, Casing::lower); }
std::string fold_text(std::string_view text) { return change_case(text, Casing::fold); }

std::string title_text(std::string_view text) {
    std::string changed;
    bool within = false;
    for (std::size_t at = 0; at < text.size();) {
        auto const begin = at;
        auto const code = next_character(text, at);
        if (within) {
            append_lower(changed, text, begin, code);
        } else {
            append_cased(changed, code, Casing::title);
        }
        within = is_cased(code);
    }
    return changed;
}

std::string capitalize_text(std::string_view text) {
    std::string changed;
    for (std::size_t at = 0; at < text.size();) {
        auto const begin = at;
        auto const code = next_character(text, at);
        if (begin == 0) {
            append_cased(changed, code, Casing::title);
        } else {
            append_lower(changed, text, begin, code);
        }
    }
    return changed;
}

std::string swap_case(std::string_view text) {
    std::string changed;
    for (std::size_t at = 0; at < text.size();) {
        auto const begin = at;
        auto const code = next_character(text, at);
        if (is_upper(code)) {
            append_lower(changed, text, begin, code);
        } else if (is_lower(code)) {
            append_cased(changed, code, Casing::upper);
        } else {
            append_utf8(changed, code);
        }
    }
    return changed;
}

}  // namespace tinkxx::text::python
