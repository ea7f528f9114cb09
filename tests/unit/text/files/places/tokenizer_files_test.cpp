#include <tinkxx/error.hpp>
#include <tinkxx/text/load.hpp>

#include "support/text_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::text {
namespace {

using test::TextFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

constexpr std::string_view sentencepiece = "\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02";

TEST(TokenizerFiles, AreTheJsonAndWhatLiesBesideIt) {
    TextFolder const folder;
    auto const json = folder.write("tokenizer.json", "{}");
    auto const config = folder.write("tokenizer_config.json", "{}");
    auto const map = folder.write("special_tokens_map.json", "{}");
    auto const chat = folder.write("chat_template.jinja", "");
    folder.write("tokenizer.model", sentencepiece);  // the same vocabulary in another format
    TokenizerFiles const expected{.tokenizer = json,
                                  .format = TokenizerFormat::json,
                                  .config = config,
                                  .special_tokens_map = map,
                                  .chat_template = chat};
    EXPECT_EQ(find_tokenizer_files(folder.path()), expected);
    EXPECT_EQ(find_tokenizer_files(json), expected);
}

TEST(TokenizerFiles, OfAFileWithANameOfItsOwnAreThatFileAlone) {
    TextFolder const folder;
    auto const json = folder.write("gpt2.json", "\xef\xbb\xbf \n{}");
    folder.write("tokenizer_config.json", "{}");
    EXPECT_EQ(find_tokenizer_files(json), TokenizerFiles{.tokenizer = json});
}

TEST(TokenizerFiles, CanBeRanksOfTiktoken) {
    for (auto const* name : {"tiktoken.model", "o200k_base.tiktoken", "tokenizer.model"}) {
        TextFolder const folder;
        auto const ranks = folder.write(name, "IQ== 0\nIg== 1\n");
        auto const found = find_tokenizer_files(folder.path());
        EXPECT_EQ(found.tokenizer, ranks);
        EXPECT_EQ(found.format, TokenizerFormat::tiktoken);
    }
}

TEST(TokenizerFiles, OfASentencePieceModelAreRefusedWithTheWayToMakeAJson) {
    TextFolder const folder;
    folder.write("tokenizer.model", sentencepiece);
    auto const message = ThrowsMessage<ValidationError>(
        AllOf(HasSubstr("SentencePiece"), HasSubstr("save_pretrained('" + folder.path().string())));
    EXPECT_THAT([&] { (void)find_tokenizer_files(folder.path()); }, message);
    EXPECT_THAT([&] { (void)find_tokenizer_files(folder.path() / "tokenizer.model"); }, message);
}

TEST(TokenizerFiles, ThatAreNotThereAreNamed) {
    TextFolder const folder;
    EXPECT_THAT([&] { (void)find_tokenizer_files(folder.path()); },
                ThrowsMessage<ValidationError>(
                    AllOf(HasSubstr("tokenizer.json"), HasSubstr(folder.path().string()))));
    EXPECT_THAT([&] { (void)find_tokenizer_files(folder.path() / "none"); },
                ThrowsMessage<ValidationError>(HasSubstr("no file or folder")));
    folder.write("a.tiktoken", "IQ== 0\n");
    folder.write("b.tiktoken", "IQ== 0\n");
    EXPECT_THAT([&] { (void)find_tokenizer_files(folder.path()); },
                ThrowsMessage<ValidationError>(
                    AllOf(HasSubstr("a.tiktoken, b.tiktoken"), HasSubstr("name one of them"))));
    folder.write("tokenizer.json", "not JSON");
    EXPECT_THAT([&] { (void)find_tokenizer_files(folder.path()); },
                ThrowsMessage<ValidationError>(HasSubstr("neither a tokenizer.json")));
}

TEST(TokenizerConfig, TellsNamedTokensAndTheTemplate) {
    TextFolder const folder;
    folder.write("tokenizer.json", "{}");
    folder.write("tokenizer_config.json", R"({
        "bos_token": {"__type": "AddedToken", "content": "<s>"}, "eos_token": "</s>",
        "pad_token": null, "tokenizer_class": "LlamaTokenizer", "chat_template": "{{ 1 }}",
        "added_tokens_decoder": {"7": {"content": "<b>", "special": true, "lstrip": true},
                                 "2": {"content": "<a>", "normalized": true}}})");
    folder.write(
        "special_tokens_map.json",
        R"({"bos_token": "<other>", "pad_token": {"content": "<pad>"}, "unk_token": "<u>"})");
    auto const config = read_tokenizer_config(find_tokenizer_files(folder.path()));
    EXPECT_EQ(config.named.bos, "<s>");
    EXPECT_EQ(config.named.eos, "</s>");
    EXPECT_EQ(config.named.pad, "<pad>");
    EXPECT_EQ(config.unk, "<u>");
    EXPECT_EQ(config.tokenizer_class, "LlamaTokenizer");
    EXPECT_EQ(config.chat_template, "{{ 1 }}");
    EXPECT_THAT(config.added_tokens,
                ElementsAre(AddedToken{.id = 2, .text = "<a>", .normalized = true},
                            AddedToken{.id = 7, .text = "<b>", .special = true, .lstrip = true}));
}

