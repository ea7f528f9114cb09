#include "wire/json/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace tinkxx::wire {

struct Point {
    std::int64_t x{0};
    double y{1.5};
    std::optional<std::string> name{};
    std::vector<std::int32_t> list{};
};
static void read(JsonIn const& in, Point& out) {
    in.tag("type", "point");
    out.x = in.required<std::int64_t>("x");
    out.y = in.member_or("y", out.y);
    out.name = in.optional<std::string>("name");
    out.list = in.member_or<std::vector<std::int32_t>>("list", {});
}
struct Points {
    std::vector<Point> points{};
    std::map<std::string, Point> named{};
};
static void read(JsonIn const& in, Points& out) {
    out.points = in.member_or<std::vector<Point>>("points", {});
    out.named = in.member_or<std::map<std::string, Point>>("named", {});
}

namespace {

using namespace std::string_view_literals;

std::string problem(std::string_view text) {
    auto const result = decode_json<Points>("test", text);
    return result ? "none" : std::string{result.error().field()} + ": " + result.error().what();
}

double parsed_double(std::string_view text) {
    return parse_json("test", text).value().as_array().at(0).as_double();
}

TEST(Json, ReadsRequiredOptionalAndDefaultedMembers) {  // R-CONF-09
    auto const full = decode_json<Point>(
        "t", R"({"x": 3, "y": 2, "name": "n", "list": [1, -2], "type": "point"})");
    ASSERT_TRUE(full.has_value());
    EXPECT_EQ(full->x, 3);
    EXPECT_EQ(full->y, 2);
    EXPECT_EQ(full->name, "n");
    EXPECT_EQ(full->list, (std::vector<std::int32_t>{1, -2}));

    auto const least = decode_json<Point>("t", R"({"x": 3, "name": null, "type": null})");
    ASSERT_TRUE(least.has_value());
    EXPECT_EQ(least->y, 1.5);
    EXPECT_EQ(least->name, std::nullopt);
}

TEST(Json, IgnoresMembersThatNobodyAsksFor) {  // R-CONF-09
    EXPECT_TRUE(decode_json<Point>("t", R"({"new": {"a": [1]}, "x": 3, "y2": null})").has_value());
}

TEST(Json, NamesThePlaceAndTheValueOfWhatIsWrong) {  // R-CONF-09
    auto const result = decode_json<Points>("test", R"({"points": [{"x": 1}, {"x": "one"}]})");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind(), ErrorKind::validation);
    EXPECT_EQ(result.error().field(), "/points/1/x");
    EXPECT_EQ(result.error().value(), R"("one")");
    EXPECT_STREQ(
        result.error().what(),
        "test: /points/1/x should be an integer of 64 bits, and is \"one\"; the server may "
        "speak another version of the API");
    EXPECT_TRUE(problem(R"({"points": [{}]})").starts_with("/points/0/x: test: the answer has no"));
    EXPECT_TRUE(problem(R"({"named": {"a/b~": {"x": []}}})").starts_with("/named/a~1b~0/x:"));
    EXPECT_TRUE(problem(R"({"points": [{"x": 1, "list": [1, 2, 3000000000]}]})")
                    .starts_with("/points/0/list/2:"));
    EXPECT_TRUE(problem(R"({"points": [{"x": 1, "type": "line"}]})")
                    .starts_with(R"(/points/0/type: test: /points/0/type should be "point")"));
    EXPECT_TRUE(problem("[1]").starts_with(": test: the answer should be an object"));
    EXPECT_TRUE(problem("3").starts_with(": test: the answer should be an object, and is 3"));
}

TEST(Json, TakesANullForAMissingMemberOnlyWhereItIsOptional) {  // R-CONF-21
    EXPECT_TRUE(problem(R"({"points": [{"x": 1, "y": null}]})").starts_with("/points/0/y:"));
}

