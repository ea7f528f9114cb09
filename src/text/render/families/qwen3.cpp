// Qwen3 without images: thinking, without thinking, and the instruct models of 2507.
#include "text/render/families/qwen.hpp"

#include "text/errors/refuse.hpp"
#include "text/render/common/characters.hpp"

#include <utility>

namespace tinkxx::text::render {

namespace {

std::string framed(std::string_view thinking) {
    return "<think>\n" + std::string{strip(thinking, '\n')} + "\n</think>\n\n";
}

// The line breaks around a block are no content, and an empty block is a turn that did not think.
std::vector<ContentPart> without_frames(std::vector<ContentPart> const& parts) {
    std::vector<ContentPart> out;
    bool after_block = false;
    for (auto const& part : parts) {
        if (auto const* thinking = std::get_if<ThinkingPart>(&part)) {
            auto const text = strip(thinking->thinking, '\n');
            if (!text.empty()) out.emplace_back(ThinkingPart{std::string{text}});
            after_block = true;
        } else {
            auto const& text = std::get<TextPart>(part).text;
            out.emplace_back(TextPart{std::string{after_block ? strip_left(text, '\n') : text}});
            after_block = false;
        }
    }
    return out;
}

constexpr std::string_view json_tools_before = R"(# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
)";
constexpr std::string_view json_tools_after = R"(
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>)";

class Qwen3Renderer final : public QwenRenderer {
public:
    Qwen3Renderer(TokenizerPointer tokenizer, Qwen3Mode mode, bool strip_thinking)
        : QwenRenderer{std::move(tokenizer), mode != Qwen3Mode::instruct},
          mode_{mode},
          strip_thinking_{strip_thinking} {}

    [[nodiscard]] bool has_extension_property() const override {
        return mode_ == Qwen3Mode::instruct || !strip_thinking_;
    }
    [[nodiscard]] bool disables_thinking() const override {
        return mode_ == Qwen3Mode::no_thinking;
    }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& context) const override {
        check_follows_prompt(message, context);
        std::string const role = message.role == "tool" ? "user" : message.role;
        auto text = content_text(message, context);
        auto const has_text = !text.empty();
        if (frames(message, context) && !has_thinking(message.content)) {
            text = framed("") + std::string{strip_left(text, '\n')};
        }
        if (message.role == "tool") text = "<tool_response>\n" + text + "\n</tool_response>";
        if (message.tool_calls) {
            text += (has_text ? "\n" : "") + json_tool_calls(*message.tool_calls);
        }
        RenderedMessage out{.header = encode(header(role, context)),
                            .output = encode(text, RenderTokenizer::Specials::as_text)};
        out.output.push_back(end_token());
        return out;
    }

protected:
    [[nodiscard]] std::vector<Token> generation_suffix(
        std::string_view role, RenderContext const& context) const override {
        if (mode_ != Qwen3Mode::no_thinking) return Renderer::generation_suffix(role, context);
        return encode(header(role, context) + "<think>\n\n</think>\n\n");
    }

