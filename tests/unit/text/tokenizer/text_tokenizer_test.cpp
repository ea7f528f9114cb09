#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include "unit/text/tokenizer/golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tinkxx::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TextTokenizer, ParsesSpecialTokensUnlessToldOtherwise) {
    auto const tokenizer = golden_tokenizer("qwen2");
    auto const end = tokenizer.id_of("<|end|>").value();
    auto const text = std::string{"a<|end|>"};
    EXPECT_EQ(tokenizer.encode(text).back(), end);
    auto const plain = tokenizer.encode(text, {.special_text = SpecialText::as_text});
    EXPECT_THAT(plain, ::testing::Not(::testing::Contains(end)));
    EXPECT_EQ(tokenizer.decode(plain), text);
    EXPECT_EQ(tokenizer.encode_with_offsets(text, {.special_text = SpecialText::as_text}).tokens,
              plain);
}

TEST(TextTokenizer, RefusesSpecialTokensWhereTheyAreForbidden) {
    auto const tokenizer = golden_tokenizer("qwen2");
    try {
        (void)tokenizer.encode("abc<|end|>", {.special_text = SpecialText::forbid});
        FAIL();
    } catch (ValidationError const& e) {
        EXPECT_EQ(e.field(), "text");
        EXPECT_EQ(e.value(), "<|end|>");
        EXPECT_THAT(e.what(), HasSubstr("at byte 3"));
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a<tool>", {.special_text = SpecialText::forbid})),
              "a<tool>");
}

TEST(TextTokenizer, RefusesTextThatIsNotUtf8) {
    auto const tokenizer = golden_tokenizer("qwen2");
    try {
        (void)tokenizer.encode("ab\xff");
        FAIL();
    } catch (ValidationError const& e) {
        EXPECT_EQ(e.field(), "text");
        EXPECT_THAT(e.what(), HasSubstr("at byte 2"));
    }
}

TEST(TextTokenizer, ReplacesBrokenSequencesIfAsked) {
    auto const tokenizer = golden_tokenizer("qwen2");
    EncodeOptions const options{.invalid_utf8 = InvalidUtf8::replace};
    // Each maximal part of a character counts once: as in Python.
    std::string const broken = "a\xe4\xb8z\xff\xf0\x9f\x98";
    auto const tokens = tokenizer.encode(broken, options);
    EXPECT_EQ(tokens, tokenizer.encode("a\ufffdz\ufffd\ufffd"));
    auto const encoding = tokenizer.encode_with_offsets(broken, options);
    EXPECT_EQ(encoding.tokens, tokens);
    EXPECT_EQ(encoding.ranges.front(), (TextRange{.begin = 0, .end = 1}));
    EXPECT_EQ(encoding.ranges.back(), (TextRange{.begin = 5, .end = 8}));
}

TEST(TextTokenizer, EncodesABatchInOrder) {
    auto const tokenizer = golden_tokenizer("llama3");
    std::vector<std::string> texts;
    for (int i = 0; i < 200; ++i) texts.push_back("the machine " + std::to_string(i * 977));
    std::vector<std::string_view> const views{texts.begin(), texts.end()};
    for (auto const threads : {0U, 1U, 4U}) {
        auto const batch = tokenizer.encode_batch(views, {}, threads);
        ASSERT_EQ(batch.size(), texts.size());
        for (std::size_t i = 0; i < texts.size(); ++i) {
            EXPECT_EQ(batch[i], tokenizer.encode(texts[i]));
        }
    }
    EXPECT_TRUE(tokenizer.encode_batch({}).empty());
}

TEST(TextTokenizer, GivesTheErrorOfTheFirstTextOfABatchThatHasOne) {
    auto const tokenizer = golden_tokenizer("llama3");
    std::vector<std::string_view> const texts{"a", "b\xff", "\xff"};
    try {
        (void)tokenizer.encode_batch(texts, {}, 3);
        FAIL();
    } catch (ValidationError const& e) {
        EXPECT_THAT(e.what(), HasSubstr("at byte 1"));
    }
}