TEST(TokenizerConfig, HasTemplatesWithNames) {
    TextFolder const folder;
    folder.write("tokenizer.json", "{}");
    folder.write("tokenizer_config.json", R"({"chat_template": [
        {"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]})");
    auto const config = read_tokenizer_config(find_tokenizer_files(folder.path()));
    EXPECT_EQ(config.chat_template, "d");
    EXPECT_THAT(config.chat_templates,
                UnorderedElementsAre(Pair("default", "d"), Pair("tool_use", "t")));
}

TEST(TokenizerConfig, TakesTheTemplateOfItsOwnFileFirst) {
    TextFolder const folder;
    folder.write("tokenizer.json", "{}");
    folder.write("tokenizer_config.json", R"({"chat_template": "old"})");
    folder.write("chat_template.jinja", "new\n");
    folder.write("additional_chat_templates/rag.jinja", "r");
    auto const config = read_tokenizer_config(find_tokenizer_files(folder.path()));
    EXPECT_EQ(config.chat_template, "new\n");
    EXPECT_THAT(config.chat_templates, UnorderedElementsAre(Pair("rag", "r")));
}

TEST(TokenizerConfig, ThatIsWrongNamesFileAndMember) {
    for (auto const& [text, member] : std::vector<std::pair<std::string, std::string>>{
             {"[]", "not a JSON object"},
             {"{", "not JSON"},
             {R"({"bos_token": 7})", "bos_token"},
             {R"({"chat_template": 7})", "chat_template"},
             {R"({"chat_template": [{"name": "x"}]})", "chat_template"},
             {R"({"added_tokens_decoder": {"x": {"content": "a"}}})", "added_tokens_decoder"}}) {
        TextFolder const folder;
        folder.write("tokenizer.json", "{}");
        folder.write("tokenizer_config.json", text);
        EXPECT_THAT([&] { (void)read_tokenizer_config(find_tokenizer_files(folder.path())); },
                    ThrowsMessage<ValidationError>(
                        AllOf(HasSubstr("tokenizer_config.json"), HasSubstr(member))))
            << text;
    }
}

/// A rank for each byte, which is the byte.
std::string ranks_of_bytes() {
    constexpr std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string ranks;
    for (unsigned byte = 0; byte < 256; ++byte) {
        ranks += letters[byte >> 2U];
        ranks += letters[(byte & 3U) << 4U];
        ranks += "== " + std::to_string(byte) + "\n";
    }
    return ranks;
}

TEST(LoadTokenizer, TakesAPatternForRanksThatNobodyKnows) {
    TextFolder const folder;
    auto const file = folder.write("own.tiktoken", ranks_of_bytes() + "YWI= 256\n");
    EXPECT_THAT(
        [&] { (void)load_tokenizer(file); },
        ThrowsMessage<ValidationError>(AllOf(HasSubstr("pattern"), HasSubstr("own.tiktoken"))));
    auto const loaded = load_tokenizer(
        file, {.tiktoken_pattern = R"([ab]+|\s)", .tiktoken_special_tokens = {{"<end>", 257}}});
    EXPECT_THAT(loaded.tokenizer.encode("ab a<end>"), ElementsAre(256, ' ', 'a', 257));
}

TEST(LoadTokenizer, NamesTheSpecialTokensBehindTheRanksOfKimi) {
    TextFolder const folder;
    folder.write("tiktoken.model", ranks_of_bytes());
    folder.write("tokenizer_config.json", R"({"tokenizer_class": "TikTokenTokenizer",
        "bos_token": "[BOS]", "added_tokens_decoder": {"256": {"content": "[BOS]"}}})");
    auto const tokenizer = load_tokenizer(folder.path()).tokenizer;
    EXPECT_EQ(tokenizer.bos(), 256);
    EXPECT_EQ(tokenizer.id_of("<|reserved_token_257|>"), 257);
    EXPECT_EQ(tokenizer.id_limit(), 256U + 258U);
    EXPECT_THAT(tokenizer.encode("a[BOS]"), ElementsAre('a', 256));
}

TEST(LoadTokenizer, KnowsWhatTheNamesOfFilesTell) {
    TextFolder const folder;
    auto const file = folder.write("cl100k_base.tiktoken", ranks_of_bytes());
    auto const tokenizer = load_tokenizer(file).tokenizer;
    EXPECT_EQ(tokenizer.id_of("<|endofprompt|>"), 100276);
    EXPECT_THAT(tokenizer.encode("a<|endoftext|>"), ElementsAre('a', 100257));
}

TEST(LoadTokenizer, ReadsTheTokenizerModelOfLlama3) {
    TextFolder const folder;
    folder.write("tokenizer.model", ranks_of_bytes());
    auto const tokenizer = load_tokenizer(folder.path()).tokenizer;
    EXPECT_EQ(tokenizer.id_of("<|begin_of_text|>"), 256);
    EXPECT_EQ(tokenizer.id_of("<|start_header_id|>"), 262);
    EXPECT_EQ(tokenizer.id_of("<|eot_id|>"), 265);
    EXPECT_EQ(tokenizer.id_limit(), 512U);
}

}  // namespace
}  // namespace tinkxx::text
