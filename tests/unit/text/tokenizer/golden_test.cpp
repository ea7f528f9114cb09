// What Hugging Face's `tokenizers` does with small tokenizers of our own, recorded by
// tests/golden/text/make_vectors.py.
#include "unit/text/tokenizer/golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::text {
namespace {

namespace json = boost::json;

class GoldenTokenizer : public ::testing::TestWithParam<char const*> {
protected:
    GoldenTokenizer()
        : tokenizer_{golden_tokenizer(GetParam())},
          cases_(json::parse(read_golden(std::string{GetParam()} + "/cases.json")).as_array()) {}

    template <class T>
    static T get(json::value const& one, char const* key) {
        return json::value_to<T>(one.at(key));
    }

    TextTokenizer tokenizer_;
    json::array cases_;
};

TEST_P(GoldenTokenizer, EncodesAsRecorded) {
    ASSERT_GT(cases_.size(), 30U);
    for (auto const& one : cases_) {
        auto const text = get<std::string>(one, "text");
        auto const ids = get<std::vector<Token>>(one, "ids");
        auto const plain = get<std::vector<Token>>(one, "plain");
        EXPECT_EQ(tokenizer_.encode(text), ids) << text;
        EXPECT_EQ(tokenizer_.encode(text), ids) << "from the cache: " << text;
        EXPECT_EQ(tokenizer_.encode(text, {.add_special = false}), plain) << text;
        EXPECT_EQ(tokenizer_.count(text), ids.size()) << text;
        EXPECT_EQ(tokenizer_.count(text, {.add_special = false}), plain.size()) << text;
    }
}

// A model makes tables for long words once it has seen many; what they give is the same.
TEST_P(GoldenTokenizer, EncodesTheSameWithTheTablesForLongWords) {
    std::string text;
    for (auto const& one : cases_) text += get<std::string>(one, "text");
    auto const before = tokenizer_.encode(text, {.special_text = SpecialText::as_text});
    (void)tokenizer_.encode(std::string(140'000, 'a'));
    EXPECT_EQ(tokenizer_.encode(text, {.special_text = SpecialText::as_text}), before);
    for (auto const& one : cases_) {
        auto const ids = get<std::vector<Token>>(one, "ids");
        EXPECT_EQ(tokenizer_.encode(get<std::string>(one, "text")), ids);
    }
}

TEST_P(GoldenTokenizer, GivesOffsetsAsRecorded) {
    for (auto const& one : cases_) {
        auto const text = get<std::string>(one, "text");
        std::vector<TextRange> expected;
        for (auto const& [begin, end] :
             get<std::vector<std::pair<std::uint64_t, std::uint64_t>>>(one, "offsets")) {
            expected.push_back({.begin = begin, .end = end});
        }
        auto const encoding = tokenizer_.encode_with_offsets(text);
        EXPECT_EQ(encoding.tokens, get<std::vector<Token>>(one, "ids")) << text;
        EXPECT_EQ(to_character_ranges(text, encoding.ranges), expected) << text;
    }
}

TEST_P(GoldenTokenizer, DecodesAsRecorded) {
    for (auto const& one : cases_) {
        auto const ids = get<std::vector<Token>>(one, "ids");
        EXPECT_EQ(tokenizer_.decode(ids), get<std::string>(one, "decoded"));
        EXPECT_EQ(tokenizer_.decode(ids, {.skip_special = true}), get<std::string>(one, "skipped"));
    }
}

TEST_P(GoldenTokenizer, DecodesTheSameInPieces) {
    for (auto const& one : cases_) {
        auto decoder = tokenizer_.stream_decoder();
        std::string text;
        for (auto const id : get<std::vector<Token>>(one, "ids")) {
            auto const piece = decoder.push(id);
            EXPECT_TRUE(piece.empty() || (static_cast<unsigned char>(piece[0]) & 0xc0) != 0x80);
            text += piece;
        }
        text += decoder.finish();
        EXPECT_EQ(text, get<std::string>(one, "decoded"));
    }
}

TEST_P(GoldenTokenizer, FindsEachTokenByItsText) {
    for (Token id = 0; static_cast<std::size_t>(id) < tokenizer_.id_limit(); ++id) {
        auto const text = tokenizer_.text_of(id);
        if (!text) continue;
        EXPECT_EQ(tokenizer_.id_of(*text), id) << *text;
        EXPECT_TRUE(tokenizer_.bytes_of(id)) << *text;
    }
    EXPECT_FALSE(tokenizer_.text_of(static_cast<Token>(tokenizer_.id_limit())));
    EXPECT_FALSE(tokenizer_.text_of(-1));
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, GoldenTokenizer,
                         ::testing::Values("bert", "byte_normalizer", "command", "contiguous",
                                           "deepseek", "fixed", "gpt2", "llama2", "llama3",
                                           "mapped", "merged", "metaspace", "o200k", "prefix",
                                           "qwen2", "roberta", "scripts", "suffix", "unigram",
                                           "unigram_bytes", "words"),
                         [](auto const& one) { return std::string{one.param}; });

}  // namespace
}  // namespace tinkxx::text
