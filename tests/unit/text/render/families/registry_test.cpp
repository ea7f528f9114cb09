#include <tinkxx/error.hpp>

#include "unit/text/render/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::text {
namespace {

using test::small_tokenizer;

// The whole format is a line for each message.
class LineRenderer final : public Renderer {
public:
    explicit LineRenderer(std::shared_ptr<RenderTokenizer const> tokenizer)
        : Renderer{std::move(tokenizer)} {}

    [[nodiscard]] StopSequences stop_sequences() const override { return {.texts = {"\n"}}; }
    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const&) const override {
        return {.header = encode(message.role + "> "), .output = encode(get_text(message) + "\n")};
    }
    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override {
        return {.message = {.role = "assistant", .content = tokenizer().decode(response)}};
    }
};

TEST(Renderers, MakeThoseThatUsersRegister) {
    Renderers renderers;
    renderers.add("lines", [](auto tokenizer, RendererOptions const&) {
        return std::make_unique<LineRenderer>(std::move(tokenizer));
    });
    auto const renderer = renderers.make("lines", small_tokenizer("plain_eos"));
    auto const example = renderer->build_supervised_example(test::short_conversation());
    EXPECT_EQ(renderer->tokenizer().decode(example.tokens),
              "user> What is 2 + 2?\nassistant> 4\nuser> And 3 + 3?\nassistant> 6\n");
    EXPECT_EQ(show_example(example, renderer->tokenizer()),
              "user> What is 2 + 2?\nassistant> 4\nuser> And 3 + 3?\nassistant> 【6\n】");
    EXPECT_TRUE(renderers.remove("lines"));
    EXPECT_FALSE(renderers.remove("lines"));
    EXPECT_FALSE(renderers.contains("lines"));
}

TEST(Renderers, NameThoseThatThereAreIfANameIsWrong) {
    try {
        (void)Renderers{}.make("qwen4", small_tokenizer("qwen"));
        FAIL();
    } catch (ValidationError const& e) {
        EXPECT_EQ(e.value(), "qwen4");
        EXPECT_THAT(e.what(), testing::HasSubstr("qwen3_disable_thinking"));
    }
}

TEST(Renderers, RefuseATokenizerThatLacksTheTokensOfTheFormat) {
    try {
        (void)Renderers{}.make("qwen3", small_tokenizer("llama3"));
        FAIL();
    } catch (ValidationError const& e) {
        EXPECT_EQ(e.value(), "<|im_end|>");
    }
    EXPECT_THROW((void)Renderers{}.make("qwen3", nullptr), ValidationError);
}

TEST(Renderers, KnowWhichOfThemSuitAModel) {
    Renderers renderers;
    EXPECT_EQ(renderers.recommended("Qwen/Qwen3-8B").front(), "qwen3");
    EXPECT_EQ(renderers.recommended("moonshotai/Kimi-K2.6:peft:131072").front(), "kimi_k26");
    EXPECT_TRUE(renderers.recommended("nobody/nothing").empty());
    renderers.recommend("nobody/nothing", {"llama3"});
    EXPECT_EQ(renderers.recommended("nobody/nothing"), std::vector<std::string>{"llama3"});
}

TEST(TrainOnWhatNames, AreThoseOfTheCookbook) {
    EXPECT_EQ(to_string(TrainOnWhat::all_user_and_system_messages), "all_user_and_system_messages");
    EXPECT_EQ(read_train_on_what("last_assistant_turn"), TrainOnWhat::last_assistant_turn);
    EXPECT_EQ(read_train_on_what("custom"), TrainOnWhat::customized);
    EXPECT_THROW((void)read_train_on_what("everything"), ValidationError);
}

}  // namespace
}  // namespace tinkxx::text
