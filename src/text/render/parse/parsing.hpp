#pragma once

#include <tinkxx/text/message.hpp>
#include <tinkxx/text/renderer.hpp>

#include "text/render/common/json.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tinkxx::text::render {

// Content ---------------------------------------------------------------------------------------

/// The content as one text: a text, or a single part of text. Throws `ValidationError` otherwise.
[[nodiscard]] std::string const& plain_text(Content const& content);
/// Whether the model thought, in parts or as a tag in a text.
[[nodiscard]] bool has_thinking(Content const& content);
[[nodiscard]] bool has_thinking_part(Content const& content);
/// The content as parts; a text becomes a single one.
[[nodiscard]] std::vector<ContentPart> as_parts(Content const& content);

// Values of tool calls ----------------------------------------------------------------------------

/// The arguments of a call as a value; throws `ValidationError` if they are no JSON.
[[nodiscard]] Json call_arguments(ToolCall const& call);
/// As above for members of an object; empty arguments are no members. Throws if it is no object.
[[nodiscard]] Json call_members(ToolCall const& call);
/// `{"name": …, "arguments": …}`
[[nodiscard]] std::string call_payload(ToolCall const& call);
/// The function object of a tool.
[[nodiscard]] Json tool_json(ToolSpec const& tool);
/// The name, description or another text of a function object; empty if it is not there.
[[nodiscard]] std::string member_text(Json const& object, std::string_view name);

// Responses -------------------------------------------------------------------------------------

inline constexpr std::string_view unterminated_block = "unterminated tool block";
inline constexpr std::size_t longest_detail = 16384;

/// At most so many characters of a text.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t characters);

/// The text of a response before its stop token. Throws `ValidationError` if there are several.
[[nodiscard]] ParsedResponse split_at_stop(std::span<Token const> response,
                                           RenderTokenizer const& tokenizer, Token stop);
/// The error for a response with several stop tokens.
[[noreturn]] void refuse_stops(std::size_t found);

using ParsedCall = std::variant<ToolCall, UnparsedToolCall>;

struct ContentBlocks {
    std::vector<ContentPart> parts{};
    std::vector<ParsedCall> calls{};
};
/// Parts and calls of a text with <think> and <tool_call> blocks; none if it has neither.
[[nodiscard]] std::optional<ContentBlocks> parse_content_blocks(std::string_view content);
/// As above, for <think> blocks only.
[[nodiscard]] std::optional<std::vector<ContentPart>> parse_think_blocks(std::string_view content);
/// The content with its <think> blocks as parts, or as it is.
[[nodiscard]] Content think_content(std::string_view content);

/// A block that was opened and not closed.
[[nodiscard]] std::optional<UnparsedToolCall> find_unterminated(std::string_view content,
                                                                std::string_view open,
                                                                std::string_view close);

/// The texts before, within and behind the next block from `at` on that begins with `open` and is
/// closed.
struct Block {
    std::size_t begin{0};
    std::size_t inner{0};
    std::size_t inner_end{0};
    std::size_t end{0};

    [[nodiscard]] std::string_view whole(std::string_view text) const {
        return text.substr(begin, end - begin);
    }
    [[nodiscard]] std::string_view inside(std::string_view text) const {
        return text.substr(inner, inner_end - inner);
    }
};
[[nodiscard]] std::optional<Block> find_block(std::string_view text, std::size_t at,
                                              std::string_view open, std::string_view close);

/// Adds calls to a message, sorted into those that were read and those that were not.
void put_calls(Message& message, std::vector<ParsedCall> calls);
void put_unparsed(Message& message, std::optional<UnparsedToolCall> call);

// OpenAI ------------------------------------------------------------------------------------------

enum class OpenAiArguments : std::uint8_t {
    text,
    value,           ///< what the text says; it must be JSON
    value_or_empty,  ///< as `value`; an empty text is an empty object
};

/// A message for servers and templates that take thinking as `reasoning_content`.
[[nodiscard]] std::string openai_with_reasoning(Message const& message, OpenAiArguments arguments);
/// As above, with thinking as tags in the content.
[[nodiscard]] std::string openai_with_tags(Message const& message);

}  // namespace tinkxx::text::render
