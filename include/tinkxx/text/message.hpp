#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// Conversations, and how they become the tokens that a model was trained with.
namespace tinkxx::text {

/// What everybody may read.
struct TextPart {
    std::string text{};

    bool operator==(TextPart const&) const = default;
};

/// What a model thought before it answered.
struct ThinkingPart {
    std::string thinking{};

    bool operator==(ThinkingPart const&) const = default;
};

/// A reference to an image: a URL or a `data:` URI. Nothing here loads it.
struct ImagePart {
    std::string image{};

    bool operator==(ImagePart const&) const = default;
};

using ContentPart = std::variant<TextPart, ThinkingPart, ImagePart>;

/// The content of a message: a text, parts in order, or nothing at all, as the `null` that some
/// servers write beside tool calls.
///
///     Message user{.role = "user", .content = "What is 2 + 2?"};
///     Message answer{.role = "assistant",
///                    .content = {ThinkingPart{"two and two"}, TextPart{"4"}}};
class Content {
public:
    Content() = default;
    Content(std::string text) : value_{std::move(text)} {}
    Content(std::string_view text) : value_{std::string{text}} {}
    Content(char const* text) : value_{std::string{text}} {}
    Content(std::vector<ContentPart> parts) : value_{std::move(parts)} {}
    Content(std::initializer_list<ContentPart> parts) : value_{std::vector<ContentPart>{parts}} {}

    /// Whether there is neither a text nor parts, not even empty ones.
    [[nodiscard]] bool is_null() const noexcept { return value_.index() == 0; }
    [[nodiscard]] bool is_text() const noexcept { return value_.index() == 1; }
    [[nodiscard]] bool is_parts() const noexcept { return value_.index() == 2; }
    /// The text; empty if there are parts or nothing.
    [[nodiscard]] std::string const& text() const noexcept;
    /// The parts; empty if there is a text or nothing.
    [[nodiscard]] std::vector<ContentPart> const& parts() const noexcept;

    bool operator==(Content const&) const = default;

private:
    std::variant<std::monostate, std::string, std::vector<ContentPart>> value_{};
};

/// A call of a function that the model asks for.
struct ToolCall {
    /// How `arguments` stood in the JSON it was read from.
    enum class Form : std::uint8_t {
        text,    ///< a string that holds JSON, as OpenAI and the cookbook have it
        object,  ///< the object itself, as many chat templates want it
    };

    std::string name{};
    /// JSON text, in most cases an object.
    std::string arguments{};
    std::optional<std::string> id{};
    Form form{Form::text};

    bool operator==(ToolCall const&) const = default;
};

/// Something that was meant as a tool call and is none.
struct UnparsedToolCall {
    std::string raw_text{};
    /// What is wrong with it.
    std::string error{};

    bool operator==(UnparsedToolCall const&) const = default;
};

/// One message of a conversation.
struct Message {
    /// "system", "user", "assistant", "tool" and whatever else a model knows.
    std::string role{};
    Content content{};
    /// An empty list differs from none: some renderers write a separator for it.
    std::optional<std::vector<ToolCall>> tool_calls{};
    std::vector<UnparsedToolCall> unparsed_tool_calls{};
    /// Whether the message counts in the loss; for `TrainOnWhat::customized` only.
    std::optional<bool> trainable{};
    /// Of a tool's answer: the id of the call it answers.
    std::optional<std::string> tool_call_id{};
    /// Of a tool's answer: the name of the function.
    std::optional<std::string> name{};
    /// What a model thought, as some servers and chat templates have it. Renderers read thinking
    /// from parts of the content only, as the cookbook does; see `with_thinking_parts`.
    std::optional<std::string> reasoning_content{};
    /// All other members of the JSON it was read from, as the text of an object; empty if there are
    /// none. For chat templates.
    std::string other{};

    bool operator==(Message const&) const = default;
};

/// A function that the model may call.
struct ToolSpec {
    std::string name{};
    std::string description{};
    /// JSON schema of its arguments, as text.
    std::string parameters{R"({"type": "object", "properties": {}})"};
    /// The whole function object as JSON text, with its members in their order and those that are
    /// not known here. If set, this is what is rendered, and the members above are ignored.
    std::string json{};

    bool operator==(ToolSpec const&) const = default;
};

/// The texts of a message without its thinking, joined; images are left out.
[[nodiscard]] std::string get_text(Message const& message);
/// What a message says the model thought: its thinking parts, joined.
[[nodiscard]] std::string get_thinking(Message const& message);
/// A copy whose `reasoning_content` became a thinking part in front of the content.
[[nodiscard]] Message with_thinking_parts(Message message);

/// Read messages from JSON in the form of OpenAI or of the cookbook: parts of `type` "text",
/// "thinking", "image" or "image_url"; arguments of tool calls as a string or an object. Throw
/// `ValidationError` that names the place if the JSON is malformed or is no message.
[[nodiscard]] Message read_message(std::string_view json);
/// As above, for an array of messages.
[[nodiscard]] std::vector<Message> read_messages(std::string_view json);
/// Tools from an array of function objects, or of `{"type": "function", "function": …}`.
[[nodiscard]] std::vector<ToolSpec> read_tools(std::string_view json);

/// JSON in the form in which `read_message` reads it, on one line.
[[nodiscard]] std::string to_json(Message const& message);
[[nodiscard]] std::string to_json(std::span<Message const> messages);
/// The function object, without `{"type": "function"}` around it.
[[nodiscard]] std::string to_json(ToolSpec const& tool);
[[nodiscard]] std::string to_json(std::span<ToolSpec const> tools);

}  // namespace tinkxx::text