TEST(Json, ShowsLongValuesShortened) {
    auto const result = decode_json<Point>(
        "t", R"({"x": ")" + std::string(31, 'a') + std::string(5000, '\xc3') + "\"}");
    ASSERT_FALSE(result.has_value());  // not UTF-8
    std::string text;
    for (int i = 0; i < 500; ++i) text += "\xc3\xa9";
    auto const cut = decode_json<Point>("t", R"({"x": "a)" + text + "\"}");
    ASSERT_FALSE(cut.has_value());
    EXPECT_LT(cut.error().value().size(), 100);
    EXPECT_TRUE(valid_utf8(cut.error().value()));
    EXPECT_LT(std::string_view{cut.error().what()}.size(), 250);
}

TEST(Json, IsStrict) {  // R-FUT-03
    for (auto const* text : {"",
                             " ",
                             "{",
                             "{}x",
                             "{} {}",
                             "NaN",
                             R"({"a": NaN})",
                             R"({"a": Infinity})",
                             R"({"a": -Infinity})",
                             R"({"a": 1e400})",
                             R"({"a": -1e400})",
                             "\xef\xbb\xbf{}",
                             "{\"a\": \"\xff\"}",
                             "{\"a\": \"\xed\xa0\x80\"}",
                             R"({"a": 01})",
                             R"({"a": .5})",
                             R"({'a': 1})",
                             R"({"a": 1,})",
                             R"([1,])",
                             "// x\n{}",
                             R"({"a": "\ud800"})",
                             "{\"a\": \"\n\"}"}) {
        auto const result = parse_json("test", text);
        ASSERT_FALSE(result.has_value()) << text;
        EXPECT_EQ(result.error().kind(), ErrorKind::validation);
        EXPECT_TRUE(
            std::string_view{result.error().what()}.starts_with("test: the answer is no JSON"))
            << result.error().what();
    }
    EXPECT_TRUE(parse_json("test", " \t\r\n{} \n").has_value());
}

TEST(Json, RefusesWhatIsNestedTooDeep) {  // R-TEST-03
    for (std::string const open : {"[", R"({"a":)"}) {
        std::string text;
        for (int i = 0; i < 10'000; ++i) text += open;
        EXPECT_FALSE(parse_json("test", text).has_value());
        text += std::string(10'000, open == "[" ? ']' : '}');
        EXPECT_FALSE(parse_json("test", text).has_value());
    }
    EXPECT_TRUE(parse_json("test", std::string(json_depth, '[') + std::string(json_depth, ']'))
                    .has_value());
    EXPECT_FALSE(
        parse_json("test", std::string(json_depth + 1, '[') + std::string(json_depth + 1, ']'))
            .has_value());
}

TEST(Json, ReadsDoublesToTheLastBit) {  // R-TEST-03
    // The library alone reads this one to its neighbour.
    EXPECT_EQ(parsed_double("[-3.4028234663852886e+38]"), -3.4028234663852886e+38);
    EXPECT_EQ(parsed_double("[1e-400]"), 0.0);
    EXPECT_EQ(parsed_double("[2.2250738585072011e-308]"), 2.2250738585072011e-308);
    EXPECT_EQ(parsed_double("[123456789012345678901234567890]"), 123456789012345678901234567890.0);
    EXPECT_TRUE(rc::check([] {
        auto const bits = *rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
        auto const number = std::bit_cast<double>(bits);
        RC_PRE(std::isfinite(number));
        std::array<char, 64> text{};
        auto const end =
            std::to_chars(text.data(), text.data() + 60, number, std::chars_format::scientific, 16);
        auto const read = parsed_double("[" + std::string{text.data(), end.ptr} + "]");
        RC_ASSERT(std::bit_cast<std::uint64_t>(read) == bits);
    }));
}