/// Words in which all ways of merging are used: the cache, cuts, backtracking and the heap.
TEST(TextTokenizer, MergesLongWordsAsShortOnes) {
    std::mt19937 random{3};
    for (auto const* name : {"qwen2", "llama3", "gpt2", "o200k", "llama2", "metaspace"}) {
        auto const tokenizer = golden_tokenizer(name);
        for (int i = 0; i < 300; ++i) {
            std::string word;
            auto const length = 1 + random() % 120;
            while (word.size() < length) {
                constexpr std::string_view letters = "theinrsaaaoe";
                if (random() % 9 == 0) {
                    word += random() % 2 == 0 ? "机" : "ü";
                } else {
                    word += letters[random() % letters.size()];
                }
            }
            // Places are found by the plain algorithm, without any of these.
            ASSERT_EQ(tokenizer.encode(word), tokenizer.encode_with_offsets(word).tokens) << word;
        }
    }
}

TEST(TextTokenizer, TakesOneLongWord) {
    auto const tokenizer = golden_tokenizer("qwen2");
    std::string const word(1'000'000, 'a');
    auto const tokens = tokenizer.encode(word);
    EXPECT_EQ(tokenizer.decode(tokens), word);
    EXPECT_EQ(tokenizer.count(word), tokens.size());
}

TEST(TextTokenizer, LooksTokensUp) {
    auto const tokenizer = golden_tokenizer("llama2");
    EXPECT_EQ(tokenizer.id_of("<s>"), 1);
    EXPECT_EQ(tokenizer.text_of(1), "<s>");
    EXPECT_TRUE(tokenizer.is_special(1));
    EXPECT_FALSE(tokenizer.is_special(100));
    EXPECT_FALSE(tokenizer.id_of("no such token"));
    EXPECT_EQ(tokenizer.bytes_of(tokenizer.id_of("<0xE4>").value()), "\xe4");
    EXPECT_EQ(tokenizer.bytes_of(tokenizer.id_of("▁t").value()), " t");
    EXPECT_EQ(tokenizer.added_tokens().size(), 3U);
    EXPECT_GE(tokenizer.id_limit(), tokenizer.vocabulary_size());
}

TEST(TextTokenizer, KnowsTheTokensThatAreNamed) {
    auto const json = read_golden("llama2/tokenizer.json");
    auto const tokenizer = TextTokenizer::from_json(json, {.bos = "<s>", .eos = "</s>"});
    EXPECT_EQ(tokenizer.bos(), 1);
    EXPECT_EQ(tokenizer.eos(), 2);
    EXPECT_FALSE(tokenizer.pad());
    EXPECT_FALSE(TextTokenizer::from_json(json).bos());
}

TEST(TextTokenizer, LeavesOutIdsThatItDoesNotHave) {
    auto const tokenizer = golden_tokenizer("qwen2");
    auto tokens = tokenizer.encode("the");
    tokens.insert(tokens.begin(), {-1, 1'000'000});
    EXPECT_EQ(tokenizer.decode(tokens), "the");
}

TEST(StreamDecoder, HoldsPartsOfACharacterBack) {
    auto const tokenizer = golden_tokenizer("gpt2");
    auto decoder = tokenizer.stream_decoder();
    std::vector<Token> bytes;
    for (auto const* text : {"ð", "Ł", "ĺ", "Ģ"}) bytes.push_back(tokenizer.id_of(text).value());
    EXPECT_EQ(decoder.push(bytes[0]), "");
    EXPECT_EQ(decoder.push(bytes[1]), "");
    EXPECT_EQ(decoder.push(bytes[2]), "");
    EXPECT_EQ(decoder.push(bytes[3]), "😀");
    EXPECT_EQ(decoder.push(bytes[0]), "");
    EXPECT_EQ(decoder.finish(), "\ufffd");
    EXPECT_EQ(decoder.finish(), "");
}

TEST(TextTokenizer, MayBeUsedByManyThreads) {
    auto const tokenizer = golden_tokenizer("llama3");
    std::string text;
    for (int i = 0; i < 50; ++i) text += "Training a model takes time; 机器学习需要很多的时间。";
    auto const expected = tokenizer.encode(text);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 20; ++round) EXPECT_EQ(tokenizer.encode(text), expected);
        });
    }
}

TEST(CharacterRanges, CountCharacters) {
    std::vector<TextRange> const ranges{{0, 2}, {2, 5}, {0, 5}};
    EXPECT_THAT(to_character_ranges("é中", ranges),
                ElementsAre(TextRange{0, 1}, TextRange{1, 2}, TextRange{0, 2}));
}

}  // namespace
}  // namespace tinkxx::text
