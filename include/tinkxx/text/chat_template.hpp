#pragma once

#include <tinkxx/text/tokenizer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text {

/// Bounds for a template, which may come from anybody. Each has a working default.
struct ChatTemplateOptions {
    /// Longest source that is compiled.
    std::size_t max_source_bytes{std::size_t{1} << 20U};
    /// How deep statements and expressions of the source may be nested.
    std::uint16_t max_nesting{120};
    /// Statements, operations and items of loops in one rendering; a few for each word of a
    /// template.
    std::int64_t max_steps{20'000'000};
    /// How deep macros and recursive loops may call each other, as levels of what they contain.
    int max_depth{2000};
    std::size_t max_output_bytes{std::size_t{64} << 20U};
    /// For all values of one rendering, the texts in between included.
    std::size_t max_memory_bytes{std::size_t{256} << 20U};
    /// Gives messages with `reasoning_content`, `thinking` or `reasoning` the other two names that
    /// templates read, as the newer versions of `transformers` do.
    bool alias_reasoning{true};
};

/// A date and a time of day where the user is, without a time zone.
using LocalMoment = std::chrono::local_time<std::chrono::microseconds>;
using ChatClock = std::function<LocalMoment()>;

/// What a template is given. Every text is JSON, and has to live until `render` returns.
struct ChatInput {
    /// An array of objects, e.g. `[{"role": "user", "content": "Hello"}]`.
    std::string_view messages{};
    /// An array of JSON schemas. Empty: the template sees none.
    std::string_view tools{};
    /// An array of objects with `title` and `text`. Empty: the template sees none.
    std::string_view documents{};
    /// End with what opens the turn of the assistant.
    bool add_generation_prompt{false};
    /// Special tokens by name, e.g. `{"bos_token", "<s>"}`: plain texts, not JSON. A name that is
    /// left out is undefined in the template.
    std::span<std::pair<std::string, std::string> const> special_tokens{};
    /// An object with all else that the template reads, e.g. `{"enable_thinking": false}`. Wins
    /// over the members above. Empty: nothing.
    std::string_view variables{};
    /// For templates that print the date (`strftime_now`). Without one these fail.
    ChatClock const* clock{nullptr};
};

/// A conversation as text.
struct RenderedChat {
    std::string text{};
    /// The parts of `text` that stand in `{% generation %}` blocks: what the assistant wrote, in
    /// templates that mark it. `to_character_ranges` counts them in characters.
    std::vector<TextRange> generated{};

    bool operator==(RenderedChat const&) const = default;
};

/// The chat template of a model, in the dialect of Jinja that `tokenizer_config.json` and
/// `chat_template.jinja` are written in. Gives the text that `apply_chat_template` of Hugging
/// Face's `transformers` gives.
///
///     auto chat = ChatTemplate::from_source(source);
///     auto text = chat.render({.messages = R"([{"role": "user", "content": "Hi"}])"}).text;
///
/// The sandbox is that of `transformers`: values cannot be changed, attributes that begin with an
/// underscore cannot be read, nothing outside of the input can be reached; `include`, `import` and
/// `extends` are refused.
///
/// A cheap handle: copies share the compiled template. Immutable; every member may be called from
/// any thread.
class ChatTemplate {
public:
    /// Throw `ValidationError` if the template cannot be compiled; the message has the line.
    [[nodiscard]] static ChatTemplate from_source(std::string_view source);
    [[nodiscard]] static ChatTemplate from_source(std::string_view source,
                                                  ChatTemplateOptions const& options);

    /// Throws `ValidationError` if the input is not the JSON that it has to be, if the template
    /// fails or refuses the conversation, and if it reaches a bound of the options. Where the
    /// template called `raise_exception`, `field()` is "raise_exception" and `value()` the message
    /// it gave.
    [[nodiscard]] RenderedChat render(ChatInput const& input) const;

    /// Whether the template marks what the assistant wrote.
    [[nodiscard]] bool marks_generation() const noexcept;

private:
    class Impl;
    explicit ChatTemplate(std::shared_ptr<Impl const> impl) noexcept;

    std::shared_ptr<Impl const> impl_;
};

}  // namespace tinkxx::text
