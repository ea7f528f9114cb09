#include <tinkxx/error.hpp>

#include "unit/text/render/support.hpp"

#include <gtest/gtest.h>

namespace tinkxx::text {
namespace {

std::string chatml(std::span<Message const> messages, bool generation_prompt) {
    std::string out;
    for (auto const& message : messages) {
        out += "<|im_start|>" + message.role + "\n" + get_text(message) + "<|im_end|>\n";
    }
    return generation_prompt ? out + "<|im_start|>assistant\n" : out;
}

std::unique_ptr<Renderer> over(ChatText chat_text) {
    return make_template_renderer(test::small_tokenizer("qwen"), std::move(chat_text),
                                  {.end_of_message = "<|im_end|>"});
}

std::string shown(Renderer const& renderer, TrainOnWhat what) {
    auto const example = renderer.build_supervised_example(test::short_conversation(), what);
    EXPECT_EQ(renderer.tokenizer().decode(example.tokens),
              chatml(test::short_conversation(), false));
    return show_example(example, renderer.tokenizer());
}

TEST(TemplateRenderer, TrainsAnswersFromTheirPromptToTheirEnd) {
    auto const renderer = over(chatml);
    EXPECT_EQ(shown(*renderer, TrainOnWhat::last_assistant_message),
              "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n"
              "<|im_start|>user\nAnd 3 + 3?<|im_end|>\n<|im_start|>assistant\n【6<|im_end|>】\n");
    EXPECT_EQ(shown(*renderer, TrainOnWhat::all_assistant_messages),
              "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n【4<|im_end|>】\n"
              "<|im_start|>user\nAnd 3 + 3?<|im_end|>\n<|im_start|>assistant\n【6<|im_end|>】\n");
    EXPECT_TRUE(shown(*renderer, TrainOnWhat::all_tokens).starts_with("【<|im_start|>user"));
}

TEST(TemplateRenderer, BeginsAnExampleWithThePromptThatWouldBeSampledFrom) {
    auto const renderer = over(chatml);
    auto const messages = test::short_conversation();
    auto const prompt = renderer->build_generation_prompt(std::span{messages}.first(3));
    auto const example = renderer->build_supervised_example(messages);
    ASSERT_LT(prompt.size(), example.tokens.size());
    EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), example.tokens.begin()));
    EXPECT_EQ(example.weights[prompt.size() - 1], 0.0F);
    EXPECT_EQ(example.weights[prompt.size()], 1.0F);
}

TEST(TemplateRenderer, RefusesToTrainMessagesThatAreWrittenDifferentlyLater) {
    // Earlier answers are cut, as templates cut thinking.
    auto const renderer = over([](std::span<Message const> messages, bool generation_prompt) {
        std::vector<Message> cut{messages.begin(), messages.end()};
        for (std::size_t i = 0; i + 1 < cut.size(); ++i) {
            if (cut[i].role == "assistant") cut[i].content = "-";
        }
        return chatml(cut, generation_prompt);
    });
    EXPECT_THROW((void)renderer->build_supervised_example(test::short_conversation(),
                                                          TrainOnWhat::all_assistant_messages),
                 ValidationError);
    EXPECT_NO_THROW((void)renderer->build_supervised_example(test::short_conversation()));
    auto const examples = renderer->build_supervised_examples(test::short_conversation(),
                                                              TrainOnWhat::all_assistant_messages);
    EXPECT_EQ(examples.size(), 2U);
}

TEST(TemplateRenderer, ReadsThinkingAndStopsAtTheEndOfAMessage) {
    auto const renderer = over(chatml);
    EXPECT_EQ(renderer->stop_sequences().tokens.size(), 1U);
    auto const answer =
        renderer->parse_response(test::encode(*renderer, "hm\n</think>\n\n6<|im_end|>"));
    EXPECT_EQ(answer.termination, ParseTermination::stop_sequence);
    EXPECT_EQ(answer.message.content, (Content{ThinkingPart{"hm"}, TextPart{"6"}}));
}

TEST(TemplateRenderer, NeedsAFunctionAndToKnowWhereMessagesEnd) {
    EXPECT_THROW((void)over(nullptr), ValidationError);
    auto const nowhere = std::make_shared<test::SmallTokenizer>(
        std::vector<std::pair<std::string, std::string>>{},
        std::vector<test::SmallTokenizer::Added>{}, std::nullopt, std::nullopt);
    EXPECT_THROW((void)make_template_renderer(nowhere, chatml, {}), ValidationError);
}

}  // namespace
}  // namespace tinkxx::text
