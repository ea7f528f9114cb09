// Templates written for tinkxx, with what transformers makes of them (tests/golden/text).
#include <tinkxx/error.hpp>
#include <tinkxx/text/chat_template.hpp>

#include <boost/json.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

namespace {

using namespace tinkxx;
namespace json = boost::json;

constexpr std::string_view variables = R"({"x": 1, "y": "abc", "z": {"a": {"b": [1, 2, 3]}}})";

/// The moment that make_snippets.py takes for now.
text::LocalMoment moment() {
    using namespace std::chrono;
    return local_days{year{2026} / May / 28} + 20h + 30min + 5s + 0us;
}

text::RenderedChat rendered_snippet(std::string_view source) {
    text::ChatClock const clock{moment};
    return text::ChatTemplate::from_source(source).render(
        {.messages = "[]", .variables = variables, .clock = &clock});
}

void expect_same(json::object const& expected) {
    std::string const source{expected.at("template").as_string()};
    SCOPED_TRACE(source);
    try {
        auto const made = rendered_snippet(source);
        ASSERT_TRUE(expected.contains("text")) << "should fail: " << expected.at("error");
        EXPECT_EQ(made.text, std::string_view{expected.at("text").as_string()});
        json::array ranges;
        for (auto const& [begin, end] : text::to_character_ranges(made.text, made.generated)) {
            ranges.push_back(json::array{begin, end});
        }
        EXPECT_EQ(json::serialize(ranges), json::serialize(expected.at("generated")));
    } catch (ValidationError const& e) {
        ASSERT_TRUE(expected.contains("error")) << e.what();
        bool const raised = e.field() == "raise_exception";
        EXPECT_EQ(raised, expected.at("raised").as_bool());
        if (!raised) return;
        EXPECT_EQ(e.value(), std::string_view{expected.at("error").as_string()});
    }
}

TEST(ChatTemplateSnippets, AreRenderedAsByTransformers) {
    std::ifstream file{TINKXX_SOURCE_DIR "/tests/golden/text/snippets.jsonl"};
    int count = 0;
    for (std::string line; std::getline(file, line); ++count) {
        expect_same(json::parse(line).as_object());
    }
    EXPECT_GT(count, 250);
}

}  // namespace