TEST(Json, ReadsIntegersWrittenAsFloatsOrText) {  // R-SAMP-70
    auto const x = [](std::string_view text) -> std::optional<std::int64_t> {
        auto const point = decode_json<Point>("t", R"({"x": )" + std::string{text} + "}");
        return point ? std::optional{point->x} : std::nullopt;
    };
    EXPECT_EQ(x("1.0"), 1);
    EXPECT_EQ(x("1e3"), 1000);
    EXPECT_EQ(x(R"("12")"), 12);
    EXPECT_EQ(x("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
    // The smallest one is not read from a float: a smaller number is rounded to the same.
    for (auto const* text : {"1.5", "9223372036854775808", "9223372036854775808.0",
                             "-9223372036854775809", "-9223372036854775808.0", "1e300", "true",
                             R"("")", R"("1x")", R"(" 1")", "null", "[]", "{}"}) {
        EXPECT_EQ(x(text), std::nullopt) << text;
    }
}

TEST(Json, MakesHugeNumbersInfiniteAsFloats) {
    auto const parsed = parse_json("t", "[1e300, -1e300, 0.1, 3]");
    JsonIn::Failure failure;
    auto const floats = JsonIn{&*parsed, failure}.as<std::vector<float>>();
    EXPECT_EQ(floats, (std::vector<float>{std::numeric_limits<float>::infinity(),
                                          -std::numeric_limits<float>::infinity(), 0.1F, 3}));
}

TEST(Json, TakesTheLastOfTwoMembersOfOneName) {  // R-FUT-03
    EXPECT_EQ(decode_json<Point>("t", R"({"x": 1, "x": 2})").value().x, 2);
}

TEST(Json, NeverBreaksOnForeignBytes) {  // R-TEST-03
    EXPECT_TRUE(rc::check([](std::string const& text) { (void)decode_json<Points>("t", text); }));
}

TEST(JsonOut, WritesObjectsArraysAndCommas) {
    std::string out;
    JsonOut json{out};
    json.open_object();
    json.member("a", 1);
    json.member("b", std::optional<std::int64_t>{});
    json.member("c", std::optional{true});
    json.key("d");
    json.open_array();
    json.open_object();
    json.close_object();
    json.null();
    json.value(std::uint64_t{18446744073709551615U});
    json.value(std::int64_t{-5});
    json.value(0.1);
    json.value("x");
    json.close_array();
    json.key("e");
    json.list(std::vector<std::string>{"p", "q"});
    json.key("f");
    json.bytes("\xff\xd8");
    json.close_object();
    EXPECT_EQ(
        out,
        R"({"a":1,"c":true,"d":[{},null,18446744073709551615,-5,0.1,"x"],"e":["p","q"],"f":"/9g="})");
}

TEST(JsonOut, EscapesWhatJsonCannotHold) {  // R-WIRE-02
    std::string out;
    JsonOut{out}.value("q\"\\\n\r\t\x01\x1f\x7f\0/\xc3\xa9\xf0\x9f\x98\x80"sv);
    EXPECT_EQ(out, "\"q\\\"\\\\\\n\\r\\t\\u0001\\u001f\x7f\\u0000/\xc3\xa9\xf0\x9f\x98\x80\"");
}

TEST(JsonOut, ReplacesBytesThatAreNoUtf8) {  // R-WIRE-02
    std::string out;
    JsonOut{out}.value("a\xff\xc3(\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82");
    EXPECT_EQ(out,
              "\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf"
              "\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    EXPECT_TRUE(rc::check([](std::string const& bytes) {
        std::string text;
        JsonOut{text}.value(bytes);
        auto const back = parse_json("t", text);
        RC_ASSERT(back.has_value());
        if (valid_utf8(bytes)) RC_ASSERT(std::string_view{back->as_string()} == bytes);
    }));
}

