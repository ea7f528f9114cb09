// What holds for every renderer.
#include <tinkxx/error.hpp>

#include "unit/text/render/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tinkxx::test {
namespace {

using text::Message;
using text::TrainOnWhat;

constexpr TrainOnWhat all_of_them[] = {TrainOnWhat::last_assistant_message,
                                       TrainOnWhat::last_assistant_turn,
                                       TrainOnWhat::all_assistant_messages,
                                       TrainOnWhat::all_messages,
                                       TrainOnWhat::all_tokens,
                                       TrainOnWhat::all_user_and_system_messages};

class EachRenderer : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(BuiltIn, EachRenderer, testing::ValuesIn(text::Renderers{}.names()),
                         [](auto const& one) { return one.param; });

TEST_P(EachRenderer, GivesEveryTokenAWeight) {
    auto const renderer = make_renderer(GetParam());
    for (auto const what : all_of_them) {
        auto const example = renderer->build_supervised_example(short_conversation(), what);
        EXPECT_EQ(example.tokens.size(), example.weights.size());
        auto const zero_or_one = [](float weight) { return weight == 0 || weight == 1; };
        EXPECT_TRUE(std::ranges::all_of(example.weights, zero_or_one));
        EXPECT_EQ(example.tokens,
                  renderer->build_supervised_example(short_conversation(), TrainOnWhat::all_tokens)
                      .tokens);
    }
}

TEST_P(EachRenderer, TrainsNothingThatTheGenerationPromptSupplies) {
    auto const renderer = make_renderer(GetParam());
    auto const messages = short_conversation();
    auto const example =
        renderer->build_supervised_example(messages, TrainOnWhat::last_assistant_message);
    auto const prompt = renderer->build_generation_prompt(std::span{messages}.first(3));
    auto const [in_prompt, in_example] = std::ranges::mismatch(prompt, example.tokens);
    auto const shared = static_cast<std::size_t>(in_prompt - prompt.begin());
    auto const trained = std::ranges::find(example.weights, 1.0F) - example.weights.begin();
    if (shared == prompt.size()) {
        EXPECT_GE(trained, std::ssize(prompt));
    }
    // The answer and its end count, whatever stands before.
    EXPECT_LT(trained, std::ssize(example.weights));
    EXPECT_EQ(example.weights.back(), 1.0F);
}

TEST_P(EachRenderer, WithTheExtensionPropertyGoesOnFromItsOwnPrompts) {
    auto const renderer = make_renderer(GetParam());
    // Those whose prompt depends on the last message of the user alone are left out.
    if (!renderer->has_extension_property()) return;
    auto const messages = short_conversation();
    std::vector<Token> before;
    for (std::size_t turn : {std::size_t{1}, std::size_t{3}}) {
        auto const prompt = renderer->build_generation_prompt(std::span{messages}.first(turn));
        ASSERT_GE(prompt.size(), before.size());
        // Up to the place where a prompt opens what the answer closes.
        auto const common = std::ranges::mismatch(before, prompt).in1 - before.begin();
        EXPECT_GE(common + 2, std::ssize(before)) << GetParam();
        before = prompt;
    }
}

TEST_P(EachRenderer, ReadsBackWhatItWrote) {
    auto const renderer = make_renderer(GetParam());
    std::vector<Message> const messages{{.role = "user", .content = "What is 2 + 2?"},
                                        {.role = "assistant", .content = "It is 4."}};
    auto const example =
        renderer->build_supervised_example(messages, TrainOnWhat::last_assistant_message);
    auto const first = std::ranges::find(example.weights, 1.0F) - example.weights.begin();
    auto const answer = renderer->parse_response(
        std::span{example.tokens}.subspan(static_cast<std::size_t>(first)));
    EXPECT_EQ(answer.termination, text::ParseTermination::stop_sequence);
    EXPECT_EQ(get_text(answer.message).substr(get_text(answer.message).find("It")), "It is 4.");
    EXPECT_FALSE(classify_parse_failure(answer));
}

TEST_P(EachRenderer, RefusesTextThatIsNoUtf8AndMixedTrainableFlags) {
    auto const renderer = make_renderer(GetParam());
    std::vector<Message> const broken{{.role = "user", .content = "caf\xe9"}};
    EXPECT_THROW((void)renderer->build_generation_prompt(broken), ValidationError);
    auto messages = short_conversation();
    messages[1].trainable = true;
    EXPECT_THROW((void)renderer->build_supervised_example(messages), ValidationError);
    EXPECT_THROW((void)renderer->build_supervised_example(messages, TrainOnWhat::customized),
                 ValidationError);
}

struct Streamed {
    std::size_t headers{0};
    std::string said{};
    std::string thought{};
    Message last{};
};

Streamed streamed(text::Renderer const& renderer, std::span<Token const> response) {
    Streamed out;
    renderer.parse_response_streaming(response, [&out](text::MessageDelta const& delta) {
        if (std::holds_alternative<text::StreamingHeader>(delta)) ++out.headers;
        if (auto const* piece = std::get_if<text::StreamingText>(&delta)) out.said += piece->text;
        if (auto const* piece = std::get_if<text::StreamingThinking>(&delta))
            out.thought += piece->thinking;
        if (auto const* whole = std::get_if<Message>(&delta)) out.last = *whole;
    });
    return out;
}

std::vector<Token> ended(text::Renderer const& renderer, std::string_view text) {
    auto response = encode(renderer, text);
    response.push_back(renderer.stop_sequences().tokens.front());
    return response;
}

// With the newline after the tag: where prompts end in "<think>\n", a response that begins
// otherwise is taken for what follows it, here as in the cookbook, and its tag for a thought.
TEST_P(EachRenderer, GivesTheSameMessageByPiecesAsAtOnce) {
    auto const renderer = make_renderer(GetParam());
    if (!renderer->supports_streaming()) return;
    auto const response = ended(*renderer, "<think>\ntwo and two</think>It is 4 😀.");
    auto const pieces = streamed(*renderer, response);
    EXPECT_EQ(pieces.headers, 1U);
    EXPECT_EQ(pieces.said, "It is 4 😀.");
    EXPECT_EQ(pieces.thought, "\ntwo and two");
    EXPECT_EQ(pieces.last, renderer->parse_response(response).message);
}

TEST_P(EachRenderer, GivesTheThoughtThatItsPromptBegan) {
    auto const renderer = make_renderer(GetParam());
    if (!renderer->supports_streaming()) return;
    auto const messages = short_conversation();
    auto const prompt = renderer->tokenizer().decode(
        renderer->build_generation_prompt(std::span{messages}.first(1)));
    auto const begun = prompt.substr(std::min(prompt.rfind("<think>"), prompt.size()));
    if (begun != "<think>" && begun != "<think>\n") return;
    auto const response = ended(*renderer, "two and two</think>It is 4 😀.");
    auto const pieces = streamed(*renderer, response);
    EXPECT_EQ(pieces.headers, 1U);
    EXPECT_EQ(pieces.said, "It is 4 😀.");
    EXPECT_EQ("<think>" + pieces.thought, begun + "two and two");
    EXPECT_EQ(get_thinking(pieces.last), "two and two");
    EXPECT_EQ(pieces.last, renderer->parse_response(response).message);
}

}  // namespace
}  // namespace tinkxx::test
