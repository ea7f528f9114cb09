#include <tinkxx/error.hpp>

#include "unit/text/render/support.hpp"

#include <gtest/gtest.h>

namespace tinkxx::test {
namespace {

using text::ParseFailure;
using text::ParseTermination;
using text::TextPart;
using text::ThinkingPart;
using text::ToolCall;

text::ParsedResponse parse(std::string const& name, std::string_view response) {
    auto const renderer = make_renderer(name);
    return renderer->parse_response(encode(*renderer, response));
}

TEST(Responses, OfQwenHaveThinkingTextAndCalls) {
    auto const answer =
        parse("qwen3",
              "<think>\nhm\n</think>\n\nLet me see.<tool_call>\n{\"name\": \"f\", \"arguments\": "
              "{\"é\":1}}\n</tool_call><|im_end|>");
    EXPECT_EQ(answer.termination, ParseTermination::stop_sequence);
    EXPECT_EQ(answer.message.content, (text::Content{ThinkingPart{"hm"}, TextPart{"Let me see."}}));
    ASSERT_TRUE(answer.message.tool_calls);
    EXPECT_EQ(answer.message.tool_calls->front(),
              (ToolCall{.name = "f", .arguments = R"({"\u00e9": 1})"}));
}

TEST(Responses, SayWhatIsWrongWithACall) {
    auto const answer = parse("qwen3", "<tool_call>{\"name\": \"f\", oops}</tool_call><|im_end|>");
    EXPECT_FALSE(answer.message.tool_calls);
    ASSERT_EQ(answer.message.unparsed_tool_calls.size(), 1U);
    EXPECT_EQ(answer.message.unparsed_tool_calls[0].raw_text,
              "<tool_call>{\"name\": \"f\", oops}</tool_call>");
    EXPECT_EQ(answer.message.unparsed_tool_calls[0].error,
              "Invalid JSON: Expecting property name enclosed in double quotes: line 1 column 15 "
              "(char 14)");
    EXPECT_EQ(classify_parse_failure(answer)->kind, ParseFailure::Kind::content);
    auto const open =
        parse("deepseekv3", "yes<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜end▁of▁sentence｜>");
    ASSERT_EQ(open.message.unparsed_tool_calls.size(), 1U);
    EXPECT_TRUE(open.message.unparsed_tool_calls[0].error.starts_with("unterminated tool block"));
}

TEST(Responses, ThatWereCutOffAreMalformedAndKeepTheirText) {
    for (auto const& name : text::Renderers{}.names()) {
        auto const answer = parse(name, "half an ans");
        EXPECT_EQ(answer.termination, ParseTermination::malformed) << name;
        EXPECT_EQ(get_text(answer.message), "half an ans") << name;
        EXPECT_EQ(classify_parse_failure(answer)->kind, ParseFailure::Kind::structural) << name;
    }
}

TEST(Responses, WithSeveralEndsShowThatTheWrongStopWasSampledWith) {
    EXPECT_THROW((void)parse("llama3", "a<|eot_id|>b<|eot_id|>"), ValidationError);
    EXPECT_THROW((void)parse("glm5_3_max_reasoning", "a<|user|>b<|endoftext|>"), ValidationError);
    EXPECT_THROW((void)parse("gpt_oss_no_sysprompt", "a<|call|>b<|call|>"), ValidationError);
    EXPECT_EQ(parse("role_colon", " a\n\nUser: b\n\nUser:").termination,
              ParseTermination::malformed);
}

TEST(Responses, OfRoleColonMayEndInTheEndOfTextToken) {
    auto const answer = parse("role_colon", " yes<eos>");
    EXPECT_EQ(answer.termination, ParseTermination::eos);
    EXPECT_EQ(answer.message.content.text(), "yes");
    EXPECT_EQ(parse("glm5_3_low_reasoning", "yes<|endoftext|>").termination, ParseTermination::eos);
}

TEST(Responses, ToAPromptThatOpenedTheThinkingAreReadFromThere) {
    for (auto const* name :
         {"qwen3_5", "deepseekv3_thinking", "kimi_k25", "glm5_3_max_reasoning"}) {
        auto const renderer = make_renderer(name);
        auto response = encode(*renderer, "hm</think>yes");
        response.push_back(renderer->stop_sequences().tokens.front());
        auto const answer = renderer->parse_response(response);
        EXPECT_EQ(get_thinking(answer.message), "hm") << name;
        EXPECT_EQ(get_text(answer.message), "yes") << name;
    }
}

TEST(Responses, NestedWithoutBoundAreACallThatCannotBeRead) {
    auto const answer =
        parse("qwen3", "<tool_call>" + std::string(100000, '[') + "</tool_call><|im_end|>");
    ASSERT_EQ(answer.message.unparsed_tool_calls.size(), 1U);
}

}  // namespace
}  // namespace tinkxx::test