TEST(JsonOut, KnowsUtf8) {
    for (auto const* text :
         {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf",
          "\xed\x9f\xbf", "\xee\x80\x80", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80"}) {
        EXPECT_TRUE(valid_utf8(text)) << text;
    }
    for (auto const* text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                             "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                             "\xc3", "\xe2\x82", "\xf0\x9f\x98", "a\xc3z", "\xe2\x28\xa1"}) {
        EXPECT_FALSE(valid_utf8(text)) << text;
    }
}

TEST(JsonOut, WritesNullForWhatIsNoNumber) {  // R-WIRE-02
    std::string out;
    JsonOut json{out};
    json.list(std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 0.1F,
                                 -std::numeric_limits<float>::infinity(), 1});
    EXPECT_EQ(out, "[null,0.1,null,1]");
    out.clear();
    json.value(std::numeric_limits<double>::infinity());
    EXPECT_EQ(out, "null");
}

TEST(JsonOut, WritesLongListsOfNumbersWhole) {
    EXPECT_TRUE(
        rc::check([](std::vector<std::int32_t> const& some, std::vector<std::int64_t> const& big) {
            std::vector<std::int32_t> numbers;
            for (int i = 0; i < 200; ++i) numbers.insert(numbers.end(), some.begin(), some.end());
            std::string out;
            JsonOut json{out};
            json.open_array();
            json.list(numbers);
            json.list(big);
            json.close_array();
            auto const back = parse_json("t", out).value().as_array();
            JsonIn::Failure failure;
            RC_ASSERT((JsonIn{&back[0], failure}.as<std::vector<std::int32_t>>() == numbers));
            RC_ASSERT((JsonIn{&back[1], failure}.as<std::vector<std::int64_t>>() == big));
            RC_ASSERT(!failure.noted);
        }));
}

TEST(JsonOut, WritesTokensOfEveryLength) {  // R-WIRE-02
    std::vector<std::int32_t> numbers{-1, -999, std::numeric_limits<std::int32_t>::min(),
                                      std::numeric_limits<std::int32_t>::max()};
    for (std::int32_t n = 0; n < 2100; ++n) numbers.push_back(n);
    for (std::int32_t n = 2100; n < 1'010'000; n += 97) numbers.push_back(n);
    for (std::int32_t n = 999'990; n < 1'000'010; ++n) numbers.push_back(n);
    std::string expected = "[";
    for (auto const n : numbers) expected += std::to_string(n) + ',';
    expected.back() = ']';
    std::string out;
    JsonOut{out}.list(numbers);
    EXPECT_EQ(out, expected);
}

TEST(JsonOut, WritesFloatsInAsFewDigitsAsTheyHave) {  // R-WIRE-02
    std::string out;
    JsonOut{out}.list(std::vector<float>{0.147F, 1.0F / 3, 16777216, 1e20F, 1e-7F, -0.0F});
    EXPECT_EQ(out, "[0.147,0.33333334,16777216,1e+20,1e-07,-0]");
    out.clear();
    JsonOut{out}.value(0.147F);
    EXPECT_EQ(out, "0.147");
}

TEST(JsonOut, WritesFloatsThatReadAsTheSameFloats) {
    EXPECT_TRUE(rc::check([] {
        auto const bits = *rc::gen::resize(100, rc::gen::arbitrary<std::uint32_t>());
        auto const number = std::bit_cast<float>(bits);
        RC_PRE(std::isfinite(number));
        std::string out;
        JsonOut{out}.list(std::vector<float>{number});
        for (auto const doubles : {Doubles::exact, Doubles::fast}) {
            auto const back = parse_json("t", out, doubles);
            JsonIn::Failure failure;
            auto const list = JsonIn{&*back, failure}.as<std::vector<float>>();
            RC_ASSERT(list.at(0) == number);
        }
    }));
}

TEST(JsonOut, WritesAnyValue) {
    auto const* text = R"({"a":[1,-2,18446744073709551615,0.5,true,null,"\u0001"],"b":{"c":{}}})";
    std::string out;
    JsonOut{out}.value(boost::json::parse(text));
    EXPECT_EQ(out, text);
    out.clear();
    JsonOut{out}.value(boost::json::object{{"nan", std::nan("")}});
    EXPECT_EQ(out, R"({"nan":null})");
}

}  // namespace
}  // namespace tinkxx::wire
