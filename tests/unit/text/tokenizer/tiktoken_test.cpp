#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t bits = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            bits =
                bits << 8U | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            text += i * 8 / 6 + j > bytes.size() * 8 / 6 ? '=' : digits[bits >> (18 - 6 * j) & 63U];
        }
    }
    return text;
}

/// All bytes, and these.
std::string ranks(std::vector<std::string> const& more) {
    std::string file;
    int rank = 0;
    for (int byte = 0; byte < 256; ++byte) {
        file +=
            base64(std::string(1, static_cast<char>(byte))) + ' ' + std::to_string(rank++) + '\n';
    }
    for (auto const& one : more) file += base64(one) + ' ' + std::to_string(rank++) + '\n';
    return file;
}

constexpr std::string_view words = R"(\p{L}+|\s+|[^\p{L}\s]+)";

TEST(Tiktoken, MergesByRank) {
    auto const file = ranks({"bc", "ab", "abc", " a"});
    auto const tokenizer = TextTokenizer::from_tiktoken({.ranks = file, .pattern = words});
    EXPECT_THAT(tokenizer.encode("abcd"), ElementsAre(258, 'd'));  // by way of "bc"
    EXPECT_THAT(tokenizer.encode("abbc"), ElementsAre(257, 256));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab ü 中")), "ab ü 中");
    EXPECT_EQ(tokenizer.vocabulary_size(), 260U);
}

TEST(Tiktoken, FindsSpecialTokens) {
    auto const file = ranks({});
    auto const tokenizer = TextTokenizer::from_tiktoken(
        {.ranks = file, .pattern = words, .special_tokens = {{"<|é end|>", 300}}},
        {.eos = "<|é end|>"});
    EXPECT_THAT(tokenizer.encode("a<|é end|>"), ElementsAre('a', 300));
    EXPECT_EQ(tokenizer.decode(std::vector<Token>{300}), "<|é end|>");
    EXPECT_EQ(tokenizer.decode(std::vector<Token>{300}, {.skip_special = true}), "");
    EXPECT_EQ(tokenizer.eos(), 300);
    EXPECT_EQ(tokenizer.id_limit(), 301U);
}

TEST(Tiktoken, RefusesBrokenFiles) {
    auto const refused = [](std::string const& file, std::string const& what) {
        try {
            (void)TextTokenizer::from_tiktoken({.ranks = file, .pattern = words});
            ADD_FAILURE() << what;
        } catch (ValidationError const& e) {
            EXPECT_EQ(e.field(), "ranks");
            EXPECT_THAT(e.what(), HasSubstr(what));
        }
    };
    refused("YQ== x\n", "line 1");
    refused("Y*== 1\n", "line 1");
    refused("YQ== 1\nYQ== 2\n", "line 2");
    refused("YQ== 1\nYg== 1\n", "line 2");
    refused("YQ== 99999999999\n", "line 1");
    refused("YQ== 1\n", "no token for the byte 0");
}

TEST(Tiktoken, RefusesSpecialTokensThatAreTaken) {
    auto const file = ranks({});
    Tiktoken const tiktoken{.ranks = file, .pattern = words, .special_tokens = {{"<s>", 5}}};
    EXPECT_THROW((void)TextTokenizer::from_tiktoken(tiktoken), ValidationError);
}

}  // namespace
}  // namespace tinkxx::text