private:
    static std::string header(std::string_view role, RenderContext const& context) {
        return (context.index > 0 ? "\n<|im_start|>" : "<|im_start|>") + std::string{role} + "\n";
    }

    // Without a user there is no block on the last turn, but always one in the prompt.
    void check_follows_prompt(Message const& message, RenderContext const& context) const {
        auto const empty = message.content.is_parts() ? message.content.parts().empty()
                                                      : message.content.text().empty();
        if (mode_ != Qwen3Mode::no_thinking || message.role != "assistant" || !context.is_last ||
            empty || context.last_user_index >= 0) {
            return;
        }
        refuse("render_message", "messages", {},
               "the conversation has no message of the user, for which the format writes no empty "
               "block of thinking, while its prompt always does; add one, or use a renderer that "
               "thinks");
    }

    [[nodiscard]] bool frames(Message const& message, RenderContext const& context) const {
        if (mode_ == Qwen3Mode::instruct || message.role != "assistant") return false;
        return context.last_user_index >= 0 && (context.is_last || !strip_thinking_);
    }

    [[nodiscard]] std::string content_text(Message const& message,
                                           RenderContext const& context) const {
        auto const in_frames = frames(message, context);
        if (message.content.is_parts()) return parts_text(message, context, in_frames);
        std::string_view const text = message.content.text();
        auto const close = text.find("</think>");
        if (!in_frames || close == std::string_view::npos) return std::string{text};
        auto thinking = text.substr(0, close);
        if (auto const open = thinking.rfind("<think>"); open != std::string_view::npos) {
            thinking.remove_prefix(open + std::string_view{"<think>"}.size());
        }
        auto const rest = text.substr(close + std::string_view{"</think>"}.size());
        return framed(thinking) + std::string{strip_left(rest, '\n')};
    }

    [[nodiscard]] std::string parts_text(Message const& message, RenderContext const& context,
                                         bool in_frames) const {
        auto const strips = strip_thinking_ && message.role == "assistant" && !context.is_last;
        std::string out;
        bool after_block = false;
        for (auto const& part : message.content.parts()) {
            if (auto const* thinking = std::get_if<ThinkingPart>(&part)) {
                if (strips) continue;
                out += in_frames ? framed(thinking->thinking)
                                 : "<think>" + thinking->thinking + "</think>";
                after_block = in_frames;
            } else if (auto const* text = std::get_if<TextPart>(&part)) {
                out += after_block ? strip_left(text->text, '\n') : std::string_view{text->text};
                after_block = false;
            }
        }
        return out;
    }

    Qwen3Mode mode_;
    bool strip_thinking_;
};

}  // namespace

QwenRenderer::QwenRenderer(TokenizerPointer tokenizer, bool frames_thinking)
    : Renderer{std::move(tokenizer)},
      frames_thinking_{frames_thinking},
      end_{single_token("<|im_end|>")} {}

ParsedResponse QwenRenderer::parse_response(std::span<Token const> response) const {
    auto const normalized = normalize_response(response);
    auto out = split_at_stop(normalized, tokenizer(), end_);
    if (!is_clean(out.termination)) return out;
    return parse_whole(normalized);
}

ParsedResponse QwenRenderer::parse_whole(std::span<Token const> response) const {
    auto out = split_at_stop(response, tokenizer(), end_);
    auto const content = out.message.content.text();
    if (auto blocks = parse_content_blocks(content)) {
        out.message.content =
            frames_thinking_ ? without_frames(blocks->parts) : std::move(blocks->parts);
        put_calls(out.message, std::move(blocks->calls));
    }
    put_unparsed(out.message, find_unterminated(content, "<tool_call>", "</tool_call>"));
    finish_parsed(out.message);
    return out;
}

std::string QwenRenderer::to_openai_message(Message const& message) const {
    return openai_with_reasoning(message, OpenAiArguments::text);
}

std::vector<Message> QwenRenderer::create_conversation_prefix_with_tools(
    std::span<ToolSpec const> tools, std::string_view system_prompt) const {
    std::string text;
    for (auto const& tool : tools) {
        auto wrapped = Json::object();
        wrapped.append("type", Json::string("function"));
        wrapped.append("function", tool_json(tool));
        text += (text.empty() ? "" : "\n") + write_json(wrapped);
    }
    if (!tools.empty())
        text = std::string{json_tools_before} + text + std::string{json_tools_after};
    if (!system_prompt.empty()) text = std::string{system_prompt} + "\n\n" + text;
    return {Message{.role = "system", .content = std::move(text)}};
}

std::string json_tool_calls(std::vector<ToolCall> const& calls) {
    std::string out;
    for (auto const& call : calls) {
        if (!out.empty()) out += '\n';
        out += "<tool_call>\n" + call_payload(call) + "\n</tool_call>";
    }
    return out;
}

RendererPointer make_qwen3(TokenizerPointer tokenizer, Qwen3Mode mode, bool strip_thinking) {
    return std::make_unique<Qwen3Renderer>(std::move(tokenizer), mode, strip_thinking);
}

}  // namespace tinkxx::text::render
