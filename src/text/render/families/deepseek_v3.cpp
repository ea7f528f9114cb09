#include "text/errors/refuse.hpp"
#include "text/python/characters.hpp"
#include "text/render/common/characters.hpp"
#include "text/render/families/families.hpp"
#include "text/render/parse/parsing.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::text::render {

namespace {

constexpr std::string_view calls_begin = "<｜tool▁calls▁begin｜>";
constexpr std::string_view calls_end = "<｜tool▁calls▁end｜>";
constexpr std::string_view call_begin = "<｜tool▁call▁begin｜>";
constexpr std::string_view call_end = "<｜tool▁call▁end｜>";
constexpr std::string_view call_separator = "<｜tool▁sep｜>";

constexpr std::string_view v3_tools_before = R"(

## Tools
You have access to the following tools:

)";
constexpr std::string_view v3_tools_after = R"(

IMPORTANT: ALWAYS adhere to this exact format for tool use:
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tool_call_name<｜tool▁sep｜>tool_call_arguments<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Where:
- `tool_call_name` must be an exact match to one of the available tools
- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema
- For multiple tool calls, chain them directly without separators or spaces)";

bool follows_tool(RenderContext const& context) {
    return context.previous != nullptr && context.previous->role == "tool";
}

bool has_content(Content const& content) {
    return content.is_parts() ? !content.parts().empty() : !content.text().empty();
}

void append_tokens(std::vector<Token>& out, std::vector<Token> const& tokens) {
    out.insert(out.end(), tokens.begin(), tokens.end());
}

std::string without_think_blocks(std::string_view text) {
    std::string out;
    std::size_t at = 0;
    while (auto const block = find_block(text, at, "<think>", "</think>")) {
        out += text.substr(at, block->begin - at);
        at = block->end;
    }
    return out + std::string{text.substr(at)};
}

// A text without its calls and the white space before them.
std::string without_calls(std::string_view text) {
    std::string out;
    std::size_t at = 0;
    while (auto const block = find_block(text, at, calls_begin, calls_end)) {
        out += strip_right(text.substr(at, block->begin - at));
        at = block->end;
    }
    out += text.substr(at);
    return std::string{strip(out)};
}

std::size_t word_length(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        auto const found = decode_at(text, at);
        if (!python::is_word(found.code)) break;
        at += found.size;
    }
    return at;
}

std::vector<ParsedCall> v3_calls(std::string_view content) {
    std::vector<ParsedCall> out;
    auto const section = find_block(content, 0, calls_begin, calls_end);
    if (!section) return out;
    auto const text = section->inside(content);
    std::size_t at = 0;
    while (true) {
        auto const begin = text.find(call_begin, at);
        if (begin == std::string_view::npos) return out;
        at = begin + call_begin.size();
        auto const name = text.substr(at, word_length(text.substr(at)));
        if (name.empty() || !text.substr(at + name.size()).starts_with(call_separator)) continue;
        auto const start = at + name.size() + call_separator.size();
        auto const end = text.find(call_end, start);
        if (end == std::string_view::npos) return out;
        at = end + call_end.size();
        auto const arguments = strip(text.substr(start, end - start));
        if (auto const read = read_json(arguments); read.value) {
            out.emplace_back(
                ToolCall{.name = std::string{name}, .arguments = std::string{arguments}});
        } else {
            out.emplace_back(UnparsedToolCall{std::string{text.substr(begin, at - begin)},
                                              "Invalid JSON: " + read.error});
        }
    }
}

std::optional<UnparsedToolCall> v3_unterminated(std::string_view content) {
    if (auto found = find_unterminated(content, calls_begin, calls_end)) return found;
    return find_unterminated(content, call_begin, call_end);
}

class DeepSeekV3Renderer final : public Renderer {
public:
    DeepSeekV3Renderer(TokenizerPointer tokenizer, bool thinks, bool strip_thinking,
                       bool system_role_as_user)
        : Renderer{std::move(tokenizer)},
          thinks_{thinks},
          strip_thinking_{strip_thinking},
          system_role_as_user_{system_role_as_user},
          begin_{single_token("<｜begin▁of▁sentence｜>")},
          end_{single_token("<｜end▁of▁sentence｜>")},
          user_{single_token("<｜User｜>")},
          assistant_{single_token("<｜Assistant｜>")} {}

    [[nodiscard]] StopSequences stop_sequences() const override { return {.tokens = {end_}}; }
    [[nodiscard]] bool has_extension_property() const override {
        return !thinks_ || !strip_thinking_;
    }
    [[nodiscard]] bool supports_streaming() const override { return true; }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& context) const override {
        if (message.role != "assistant" || follows_tool(context)) return plain(message, context);
        return thinks_ ? thinking(message, context) : not_thinking(message, context);
    }

    [[nodiscard]] std::vector<Token> build_generation_prompt(
        Messages messages, std::string_view role, std::string_view prefill) const override {
        // What follows a tool's answer goes on without thinking.
        auto const opens = thinks_ && (messages.empty() || messages.back().role != "tool");
        return Renderer::build_generation_prompt(messages, role,
                                                 (opens ? "<think>" : "") + std::string{prefill});
    }

    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override {
        auto const normalized = normalize_response(response);
        auto out = split_at_stop(normalized, tokenizer(), end_);
        return is_clean(out.termination) ? parse_whole(normalized) : out;
    }

    [[nodiscard]] std::string to_openai_message(Message const& message) const override {
        return openai_with_reasoning(message, OpenAiArguments::text);
    }

    [[nodiscard]] std::vector<Message> create_conversation_prefix_with_tools(
        std::span<ToolSpec const> tools, std::string_view system_prompt) const override {
        std::string text{system_prompt};
        if (!tools.empty()) text += v3_tools_before;
        for (auto const& tool : tools) {
            auto const json = tool_json(tool);
            auto const* parameters = json.find("parameters");
            if (&tool != tools.data()) text += '\n';
            text += "### " + member_text(json, "name") +
                    "\nDescription: " + member_text(json, "description") +
                    "\n\nParameters: " + (parameters == nullptr ? "{}" : write_json(*parameters));
        }
        if (!tools.empty()) text += v3_tools_after;
        return {Message{.role = "system", .content = std::move(text)}};
    }

