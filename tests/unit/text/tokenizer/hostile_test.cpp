// Files and texts that somebody made to do harm: a clear error, soon.
#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include "unit/text/tokenizer/golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tinkxx::text {
namespace {

using ::testing::HasSubstr;

void expect_refused(std::string const& json, std::string const& field, std::string const& what) {
    try {
        (void)TextTokenizer::from_json(json);
        ADD_FAILURE() << json.substr(0, 200);
    } catch (ValidationError const& e) {
        EXPECT_EQ(e.field(), field) << e.what();
        EXPECT_THAT(e.what(), HasSubstr(what));
    }
}

std::string with_model(std::string const& model) { return R"({"model":)" + model + "}"; }
std::string with_pattern(std::string const& regex) {
    return R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + regex +
           R"("},"behavior":"Isolated","invert":false},"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}})";
}

TEST(HostileFile, IsRefusedWherever) {
    auto const json = read_golden("llama2/tokenizer.json");
    for (std::size_t i = 0; i + 3 < json.size(); i += i < 2000 ? 1 : 97) {
        EXPECT_THROW((void)TextTokenizer::from_json(json.substr(0, i)), ValidationError) << i;
    }
}

TEST(HostileFile, MayHaveAnyByteChanged) {
    for (auto const* name : {"llama2", "bert", "unigram_bytes", "metaspace"}) {
        auto json = read_golden(std::string{name} + "/tokenizer.json");
        for (std::size_t i = 0; i < json.size(); i += 211) {
            for (auto const c : {'\0', '"', '{', '}', '[', '9', '-', '\\', '\xff'}) {
                auto const old = std::exchange(json[i], c);
                try {
                    (void)TextTokenizer::from_json(json).encode("the machine größe 中 <s>");
                } catch (ValidationError const&) {
                    // Refused, or understood as something else.
                }
                json[i] = old;
            }
        }
    }
}

TEST(HostileFile, IsToldWhatIsWrong) {
    expect_refused("[]", "byte 0", "expected an object");
    expect_refused("{}", "model", "is missing");
    expect_refused(R"({"version":"2.0"})", "version", "only \"1.0\"");
    expect_refused(R"({"model":{"type":"BPE","vocab":{},"merges":[]}} x)", "byte 48", "unexpected");
    expect_refused(with_model(R"({"type":"Magic","vocab":{}})"), "model.type", "Magic");
    expect_refused(with_model(R"({"type":"BPE","merges":[]})"), "model.vocab", "is missing");
    expect_refused(with_model(R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})"), "model.vocab",
                   "twice");
    expect_refused(with_model(R"({"type":"BPE","vocab":{"a":0,"a":1},"merges":[]})"), "model.vocab",
                   "twice");
    expect_refused(with_model(R"({"type":"BPE","vocab":{"a":4294967295},"merges":[]})"),
                   "model.vocab", "below 16777216");
    expect_refused(with_model(R"({"type":"BPE","vocab":{"a":-1},"merges":[]})"), "model.vocab",
                   "expected a number from 0 to 4294967295 at byte 5 of model.vocab");
    expect_refused(with_model(R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})"),
                   "model.merges[0]", "not in model.vocab");
    expect_refused(with_model(R"({"type":"BPE","vocab":{"a":0},"merges":["a a"]})"),
                   "model.merges[0]", "makes a token");
    expect_refused(with_model(R"({"type":"BPE","vocab":{"a":0},"merges":["a"]})"),
                   "model.merges[0]", "space between");
    expect_refused(with_model(R"({"type":"BPE","vocab":{"a":0},"merges":[["a"]]})"),
                   "model.merges[0]", "1 parts");
    expect_refused(with_model(R"({"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]})"),
                   "model.dropout", "random");
    expect_refused(with_model(R"({"type":"BPE","unk_token":"u","vocab":{"a":0},"merges":[]})"),
                   "model.unk_token", "not in model.vocab");
    expect_refused(with_model(R"({"type":"Unigram","unk_id":5,"vocab":[["a",0]]})"), "model.unk_id",
                   "there are 1");
    expect_refused(
        R"({"normalizer":{"type":"Wish"},"model":{"type":"BPE","vocab":{},"merges":[]}})",
        "normalizer.type", "Wish");
}

TEST(HostileFile, MayNotNestWithoutEnd) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += '[';
    expect_refused(R"({"normalizer":)" + deep, "byte 270", "too deep");
    std::string sequence = R"({"type":"NFC"})";
    for (int i = 0; i < 60; ++i) {
        sequence = R"({"type":"Sequence","normalizers":[)" + sequence + "]}";
    }
    expect_refused(
        R"({"normalizer":)" + sequence + R"(,"model":{"type":"BPE","vocab":{},"merges":[]}})",
        "normalizer", "is not JSON");
}

