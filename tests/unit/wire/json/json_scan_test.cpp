#include "wire/json/json_scan.hpp"

#include "wire/json/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <boost/json/serialize.hpp>

namespace tinkxx::wire {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

std::optional<Members> scan(std::string_view text) {
    Members out;
    JsonScan scan{text};
    while (auto member = scan.next()) out.emplace_back(member->name, member->value);
    EXPECT_EQ(scan.next().has_value(), false);
    if (!scan.complete()) return std::nullopt;
    return out;
}

TEST(JsonScan, GivesTheMembersOfAnObjectUnread) {  // R-FUT-03
    EXPECT_EQ(scan(R"( {"a" : 1 , "b":"x,}\"]" ,"c":[1,{"d":"]"}],"e":{"f":[{}]},"g":null} )"),
              (Members{{"a", "1"},
                       {"b", R"("x,}\"]")"},
                       {"c", R"([1,{"d":"]"}])"},
                       {"e", R"({"f":[{}]})"},
                       {"g", "null"}}));
    EXPECT_EQ(scan("{}"), Members{});
    EXPECT_EQ(scan(" { } "), Members{});
}

TEST(JsonScan, SeesThroughEscapesInNamesAndTexts) {  // R-FUT-03
    EXPECT_EQ(
        scan(R"({"err\u006fr":1,"\"":"\\","c":"\\\"","d":"a\\\\"})"),
        (Members{{"error", "1"}, {"\"", R"("\\")"}, {"c", R"("\\\"")"}, {"d", R"("a\\\\")"}}));
}

TEST(JsonScan, PassesOverLongAndDeepValues) {  // R-FUT-03
    std::string numbers = "[";
    for (int i = 0; i < 10'000; ++i) numbers += std::to_string(i * 7) + (i % 3 == 0 ? ", " : ",");
    numbers += "0]";
    auto const deep = std::string(10'000, '[') + std::string(10'000, ']');
    auto const text = R"({"numbers":)" + numbers + R"(,"deep":)" + deep + R"(,"last":"\\"})";
    EXPECT_EQ(scan(text), (Members{{"numbers", numbers}, {"deep", deep}, {"last", R"("\\")"}}));
    for (std::size_t pad = 0; pad < 40; ++pad) {  // wherever a bracket falls in a block
        auto const list = "[" + std::string(pad, ' ') + "\"]\"" + std::string(pad, ' ') + "]";
        EXPECT_EQ(scan(R"({"a":)" + list + R"(,"error":1})"),
                  (Members{{"a", list}, {"error", "1"}}));
    }
}

TEST(JsonScan, TellsWhatIsNoObject) {  // R-FUT-03
    for (auto const* text : {"",
                             " ",
                             "[1]",
                             "null",
                             "3",
                             "x",
                             "<html>",
                             "{",
                             "{}x",
                             "{}{}",
                             R"({"a"})",
                             R"({"a":})",
                             R"({"a":1)",
                             R"({"a":1,})",
                             R"({a:1})",
                             R"({"a":1 "b":2})",
                             R"({"a":"x)",
                             R"({"a":"x\"})",
                             R"({"a":[1})",
                             R"({"a":{"b":1})",
                             R"({"a)",
                             R"({"\q":1})",
                             "\xef\xbb\xbf{}",
                             R"({"a":[1]]})",
                             R"({,"a":1})"}) {
        EXPECT_EQ(scan(text), std::nullopt) << text;
    }
}

TEST(JsonScan, AgreesWithTheParserOnEveryDocument) {  // R-TEST-03
    EXPECT_TRUE(rc::check([](std::vector<std::pair<std::string, std::string>> const& texts) {
        boost::json::object object;
        for (auto const& [name, text] : texts) {
            std::string key;
            JsonOut{key}.value(name);  // makes it UTF-8
            auto const clean = parse_json("t", key).value();
            object[clean.as_string()] =
                boost::json::array{clean, {{"n", 1}, {clean.as_string(), 2}}};
        }
        auto const members = scan(boost::json::serialize(object));
        RC_ASSERT(members.has_value());
        RC_ASSERT(members->size() == object.size());
        for (auto const& [name, value] : *members) {
            RC_ASSERT(parse_json("t", value).value() == object.at(name));
        }
    }));
}

TEST(JsonScan, AcceptsACutDocumentNowhere) {  // R-TEST-03
    std::string const text = R"({"a": [1, {"b": "]\""}], "c": "x", "d": null, "e": {}})";
    ASSERT_TRUE(scan(text).has_value());
    for (std::size_t size = 0; size < text.size(); ++size) {
        EXPECT_EQ(scan(std::string_view{text}.substr(0, size)), std::nullopt) << size;
    }
}

}  // namespace
}  // namespace tinkxx::wire