protected:
    [[nodiscard]] std::vector<Token> bos_tokens() const override { return {begin_}; }
    [[nodiscard]] Token end_of_message(std::span<Token const> /*response*/) const override {
        return end_;
    }

    [[nodiscard]] std::vector<Token> normalize_response(
        std::span<Token const> response) const override {
        std::vector<Token> out{response.begin(), response.end()};
        if (!thinks_) return out;
        auto const open = tokenizer().find("<think>");
        auto const close = tokenizer().find("</think>");
        auto const opened = !out.empty() && open && out.front() == *open;
        if (open && close && !opened && std::ranges::find(out, *close) != out.end()) {
            out.insert(out.begin(), *open);
        }
        return out;
    }

    [[nodiscard]] ParsedResponse parse_whole(std::span<Token const> response) const override {
        auto out = split_at_stop(response, tokenizer(), end_);
        auto content = out.message.content.text();
        put_calls(out.message, v3_calls(content));
        put_unparsed(out.message, v3_unterminated(content));
        if (out.message.tool_calls || !out.message.unparsed_tool_calls.empty()) {
            content = without_calls(content);
        }
        out.message.content = think_content(content);
        return out;
    }

private:
    [[nodiscard]] RenderedMessage thinking(Message const& message,
                                           RenderContext const& context) const {
        auto out = plain(message, context);
        if (strip_thinking_ && !context.is_last) {
            append_tokens(out.header, encode("</think>"));
        } else if (context.is_last && has_content(message.content) &&
                   !has_thinking(message.content)) {
            auto block = encode("<think></think>");
            append_tokens(block, out.output);
            out.output = std::move(block);
        }
        return out;
    }

    [[nodiscard]] RenderedMessage not_thinking(Message message,
                                               RenderContext const& context) const {
        message.content = message.content.is_parts() ? get_text(message)
                                                     : without_think_blocks(message.content.text());
        auto out = plain(message, context);
        append_tokens(out.header, encode("</think>"));
        return out;
    }

    [[nodiscard]] RenderedMessage plain(Message const& message,
                                        RenderContext const& context) const {
        RenderedMessage out;
        std::string text;
        if (message.role == "assistant") {
            if (!follows_tool(context)) out.header = {assistant_};
            text = assistant_text(message, context);
        } else {
            text = plain_text(message.content);
            out.header = header(message, context);
            if (message.role == "tool") text += "<｜tool▁output▁end｜>";
        }
        if (message.tool_calls && !message.tool_calls->empty()) {
            text += calls_begin;
            for (auto const& call : *message.tool_calls) {
                text.append(call_begin).append(call.name).append(call_separator);
                text.append(call.arguments).append(call_end);
            }
            text += calls_end;
        }
        out.output = encode(text);
        if (message.role == "assistant" && has_content(message.content)) out.output.push_back(end_);
        return out;
    }

    [[nodiscard]] std::vector<Token> header(Message const& message,
                                            RenderContext const& context) const {
        if (message.role == "user") return {user_};
        if (message.role == "tool") return encode("<｜tool▁output▁begin｜>");
        if (message.role != "system") {
            refuse("render_message", "role", message.role,
                   "the role \"" + message.role +
                       "\" is not known to DeepSeek V3; use system, user, assistant or tool");
        }
        if (context.index == 0) return {};
        if (system_role_as_user_) return {user_};
        refuse("render_message", "role", message.role,
               "DeepSeek V3 takes a message of the system at the start only; set "
               "RendererOptions::system_role_as_user to render later ones as the user's");
    }

    [[nodiscard]] std::string assistant_text(Message const& message,
                                             RenderContext const& context) const {
        if (!message.content.is_parts()) return message.content.text();
        auto const calls = message.tool_calls && !message.tool_calls->empty();
        auto const strips = strip_thinking_ && !calls && !context.is_last;
        std::string out;
        for (auto const& part : message.content.parts()) {
            if (auto const* thought = std::get_if<ThinkingPart>(&part)) {
                if (!strips) out += "<think>" + thought->thinking + "</think>";
            } else if (auto const* text = std::get_if<TextPart>(&part)) {
                out += text->text;
            }
        }
        return out;
    }

    bool thinks_;
    bool strip_thinking_;
    bool system_role_as_user_;
    Token begin_;
    Token end_;
    Token user_;
    Token assistant_;
};

}  // namespace

RendererPointer make_deepseek_v3(TokenizerPointer tokenizer, bool thinks, bool strip_thinking,
                                 bool system_role_as_user) {
    return std::make_unique<DeepSeekV3Renderer>(std::move(tokenizer), thinks, strip_thinking,
                                                system_role_as_user);
}

}  // namespace tinkxx::text::render
