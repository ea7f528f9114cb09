#include "text/regex/scanners.hpp"
#include "text/regex/pattern.hpp"
#include "unit/text/tokenizer/golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {
namespace {

using ::testing::ElementsAre;

/// Characters that the known patterns treat differently, and some that PCRE2's Unicode knows.
constexpr std::array<std::string_view, 54> alphabet{
    "a",  "b",  "s",      "t", "l",  "L",      "E",      "r",  "e",    "v",  "d",
    "M",  "Z",  "'",      "'", "'s", "1",      "7",      " ",  " ",    "  ", "\n",
    "\r", "\t", "\x0b",   "/", ".",  "-",      "_",      "$",  "\x01", "é",  "É",
    "ß",  "ſ",  "ǅ",      "ʰ", "ж",  "Ж",      "中",     "一", "か",   "ー", "・",
    "゙",   "あ", "\u0301", "٣", "½",  "\u00a0", "\u0085", "😀", "〇",   "⺀"};

std::string random_text(std::mt19937& random) {
    std::string text;
    auto const pieces = random() % 24;
    for (std::size_t i = 0; i < pieces; ++i) text += alphabet[random() % alphabet.size()];
    return text;
}

std::vector<Piece> scanned(KnownPattern pattern, std::string_view text, std::size_t batch_size) {
    std::vector<Piece> all;
    std::vector<Piece> batch(batch_size);
    ScanState state;
    while (auto const count = scan(pattern, text, state, batch)) {
        all.insert(all.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return all;
}

/// All parts of a text, matched or between matches.
std::vector<Piece> cut_at(Pattern const& pattern, std::string_view text) {
    std::vector<Piece> matches;
    pattern.find_all(text, matches);
    std::vector<Piece> all;
    std::size_t at = 0;
    for (auto const& match : matches) {
        if (match.begin > at) all.push_back({.begin = at, .end = match.begin});
        all.push_back(match);
        at = match.end;
    }
    if (at < text.size()) all.push_back({.begin = at, .end = text.size()});
    return all;
}

struct Known {
    char const* name;
    Dialect dialect;
    std::string_view regex;
};

class KnownPatternTest : public ::testing::TestWithParam<Known> {};

TEST_P(KnownPatternTest, CutsAsTheRegularExpression) {
    auto const known = known_pattern(GetParam().regex);
    ASSERT_TRUE(known);
    Pattern const pattern{GetParam().regex, GetParam().dialect, "pattern"};
    std::mt19937 random{7};
    for (int i = 0; i < 20'000; ++i) {
        auto const text = random_text(random);
        auto const expected = cut_at(pattern, text);
        ASSERT_EQ(scanned(*known, text, 64), expected) << text;
        ASSERT_EQ(scanned(*known, text, 1), expected) << text;
    }
}

#define TINKXX_CAPITALS R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define TINKXX_SMALL R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define TINKXX_TAIL R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"

INSTANTIATE_TEST_SUITE_P(
    All, KnownPatternTest,
    ::testing::Values(
        Known{"gpt2", Dialect::ruby,
              R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
        Known{"gpt2_tiktoken", Dialect::rust,
              R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
        Known{
            "cl100k", Dialect::rust,
            R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
        Known{
            "llama3", Dialect::ruby,
            R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
        Known{
            "qwen2", Dialect::ruby,
            R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
        Known{
            "qwen35", Dialect::ruby,
            R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
        Known{"o200k", Dialect::rust,
              R"([^\r\n\p{L}\p{N}]?)" TINKXX_CAPITALS "*" TINKXX_SMALL "+" TINKXX_TAIL
              R"(|[^\r\n\p{L}\p{N}]?)" TINKXX_CAPITALS "+" TINKXX_SMALL "*" TINKXX_TAIL
              R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
        Known{"kimi", Dialect::rust,
              R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
              R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)" TINKXX_TAIL
              R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
              R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)" TINKXX_TAIL
              R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
        Known{"mistral", Dialect::ruby,
              R"([^\r\n\p{L}\p{N}]?)" TINKXX_CAPITALS "*" TINKXX_SMALL "+"
              R"(|[^\r\n\p{L}\p{N}]?)" TINKXX_CAPITALS "+" TINKXX_SMALL "*"
              R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
        Known{"deepseek", Dialect::ruby,
              "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?["
              "\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"}),
    [](auto const& one) { return std::string{one.param.name}; });

TEST(KnownSequence, CutsAsItsPatternsInTurn) {
    std::array<std::string_view, 3> const regexes{
        R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\"
        "p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};
    auto const known = known_sequence(regexes);
    ASSERT_TRUE(known);
    std::mt19937 random{11};
    for (int i = 0; i < 20'000; ++i) {
        auto const text = random_text(random);
        std::vector<Piece> expected{{.begin = 0, .end = text.size()}};
        for (auto const regex : regexes) {
            static thread_local std::vector<std::pair<std::string_view, Pattern>> compiled;
            auto found =
                std::ranges::find(compiled, regex, &std::pair<std::string_view, Pattern>::first);
            if (found == compiled.end()) {
                compiled.emplace_back(regex, Pattern{regex, Dialect::ruby, "pattern"});
                found = std::prev(compiled.end());
            }
            std::vector<Piece> next;
            for (auto const& piece : expected) {
                auto const part =
                    std::string_view{text}.substr(piece.begin, piece.end - piece.begin);
                for (auto const& one : cut_at(found->second, part)) {
                    next.push_back(
                        {.begin = piece.begin + one.begin, .end = piece.begin + one.end});
                }
            }
            expected = std::move(next);
        }
        ASSERT_EQ(scanned(*known, text, 64), expected) << text;
        ASSERT_EQ(scanned(*known, text, 1), expected) << text;
    }
}

TEST(KnownPatternOf, IsNoneForOtherTexts) {
    EXPECT_FALSE(known_pattern(R"(\p{L}+)"));
    EXPECT_FALSE(known_pattern(""));
}

TEST(PatternTest, KnowsTheSpacesOfTheLibraryThatWroteIt) {
    Pattern const pattern{R"(\s)", Dialect::ruby, "pattern"};
    std::vector<Piece> matches;
    pattern.find_all("a\xc2\x85\xe3\x80\x80z", matches);
    EXPECT_THAT(matches, ElementsAre(Piece{1, 3}, Piece{3, 6}));
}

TEST(PatternTest, IntersectsClasses) {
    Pattern const pattern{R"([\p{L}&&[^\p{Han}]]+)", Dialect::rust, "pattern"};
    std::vector<Piece> matches;
    pattern.find_all("ab中c", matches);
    EXPECT_THAT(matches, ElementsAre(Piece{0, 2}, Piece{5, 6}));
}

TEST(PatternTest, RepeatsAnIntervalInRuby) {
    std::vector<Piece> matches;
    Pattern{"a{1,2}+", Dialect::ruby, "pattern"}.find_all("aaaaa", matches);
    EXPECT_THAT(matches, ElementsAre(Piece{0, 5}));
}

TEST(PatternTest, CountsNoEmptyMatchBesideAnother) {
    std::vector<Piece> matches;
    Pattern{"x*", Dialect::ruby, "pattern"}.find_all("axb", matches);
    EXPECT_THAT(matches, ElementsAre(Piece{0, 0}, Piece{1, 2}, Piece{3, 3}));
}

}  // namespace
}  // namespace tinkxx::text
