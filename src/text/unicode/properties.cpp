#include "text/unicode/properties.hpp"

#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace tinkxx::text {
namespace {

struct ClassRun {
    char32_t first;
    std::uint8_t classes;
};
struct CharacterRange {
    char32_t first;
    char32_t last;
};
struct LowerRun {
    char32_t first;
    char32_t last;
    char32_t step;
    std::int32_t delta;
};
struct CombiningRun {
    char32_t first;
    char32_t last;
    std::uint8_t value;
};
struct Decomposition {
    char32_t character;
    std::uint16_t begin;
    std::uint16_t length;
};
struct Composition {
    char32_t first;
    char32_t second;
    char32_t composed;
};

#include "text/unicode/tables.inc"

/// The range of a sorted table that may hold `c`; null if there is none.
template <class Range, std::size_t N>
Range const* find_range(Range const (&ranges)[N], char32_t c) noexcept {
    auto const* const found =
        std::ranges::lower_bound(ranges, c, {}, [](Range const& range) { return range.last; });
    return found != std::end(ranges) && found->first <= c ? found : nullptr;
}

template <std::size_t N>
std::span<char32_t const> find_decomposition(Decomposition const (&table)[N], char32_t c) noexcept {
    auto const* const found = std::ranges::lower_bound(table, c, {}, &Decomposition::character);
    if (found == std::end(table) || found->character != c) return {};
    return std::span{decomposition_data}.subspan(found->begin, found->length);
}

template <std::size_t N>
std::uint8_t find_run(ClassRun const (&runs)[N], char32_t c) noexcept {
    auto const* const after = std::ranges::upper_bound(runs, c, {}, &ClassRun::first);
    return after == std::begin(runs) ? std::uint8_t{0} : std::prev(after)->classes;
}

constexpr char32_t hangul_syllables = 0xac00;
constexpr char32_t hangul_leads = 0x1100;
constexpr char32_t hangul_vowels = 0x1161;
constexpr char32_t hangul_tails = 0x11a7;
constexpr char32_t hangul_lead_count = 19;
constexpr char32_t hangul_vowel_count = 21;
constexpr char32_t hangul_tail_count = 28;

char32_t compose_hangul(char32_t first, char32_t second) noexcept {
    auto const lead = first - hangul_leads;
    auto const vowel = second - hangul_vowels;
    if (lead < hangul_lead_count && vowel < hangul_vowel_count) {
        return hangul_syllables + (lead * hangul_vowel_count + vowel) * hangul_tail_count;
    }
    auto const syllable = first - hangul_syllables;
    auto const tail = second - hangul_tails;
    if (syllable < hangul_lead_count * hangul_vowel_count * hangul_tail_count &&
        syllable % hangul_tail_count == 0 && tail > 0 && tail < hangul_tail_count) {
        return first + tail;
    }
    return 0;
}

/// What a character is in a cluster, in the order of generate_tables.py.
enum class ClusterKind : std::uint8_t {
    other,
    cr,
    lf,
    control,
    extend,
    zwj,
    flag,
    prepend,
    spacing,
    lead,
    vowel,
    tail,
    picture,
    syllable,       // of Hangul, without a tail
    tail_syllable,  // with one
};
constexpr std::uint8_t conjunct_consonant = 16;
constexpr std::uint8_t conjunct_linker = 32;
constexpr std::uint8_t conjunct_extend = 64;

/// Decides, from character to character, whether a cluster goes on (Unicode Annex 29).
class ClusterJoiner {
public:
    void begin(char32_t c) noexcept {
        auto const bits = bits_of(c);
        last_ = kind_of(c, bits);
        flags_ = last_ == ClusterKind::flag ? 1 : 0;
        picture_ = last_ == ClusterKind::picture;
        consonant_ = (bits & conjunct_consonant) != 0;
        linked_ = false;
    }

    [[nodiscard]] bool joins(char32_t c) noexcept {
        using enum ClusterKind;
        auto const bits = bits_of(c);
        auto const kind = kind_of(c, bits);
        if (!belongs(kind, bits)) return false;
        flags_ = kind == flag ? flags_ + 1 : 0;
        picture_ = kind == picture || (picture_ && (kind == extend || kind == zwj));
        if ((bits & conjunct_consonant) != 0) {
            consonant_ = true;
            linked_ = false;
        } else if ((bits & (conjunct_linker | conjunct_extend)) != 0) {
            linked_ = linked_ || (bits & conjunct_linker) != 0;
        } else {
            consonant_ = false;
        }
        last_ = kind;
        return true;
    }

private:
    static std::uint8_t bits_of(char32_t c) noexcept { return find_run(cluster_runs, c); }
    static ClusterKind kind_of(char32_t c, std::uint8_t bits) noexcept {
        if (c >= hangul_syllables && c < hangul_syllables + 11172) {
            return (c - hangul_syllables) % hangul_tail_count == 0 ? ClusterKind::syllable
                                                                   : ClusterKind::tail_syllable;
        }
        return static_cast<ClusterKind>(bits & 15U);
    }

