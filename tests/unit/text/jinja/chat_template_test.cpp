#include "unit/text/jinja/support.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace {

using namespace tinkxx;
using text::ChatTemplate;
using text::testing::refusal;

constexpr std::string_view simple =
    "{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}";

TEST(ChatTemplate, RendersMessagesWithSpecialTokens) {
    std::vector<std::pair<std::string, std::string>> const tokens{{"eos_token", "</s>"}};
    auto const chat = ChatTemplate::from_source(simple);

    auto const made = chat.render({.messages = R"([{"role": "user", "content": "H\u00ef"}])",
                                   .add_generation_prompt = true,
                                   .special_tokens = tokens});

    EXPECT_EQ(made.text, "<|user|>Hï</s><|assistant|>");
    EXPECT_TRUE(made.generated.empty());
}

TEST(ChatTemplate, MarksWhatTheAssistantWrote) {
    auto const chat = ChatTemplate::from_source(
        "{% for m in messages %}{% if m.role == 'assistant' %}A:{% generation %}{{ m.content }}."
        "{% endgeneration %}{% else %}U:{{ m.content }}{% endif %}{% endfor %}");
    EXPECT_TRUE(chat.marks_generation());

    auto const made = chat.render({.messages = R"([{"role": "user", "content": "é"},
        {"role": "assistant", "content": "yes"}])"});

    EXPECT_EQ(made.text, "U:éA:yes.");
    ASSERT_EQ(made.generated.size(), 1U);
    EXPECT_EQ(made.text.substr(made.generated[0].begin), "yes.");
    EXPECT_EQ(made.generated[0].end, made.text.size());
}

TEST(ChatTemplate, KeepsTheMessageOfARefusal) {
    auto const chat = ChatTemplate::from_source("\n{{ raise_exception('Roles must alternate') }}");
    try {
        (void)chat.render({.messages = "[]"});
        FAIL() << "no error";
    } catch (ValidationError const& e) {
        EXPECT_EQ(e.field(), "raise_exception");
        EXPECT_EQ(e.value(), "Roles must alternate");
        EXPECT_STREQ(e.what(), "chat template: line 2: Roles must alternate");
    }
}

TEST(ChatTemplate, GivesReasoningTheNamesThatTemplatesRead) {
    auto const chat = ChatTemplate::from_source(
        "{% for m in messages %}{{ m.reasoning_content }}|{{ m.thinking }}{% endfor %}");
    EXPECT_EQ(chat.render({.messages = R"([{"role": "assistant", "reasoning": "why"}])"}).text,
              "why|why");

    auto const plain = ChatTemplate::from_source("{{ messages[0].reasoning_content is defined }}",
                                                 {.alias_reasoning = false});
    EXPECT_EQ(plain.render({.messages = R"([{"role": "assistant", "reasoning": "why"}])"}).text,
              "False");
}

TEST(ChatTemplate, TellsTheTimeOfTheClockItIsGiven) {
    auto const chat = ChatTemplate::from_source("{{ strftime_now('%d %b %Y, %-I:%M %p %j') }}");
    text::ChatClock const clock{[] {
        using namespace std::chrono;
        return local_days{year{2026} / May / 4} + hours{15} + minutes{7} + microseconds{0};
    }};
    EXPECT_EQ(chat.render({.messages = "[]", .clock = &clock}).text, "04 May 2026, 3:07 PM 124");
    EXPECT_EQ(refusal("{{ strftime_now('%Y') }}"),
              "chat template: line 1: the template asks for the date (strftime_now), and no clock "
              "is given; set clock");
}

TEST(ChatTemplate, SaysWhatIsWrongWithItsInput) {
    auto const chat = ChatTemplate::from_source(simple);
    auto const refused = [&](text::ChatInput const& input) -> std::string {
        try {
            (void)chat.render(input);
        } catch (ValidationError const& e) {
            return e.what();
        }
        return "no error";
    };
    EXPECT_EQ(refused({.messages = "{}"}),
              "chat template: messages must be a JSON array of objects");
    EXPECT_EQ(refused({.messages = "[1]"}), "chat template: messages[0] must be a JSON object");
    EXPECT_EQ(refused({.messages = "[{\"a\": }]"}),
              "chat template: messages is not valid JSON (at byte 7)");
    EXPECT_EQ(refused({.messages = "[]", .tools = "7"}),
              "chat template: tools must be a JSON array");
    EXPECT_EQ(refused({.messages = "[{\"a\": \"\xff\"}]"}),
              "chat template: messages is not valid UTF-8 (at byte 8)");
}

TEST(ChatTemplate, LaterOfEqualKeysWins) {
    auto const chat = ChatTemplate::from_source("{{ messages[0] }}");
    EXPECT_EQ(chat.render({.messages = R"([{"a": 1, "b": 2, "a": 3}])"}).text, "{'a': 3, 'b': 2}");
}

TEST(ChatTemplate, FindsKeysOfLargeObjects) {
    std::string object = "{";
    for (int i = 0; i < 500; ++i) {
        object += (i == 0 ? "\"k" : ", \"k") + std::to_string(i % 400) + "\": " + std::to_string(i);
    }
    object += "}";
    auto const chat = ChatTemplate::from_source(
        "{{ messages[0] | length }} {{ messages[0].k3 }} {{ messages[0]['k399'] }} "
        "{{ messages[0].k400 is defined }}");
    EXPECT_EQ(chat.render({.messages = "[" + object + "]"}).text, "400 403 399 False");
}

}  // namespace
