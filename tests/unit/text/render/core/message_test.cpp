#include <tinkxx/error.hpp>
#include <tinkxx/text/message.hpp>

#include <gtest/gtest.h>

namespace tinkxx::text {
namespace {

TEST(Messages, AreReadFromTheFormsOfOpenAiAndOfTheCookbook) {
    auto const messages = read_messages(R"([
        {"role": "system", "content": "Be short."},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"},
                                          {"type": "image_url", "image_url": {"url": "https://x/y.png"}}],
         "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                        {"function": {"name": "g", "arguments": {"b": [1, 2]}}}],
         "reasoning_content": "hm", "trainable": true, "weight": 0.5},
        {"role": "tool", "content": null, "tool_call_id": "call_1", "name": "f"}])");
    ASSERT_EQ(messages.size(), 3U);
    EXPECT_EQ(messages[0], (Message{.role = "system", .content = "Be short."}));
    EXPECT_EQ(messages[1].content,
              (Content{ThinkingPart{"hm"}, TextPart{"4"}, ImagePart{"https://x/y.png"}}));
    ASSERT_TRUE(messages[1].tool_calls);
    EXPECT_EQ((*messages[1].tool_calls)[0],
              (ToolCall{.name = "f", .arguments = "{\"a\":1}", .id = "call_1"}));
    EXPECT_EQ(
        (*messages[1].tool_calls)[1],
        (ToolCall{.name = "g", .arguments = R"({"b": [1, 2]})", .form = ToolCall::Form::object}));
    EXPECT_EQ(messages[1].reasoning_content, "hm");
    EXPECT_EQ(messages[1].trainable, true);
    EXPECT_EQ(messages[1].other, R"({"weight": 0.5})");
    EXPECT_TRUE(messages[2].content.is_null());
    EXPECT_EQ(messages[2].tool_call_id, "call_1");
}

TEST(Messages, AreWrittenAsTheyAreRead) {
    auto const text =
        R"([{"role": "assistant", "content": [{"type": "text", "text": "é\n"}], "tool_calls": [{"type": "function", )"
        R"("id": null, "function": {"name": "f", "arguments": {"x": 1.0}}}], "trainable": false, "extra": [1]}])";
    auto const messages = read_messages(text);
    EXPECT_EQ(to_json(messages), text);
    EXPECT_EQ(read_messages(to_json(messages)), messages);
}

TEST(Messages, ThatAreNoneAreRefusedWithTheirPlace) {
    auto const field = [](std::string_view text) -> std::string {
        try {
            (void)read_messages(text);
        } catch (ValidationError const& e) {
            return std::string{e.field()} + "|" + e.what();
        }
        return "read";
    };
    EXPECT_EQ(field(R"([{"role": "user", "content": 3}])"),
              "/0/content|read_messages: a list is expected at /0/content, where 3 stands");
    EXPECT_TRUE(field(R"([{"content": "x"}])").starts_with("/0|"));
    EXPECT_TRUE(field(R"([{"role": "user", "content": [{"type": "video"}]}])")
                    .starts_with("/0/content/0/type|"));
    EXPECT_TRUE(field("{}").starts_with("|"));
    EXPECT_EQ(field("[}"),
              "|read_messages: the text is no JSON: Expecting value: line 1 column 2 (char 1)");
}

TEST(Messages, WithReasoningBesideTheContentCanHaveItAsAPart) {
    auto const message =
        with_thinking_parts({.role = "assistant", .content = "4", .reasoning_content = "2 + 2"});
    EXPECT_EQ(message.content, (Content{ThinkingPart{"2 + 2"}, TextPart{"4"}}));
    EXPECT_FALSE(message.reasoning_content);
    EXPECT_EQ(get_text(message), "4");
    EXPECT_EQ(get_thinking(message), "2 + 2");
}

TEST(Tools, KeepTheOrderOfTheirMembersAndThoseThatAreNotKnown) {
    auto const tools = read_tools(
        R"([{"type": "function", "function": {"parameters": {"type": "object"}, "name": "f", "strict": true}}])");
    ASSERT_EQ(tools.size(), 1U);
    EXPECT_EQ(tools[0].name, "f");
    EXPECT_EQ(to_json(tools[0]),
              R"({"parameters": {"type": "object"}, "name": "f", "strict": true})");
    EXPECT_EQ(to_json(ToolSpec{.name = "g", .description = "d", .parameters = "{}"}),
              R"({"name": "g", "description": "d", "parameters": {}})");
}

}  // namespace
}  // namespace tinkxx::text