    [[nodiscard]] bool belongs(ClusterKind kind, std::uint8_t bits) const noexcept {
        using enum ClusterKind;
        auto const breaks = [](ClusterKind one) {
            return one == cr || one == lf || one == control;
        };
        if (last_ == cr && kind == lf) return true;
        if (breaks(last_) || breaks(kind)) return false;
        if (last_ == lead &&
            (kind == lead || kind == vowel || kind == syllable || kind == tail_syllable)) {
            return true;
        }
        if ((last_ == syllable || last_ == vowel) && (kind == vowel || kind == tail)) return true;
        if ((last_ == tail_syllable || last_ == tail) && kind == tail) return true;
        if (kind == extend || kind == zwj || kind == spacing || last_ == prepend) return true;
        if (consonant_ && linked_ && (bits & conjunct_consonant) != 0) return true;
        if (picture_ && last_ == zwj && kind == picture) return true;
        return last_ == flag && kind == flag && flags_ % 2 == 1;
    }

    ClusterKind last_{};
    int flags_{0};
    bool picture_{false};
    bool consonant_{false};
    bool linked_{false};
};

}  // namespace

ClassTable const& ClassTable::get() {
    static ClassTable const table;
    return table;
}

ClassTable::ClassTable() : classes_(direct) {
    for (std::size_t i = 0; i < std::size(class_runs); ++i) {
        if (class_runs[i].first >= direct) break;
        auto const end = i + 1 < std::size(class_runs) ? class_runs[i + 1].first : direct;
        std::fill(classes_.begin() + class_runs[i].first, classes_.begin() + std::min(end, direct),
                  class_runs[i].classes);
    }
}

std::uint8_t ClassTable::search(char32_t c) noexcept { return find_run(class_runs, c); }

bool is_numeric(char32_t c) noexcept { return find_range(numeric_ranges, c) != nullptr; }
bool is_punctuation(char32_t c) noexcept {
    return find_range(bert_punctuation_ranges, c) != nullptr;
}
bool is_control(char32_t c) noexcept { return find_range(bert_other_ranges, c) != nullptr; }
bool is_accent(char32_t c) noexcept { return find_range(bert_accent_ranges, c) != nullptr; }
bool is_combining_mark(char32_t c) noexcept { return find_range(mark_ranges, c) != nullptr; }

std::array<char32_t, 2> to_lower(char32_t c) noexcept {
    if (c < 0x80) return {c - U'A' < 26 ? c + 32 : c, 0};
    if (c == 0x130) return {U'i', 0x307};
    auto const* const run = find_range(lower_runs, c);
    if (run == nullptr || (c - run->first) % run->step != 0) return {c, 0};
    return {static_cast<char32_t>(static_cast<std::int32_t>(c) + run->delta), 0};
}

std::uint8_t combining_class(char32_t c) noexcept {
    if (c < 0x300) return 0;
    auto const* const run = find_range(combining_runs, c);
    return run == nullptr ? std::uint8_t{0} : run->value;
}

std::span<char32_t const> decomposition(char32_t c, bool compatible) noexcept {
    if (c < 0xa0) return {};
    if (compatible) {
        if (auto const found = find_decomposition(compatible_decompositions, c); !found.empty()) {
            return found;
        }
    }
    return find_decomposition(canonical_decompositions, c);
}

char32_t compose(char32_t first, char32_t second) noexcept {
    if (second < 0x300) return 0;
    if (auto const hangul = compose_hangul(first, second); hangul != 0) return hangul;
    auto const key = [](Composition const& one) { return std::pair{one.first, one.second}; };
    auto const wanted = std::pair{first, second};
    auto const* const found = std::ranges::lower_bound(compositions, wanted, {}, key);
    return found != std::end(compositions) && key(*found) == wanted ? found->composed : 0;
}

int script_of(char32_t c) noexcept { return find_run(script_runs, c); }

std::size_t cluster_length(std::string_view text) noexcept {
    ClusterJoiner joiner;
    char const* p = text.data();
    char const* const end = p + text.size();
    joiner.begin(next_character(p));
    while (p < end) {
        auto const* const before = p;
        if (!joiner.joins(next_character(p))) return static_cast<std::size_t>(before - text.data());
    }
    return text.size();
}

std::vector<NfcKind> nfc_kinds(char32_t limit) {
    std::vector<NfcKind> kinds(limit, NfcKind::inert);
    auto const set = [&](char32_t first, char32_t last, NfcKind kind) {
        for (auto c = first; c <= last && c < limit; ++c) kinds[c] = kind;
    };
    for (auto const& run : combining_runs) set(run.first, run.last, NfcKind::combining);
    for (auto const& one : compositions) set(one.second, one.second, NfcKind::unsure);
    for (auto const& one : canonical_decompositions) {
        auto const parts = std::span{decomposition_data}.subspan(one.begin, one.length);
        auto joined = parts[0];
        for (auto const part : parts.subspan(1)) joined = compose(joined, part);
        if (joined != one.character) set(one.character, one.character, NfcKind::unsure);
    }
    set(hangul_vowels, hangul_tails + hangul_tail_count, NfcKind::unsure);
    return kinds;
}

}  // namespace tinkxx::text