TEST(HostileFile, MayMakeATokenOfItself) {
    // "ab" is made of "a" and "b", and "a" of "ab" and nothing new: merging still ends.
    auto const tokenizer = TextTokenizer::from_json(with_model(
        R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"aba":3},"merges":["ab a","a b","a b","ab a"]})"));
    EXPECT_EQ(tokenizer.encode("ababab"), (std::vector<Token>{2, 2, 2}));
}

TEST(HostilePattern, IsRefusedIfItIsNone) {
    expect_refused(with_pattern("(a"), "pre_tokenizer.pattern.Regex", "not a regular expression");
    expect_refused(with_pattern(std::string(70'000, 'a')), "pre_tokenizer.pattern.Regex",
                   "70000 bytes");
    expect_refused(with_pattern(std::string(30'000, '[')), "pre_tokenizer.pattern.Regex",
                   "not a regular expression");
}

TEST(HostilePattern, GivesUpWhenItExplodes) {
    auto const tokenizer = TextTokenizer::from_json(with_pattern("(a+a+)+[cd]"));
    try {
        (void)tokenizer.encode(std::string(60, 'a'));
        FAIL();
    } catch (ValidationError const& e) {
        EXPECT_EQ(e.field(), "pre_tokenizer.pattern.Regex");
        EXPECT_THAT(e.what(), HasSubstr("gave up"));
    }
}

TEST(HostilePattern, MayNotCutCharacters) {
    expect_refused(with_pattern(R"(\\C)"), "pre_tokenizer.pattern.Regex",
                   "not a regular expression");
}

std::string repeated(std::string_view key, std::string_view step) {
    std::string list;
    for (int i = 0; i < 40; ++i) {
        list += i == 0 ? "" : ",";
        list += step;
    }
    return R"({"type":"Sequence",")" + std::string{key} + R"(":[)" + list + "]}";
}

std::string with_section(std::string_view name, std::string const& section) {
    return R"({")" + std::string{name} + R"(":)" + section +
           R"(,"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}})";
}

constexpr std::string_view doubling =
    R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";

void expect_growth_refused(std::string const& json, std::string_view text) {
    auto const tokenizer = TextTokenizer::from_json(json);
    EXPECT_THROW((void)tokenizer.encode(text), ValidationError);
    EXPECT_THROW((void)tokenizer.count(text), ValidationError);
    EXPECT_THROW((void)tokenizer.encode_with_offsets(text), ValidationError);
}

TEST(HostileSteps, MayNotDoubleATextAgainAndAgain) {
    expect_growth_refused(with_section("normalizer", repeated("normalizers", doubling)), "a");
    expect_growth_refused(
        with_section("normalizer", repeated("normalizers", R"({"type":"ByteLevel"})")), "é");
    expect_growth_refused(
        with_section(
            "pre_tokenizer",
            repeated(
                "pretokenizers",
                R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false})")),
        "é");
    auto const tokenizer =
        TextTokenizer::from_json(with_section("decoder", repeated("decoders", doubling)));
    EXPECT_THROW((void)tokenizer.decode(std::vector<Token>{0}), ValidationError);
    auto decoder = tokenizer.stream_decoder();
    EXPECT_THROW((void)decoder.push(0), ValidationError);
}

TEST(HostileSteps, MayNotInsertMuchAtOnce) {
    std::string const much(100'000, 'x');
    auto const replace =
        R"({"type":"Replace","pattern":{"String":"a"},"content":")" + much + R"("})";
    expect_growth_refused(with_section("normalizer", replace), "a");
    expect_growth_refused(
        with_section("normalizer", R"({"type":"Prepend","prepend":")" + much + R"("})"), "a");
    auto const tokenizer = TextTokenizer::from_json(with_section("decoder", replace));
    EXPECT_THROW((void)tokenizer.decode(std::vector<Token>{0}), ValidationError);
}

TEST(HostileSteps, LeaveRoomForWhatTokenizersDo) {
    // U+FDFA is 3 bytes and becomes 33; 2,000 of them are more than the least that is allowed.
    std::string text;
    for (int i = 0; i < 2000; ++i) text += "\xef\xb7\xba";
    auto const tokenizer =
        TextTokenizer::from_json(with_section("normalizer", R"({"type":"NFKC"})"));
    EXPECT_EQ(tokenizer.encode(text).size(), 1U);
}

TEST(HostileText, IsAnErrorWithoutAnUnknownToken) {
    auto const tokenizer = TextTokenizer::from_json(
        with_model(R"({"type":"WordLevel","unk_token":"u","vocab":{"a":0}})"));
    EXPECT_EQ(tokenizer.encode("a"), (std::vector<Token>{0}));
    EXPECT_THROW((void)tokenizer.encode("b"), ValidationError);
}

}  // namespace
}  // namespace tinkxx::text
