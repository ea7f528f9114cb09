#include "text/render/common/json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tinkxx::text::render {
namespace {

std::string again(std::string_view text, JsonStyle const& style = {}) {
    auto const read = read_json(text);
    return read.value ? write_json(*read.value, style) : "error: " + read.error;
}

// Each expectation is what Python 3.11 prints.

TEST(PythonJson, WritesWithBlanksBehindCommasAndColons) {
    EXPECT_EQ(again(R"({"a":[1,2],"b":{}})"), R"({"a": [1, 2], "b": {}})");
    EXPECT_EQ(again("[1,2]", {.item_separator = ","}), "[1,2]");
}

TEST(PythonJson, EscapesAllBeyondAsciiUnlessAskedNotTo) {
    EXPECT_EQ(again("\"é😀\x7f\""), R"("\u00e9\ud83d\ude00\u007f")");
    EXPECT_EQ(again("\"é😀\x7f\"", {.ascii = false}), "\"é😀\x7f\"");
    EXPECT_EQ(again(R"("\ud83d\ude00 \ud83d")"), R"("\ud83d\ude00 \ud83d")");
    EXPECT_EQ(again(R"("\/\b\f\n\r\t\u0001")"), R"("/\b\f\n\r\t\u0001")");
}

TEST(PythonJson, KeepsDigitsOfIntegersAndWritesFloatsAsRepr) {
    EXPECT_EQ(again("123456789012345678901234567890"), "123456789012345678901234567890");
    EXPECT_EQ(again("-0"), "0");
    EXPECT_EQ(again("[1.0,1e16,123456789012345680.0,1e-5,0.0001,-0.0,1E400,5e-324]"),
              "[1.0, 1e+16, 1.2345678901234568e+17, 1e-05, 0.0001, -0.0, Infinity, 5e-324]");
    EXPECT_EQ(again("[NaN,-Infinity]"), "[NaN, -Infinity]");
}

TEST(PythonJson, LetsTheLastOfMembersWithOneNameWinInThePlaceOfTheFirst) {
    EXPECT_EQ(again(R"({"a":1,"b":2,"a":3})"), R"({"a": 3, "b": 2})");
    std::string many = "{";
    for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":0,";
    EXPECT_TRUE(again(many + "\"k7\":1}").find("\"k7\": 1, \"k8\"") != std::string::npos);
}

TEST(PythonJson, SaysWhatIsWrongAndWhere) {
    EXPECT_EQ(again(""), "error: Expecting value: line 1 column 1 (char 0)");
    EXPECT_EQ(again("{\"é\":\n 1,}"),
              "error: Expecting property name enclosed in double quotes: line 2 column 4 (char 9)");
    EXPECT_EQ(again("[1 2]"), "error: Expecting ',' delimiter: line 1 column 4 (char 3)");
    EXPECT_EQ(again(R"({"a" 1})"), "error: Expecting ':' delimiter: line 1 column 6 (char 5)");
    EXPECT_EQ(again("1 2"), "error: Extra data: line 1 column 3 (char 2)");
    EXPECT_EQ(again("\"ab"), "error: Unterminated string starting at: line 1 column 1 (char 0)");
    EXPECT_EQ(again("\"a\nb\""), "error: Invalid control character at: line 1 column 3 (char 2)");
    EXPECT_EQ(again(R"("\x")"), "error: Invalid \\escape: line 1 column 2 (char 1)");
    EXPECT_EQ(again(R"("\u12G4")"), "error: Invalid \\uXXXX escape: line 1 column 3 (char 2)");
    EXPECT_EQ(again("\xef\xbb\xbf{}"),
              "error: Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)");
}

TEST(PythonJson, RefusesWhatIsNestedWithoutBoundInsteadOfUsingUpTheStack) {
    EXPECT_TRUE(again(std::string(1'000'000, '[')).starts_with("error: Lists and objects"));
}

TEST(PythonText, ShowsValuesAsStrAndReprDo) {
    auto const shown = [](std::string_view text) { return to_text(*read_json(text).value); };
    EXPECT_EQ(shown("true"), "True");
    EXPECT_EQ(shown("null"), "None");
    EXPECT_EQ(shown("\"it's\""), "it's");
    EXPECT_EQ(shown(R"(["it's", "a\"b'", "\n\u200b\u00e9", 1.0, {"k": false}])"),
              R"(["it's", 'a"b\'', '\n\u200bé', 1.0, {'k': False}])");
}

}  // namespace
}  // namespace tinkxx::text::render
