// Formats with <|im_start|> that came with Qwen3-VL and after it: Qwen3.5, Qwen3.8 and Nemotron.
// They are one algorithm; a table says in what they differ.
#include "text/errors/refuse.hpp"
#include "text/render/common/characters.hpp"
#include "text/render/families/qwen.hpp"
#include "text/render/parse/xml_calls.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tinkxx::text::render {

namespace {

enum class Trim : std::uint8_t { none, texts, all };
enum class Strips : std::uint8_t { all_but_last, up_to_user, before_user };
// When an empty block of thinking stands in front of a message of the assistant.
enum class EmptyBlock : std::uint8_t { never, after_user, unless_stripped, nemotron, ultra };
enum class CallFormat : std::uint8_t { json, qwen_xml, nemotron_xml, ultra_xml };
enum class Effort : std::uint8_t { none, in_system, behind_user };
enum class System : std::uint8_t { as_is, with_effort, always };

struct ImStyle {
    ImFormat format;
    bool frames_thinking{true};
    bool groups_tool_answers{true};
    Trim trim{Trim::all};
    Strips strips{Strips::all_but_last};
    EmptyBlock empty_block{EmptyBlock::after_user};
    std::string_view think_open{"<think>\n"};
    std::string_view think_close{"\n</think>\n\n"};
    std::string_view answer_close{"\n</tool_response>"};
    std::string_view answer_separator{"\n"};
    CallFormat calls{CallFormat::qwen_xml};
    XmlScalars scalars{XmlScalars::python};
    // What the generation prompt opens.
    std::string_view prompt_thinking{"<think>\n"};
    std::string_view prompt_no_thinking{"<think>\n\n</think>\n\n"};
    // Line breaks between thinking and text that the parser removes.
    std::size_t breaks_after_thinking{2};
    System system{System::as_is};
    bool tools_as_xml{false};
};

constexpr std::array<ImStyle, 6> im_styles{{
    {.format = ImFormat::qwen3_vl,
     .groups_tool_answers = false,
     .trim = Trim::none,
     .empty_block = EmptyBlock::never,
     .think_open = "<think>",
     .think_close = "</think>",
     .calls = CallFormat::json,
     .prompt_thinking = "",
     .prompt_no_thinking = ""},
    {.format = ImFormat::qwen3_vl_instruct,
     .frames_thinking = false,
     .groups_tool_answers = false,
     .trim = Trim::none,
     .empty_block = EmptyBlock::never,
     .think_open = "<think>",
     .think_close = "</think>",
     .calls = CallFormat::json,
     .prompt_thinking = "",
     .prompt_no_thinking = ""},
    {.format = ImFormat::qwen3_5},
    {.format = ImFormat::qwen3_8,
     .strips = Strips::up_to_user,
     .empty_block = EmptyBlock::unless_stripped,
     .scalars = XmlScalars::json,
     .system = System::with_effort},
    {.format = ImFormat::nemotron3,
     .trim = Trim::texts,
     .strips = Strips::before_user,
     .empty_block = EmptyBlock::nemotron,
     .think_close = "\n</think>\n",
     .answer_close = "\n</tool_response>\n",
     .answer_separator = "",
     .calls = CallFormat::nemotron_xml,
     .prompt_no_thinking = "<think></think>",
     .breaks_after_thinking = 1,
     .system = System::always,
     .tools_as_xml = true},
    {.format = ImFormat::nemotron3_ultra,
     .trim = Trim::texts,
     .strips = Strips::before_user,
     .empty_block = EmptyBlock::ultra,
     .think_close = "</think>",
     .answer_close = "\n</tool_response>\n",
     .answer_separator = "",
     .calls = CallFormat::ultra_xml,
     .prompt_no_thinking = "<think></think>",
     .breaks_after_thinking = 2,
     .system = System::always,
     .tools_as_xml = true},
}};

ImStyle const& style_of(ImFormat format) {
    return *std::ranges::find(im_styles, format, &ImStyle::format);
}

// Strips the texts at both ends of the content, as far as they are nothing but white space.
std::vector<ContentPart> trimmed_parts(std::vector<ContentPart> parts) {
    auto const trim = [](ContentPart& part, auto strip_one) {
        if (std::holds_alternative<ThinkingPart>(part)) return false;
        auto* text = std::get_if<TextPart>(&part);
        if (text == nullptr) return true;
        text->text = std::string{strip_one(text->text)};
        return !text->text.empty();
    };
    for (auto& part : parts) {
        if (trim(part, [](std::string_view text) { return strip_left(text); })) break;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (trim(*part, [](std::string_view text) { return strip_right(text); })) break;
    }
    return parts;
}

bool has_text_part(Content const& content, bool visible) {
    return std::ranges::any_of(content.parts(), [visible](ContentPart const& part) {
        auto const* text = std::get_if<TextPart>(&part);
        return text != nullptr &&
               !(visible ? strip(text->text) : std::string_view{text->text}).empty();
    });
}

[[noreturn]] void refuse_image() {
    refuse("render_message", "content", "image",
           "the message has an image, and nothing here knows how many tokens it makes; give text "
           "only, or put the image into a ModelInput yourself");
}

class ImRenderer final : public QwenRenderer {
public:
    ImRenderer(TokenizerPointer tokenizer, ImOptions const& options)
        : QwenRenderer{std::move(tokenizer), style_of(options.format).frames_thinking},
          style_{style_of(options.format)},
          thinks_{options.thinks},
          strip_thinking_{options.strip_thinking},
          effort_{options.effort} {}

    [[nodiscard]] bool has_extension_property() const override {
        if (style_.format == ImFormat::qwen3_5 || style_.format == ImFormat::qwen3_8) return false;
        return !strip_thinking_;
    }
    [[nodiscard]] bool disables_thinking() const override { return !thinks_; }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& context) const override;
    [[nodiscard]] std::vector<Token> build_generation_prompt(
        Messages messages, std::string_view role, std::string_view prefill) const override {
        return Renderer::build_generation_prompt(normalized(messages), role, prefill);
    }
    [[nodiscard]] RenderedExample build_supervised_example(
        Messages messages, TrainOnWhat train_on_what) const override {
        return Renderer::build_supervised_example(normalized(messages), train_on_what);
    }
    [[nodiscard]] std::vector<Message> create_conversation_prefix_with_tools(
        std::span<ToolSpec const> tools, std::string_view system_prompt) const override;
    [[nodiscard]] std::string to_openai_message(Message const& message) const override {
        return openai_with_reasoning(message, style_.calls == CallFormat::json
                                                  ? OpenAiArguments::text
                                                  : OpenAiArguments::value);
    }

protected:
    [[nodiscard]] std::vector<Token> generation_suffix(
        std::string_view role, RenderContext const& context) const override {
        auto const shown = style_.prompt_thinking.empty() && role == "tool" ? "user" : role;
        return encode(header_start(shown, context) +
                      std::string{thinks_ ? style_.prompt_thinking : style_.prompt_no_thinking});
    }
    [[nodiscard]] std::vector<Token> normalize_response(
        std::span<Token const> response) const override;
    void finish_parsed(Message& message) const override;

private:
    static std::string header_start(std::string_view role, RenderContext const& context) {
        return (context.index > 0 ? "\n<|im_start|>" : "<|im_start|>") + std::string{role} + "\n";
    }
    [[nodiscard]] bool is_nemotron() const { return style_.system == System::always; }

    [[nodiscard]] std::vector<Message> normalized(Messages messages) const;
    [[nodiscard]] std::vector<Message> with_effort(Messages messages) const;
    [[nodiscard]] Content trimmed(Message const& message, RenderContext const& context) const;
    [[nodiscard]] bool strips(Message const& message, RenderContext const& context) const;
    [[nodiscard]] std::string empty_block(Message const& message,
                                          RenderContext const& context) const;
    [[nodiscard]] std::string nemotron_block(Message const& message,
                                             RenderContext const& context) const;
    [[nodiscard]] std::string header_text(Message const& message,
                                          RenderContext const& context) const;
    [[nodiscard]] std::string output_text(Message const& message,
                                          RenderContext const& context) const;
    [[nodiscard]] std::string calls_text(Message const& message) const;
    // What of the header of the turn to be produced stands in the generation prompt.
    [[nodiscard]] std::string prompt_header(Message const& message,
                                            RenderContext const& context) const;

    ImStyle const& style_;
    bool thinks_;
    bool strip_thinking_;
    std::string effort_;
};

RenderedMessage ImRenderer::render_message(Message const& given,
                                           RenderContext const& context) const {
    auto message = given;
    message.content = trimmed(given, context);
    auto header = header_text(message, context);
    RenderedMessage out;
    auto const supplied = prompt_header(message, context);
    if (!supplied.empty() && header.starts_with(supplied)) {
        out.output = encode(header.substr(supplied.size()));
        header = supplied;
    }
    out.header = encode(header);
    auto const body = encode(output_text(message, context));
    out.output.insert(out.output.end(), body.begin(), body.end());
    return out;
}

Content ImRenderer::trimmed(Message const& message, RenderContext const& context) const {
    auto content = message.content;
    if (is_nemotron() && !effort_.empty() && message.role == "user" &&
        std::cmp_equal(context.index, context.last_user_index)) {
        if (content.is_parts()) {
            if (effort_ == nemotron_low_effort) {
                refuse("render_message", "content", {},
                       "the last message of the user has parts; this renderer takes a text there");
            }
            auto parts = content.parts();
            parts.emplace_back(TextPart{effort_});
            content = std::move(parts);
        } else {
            content = content.text() + effort_;
        }
    }
    if (style_.trim == Trim::none) return content;
    if (!content.is_parts()) return strip(content.text());
    return style_.trim == Trim::all ? Content{trimmed_parts(content.parts())} : content;
}

bool ImRenderer::strips(Message const& message, RenderContext const& context) const {
    if (!strip_thinking_ || message.role != "assistant") return false;
    auto const index = static_cast<std::ptrdiff_t>(context.index);
    switch (style_.strips) {
        case Strips::all_but_last:
            return !context.is_last;
        case Strips::up_to_user:
            return index <= context.last_user_index;
        case Strips::before_user:
            return !context.is_last && index < context.last_user_index;
    }
    return false;
}

std::string ImRenderer::empty_block(Message const& message, RenderContext const& context) const {
    constexpr std::string_view block = "<think>\n\n</think>\n\n";
    auto const after_user = static_cast<std::ptrdiff_t>(context.index) > context.last_user_index;
    bool wanted = false;
    switch (style_.empty_block) {
        case EmptyBlock::never:
            break;
        case EmptyBlock::after_user:
            wanted = after_user && !has_thinking(message.content);
            break;
        case EmptyBlock::unless_stripped:
            wanted = (after_user || !strip_thinking_) && !has_thinking_part(message.content);
            break;
        case EmptyBlock::nemotron:
        case EmptyBlock::ultra:
            return nemotron_block(message, context);
    }
    return wanted ? std::string{block} : std::string{};
}

std::string ImRenderer::nemotron_block(Message const& message, RenderContext const& context) const {
    auto const earlier = static_cast<std::ptrdiff_t>(context.index) < context.last_user_index;
    auto const thought = has_thinking(message.content);
    if (thought && (!earlier || !strip_thinking_)) return {};
    auto const separates = style_.empty_block == EmptyBlock::nemotron && earlier && thought &&
                           has_text_part(message.content, false) &&
                           (!message.tool_calls || message.tool_calls->empty());
    return separates ? "<think></think>\n" : "<think></think>";
}

std::string ImRenderer::header_text(Message const& message, RenderContext const& context) const {
    auto const tool = message.role == "tool";
    if (tool && style_.groups_tool_answers && context.previous != nullptr &&
        context.previous->role == "tool") {
        return std::string{style_.answer_separator};  // the block of the user is still open
    }
    auto out = header_start(tool ? "user" : message.role, context);
    if (message.role == "assistant") out += empty_block(message, context);
    return out;
}

std::string ImRenderer::output_text(Message const& message, RenderContext const& context) const {
    auto const tool = message.role == "tool";
    auto const strip_it = strips(message, context);
    std::string out = tool ? "<tool_response>\n" : "";
    if (!message.content.is_parts()) out += message.content.text();
    for (auto const& part : message.content.parts()) {
        if (auto const* text = std::get_if<TextPart>(&part)) {
            out += text->text;
        } else if (auto const* thinking = std::get_if<ThinkingPart>(&part)) {
            if (strip_it) continue;
            out.append(style_.think_open).append(thinking->thinking).append(style_.think_close);
        } else {
            refuse_image();
        }
    }
    if (tool) out += style_.answer_close;
    if (message.tool_calls) out += calls_text(message);
    auto const stays_open = tool && style_.groups_tool_answers && context.next != nullptr &&
                            context.next->role == "tool";
    if (!stays_open) out += "<|im_end|>";
    return out;
}

std::string ImRenderer::calls_text(Message const& message) const {
    auto const& calls = *message.tool_calls;
    auto const& content = message.content;
    if (style_.calls == CallFormat::json) return "\n" + json_tool_calls(calls);
    std::string out;
    if (style_.calls == CallFormat::qwen_xml) {
        auto const visible =
            content.is_parts() ? has_text_part(content, true) : !strip(content.text()).empty();
        if (visible) out = "\n\n";
        for (auto const& call : calls) {
            if (&call != calls.data()) out += '\n';
            out += xml_tool_call(call, style_.scalars);
        }
        return out;
    }
    // Thinking already ends in a line break.
    auto const behind_thinking = style_.calls == CallFormat::nemotron_xml &&
                                 has_thinking_part(content) && !has_text_part(content, false);
    if (!behind_thinking) out = "\n";
    for (auto const& call : calls) out += xml_tool_call(call, style_.scalars) + "\n";
    return out;
}

std::string ImRenderer::prompt_header(Message const& message, RenderContext const& context) const {
    if (message.role != "assistant" || style_.prompt_thinking.empty()) return {};
    auto const produced =
        context.is_last ||
        (is_nemotron() && static_cast<std::ptrdiff_t>(context.index) >= context.last_user_index);
    if (!produced) return {};
    auto const opened =
        thinks_ || is_nemotron() ? style_.prompt_thinking : style_.prompt_no_thinking;
    return header_start(message.role, context) + std::string{opened};
}

std::vector<Message> ImRenderer::normalized(Messages messages) const {
    if (style_.system == System::with_effort) return with_effort(messages);
    std::vector<Message> out{messages.begin(), messages.end()};
    if (style_.system == System::always && (out.empty() || out.front().role != "system")) {
        out.insert(out.begin(), Message{.role = "system", .content = ""});
    }
    return out;
}

// Can be repeated: a message that has the sentence gets no other.
std::vector<Message> ImRenderer::with_effort(Messages messages) const {
    std::vector<Message> out{messages.begin(), messages.end()};
    if (out.empty() || out.front().role != "system") {
        if (effort_.empty()) return out;
        Message system{.role = "system", .content = effort_};
        // Each message has to say whether it is trainable, or none.
        auto const says = [](Message const& message) { return message.trainable.has_value(); };
        if (std::ranges::any_of(out, says)) system.trainable = false;
        out.insert(out.begin(), std::move(system));
        return out;
    }
    auto& first = out.front().content;
    auto const is_text = [](ContentPart const& part) {
        return std::holds_alternative<TextPart>(part);
    };
    if (!std::ranges::all_of(first.parts(), is_text)) {
        auto parts = first.parts();
        auto const* text = std::get_if<TextPart>(&parts.front());
        if (effort_.empty() || (text != nullptr && text->text.starts_with(effort_))) return out;
        parts.insert(parts.begin(), TextPart{effort_ + "\n\n"});
        first = std::move(parts);
        return out;
    }
    auto const whole = get_text(out.front());
    std::string text{strip(whole)};
    if (text.empty() && effort_.empty()) {
        out.erase(out.begin());
        return out;
    }
    if (!effort_.empty() && text != effort_ && !text.starts_with(effort_ + "\n\n")) {
        text = text.empty() ? effort_ : effort_ + "\n\n" + text;
    }
    first = std::move(text);
    return out;
}

std::vector<Token> ImRenderer::normalize_response(std::span<Token const> response) const {
    std::vector<Token> out{response.begin(), response.end()};
    if (style_.prompt_thinking.empty()) return out;
    auto const open = encode("<think>\n");
    auto const close = single_token("</think>");
    auto const opened =
        out.size() >= open.size() && std::equal(open.begin(), open.end(), out.begin());
    if (!opened && std::ranges::find(out, close) != out.end()) {
        out.insert(out.begin(), open.begin(), open.end());
    }
    return out;
}

void ImRenderer::finish_parsed(Message& message) const {
    if (style_.calls == CallFormat::json) return;
    auto parts = message.content.parts();
    bool thought = false;
    for (auto& part : parts) {
        if (auto* thinking = std::get_if<ThinkingPart>(&part)) {
            thinking->thinking = std::string{strip(thinking->thinking)};
            thought = true;
            continue;
        }
        auto* text = std::get_if<TextPart>(&part);
        if (!thought || text == nullptr) continue;
        std::string_view rest{text->text};
        if (style_.breaks_after_thinking == 1 && rest.starts_with('\n')) rest.remove_prefix(1);
        if (rest.starts_with("\n\n")) rest.remove_prefix(2);
        text->text = std::string{rest};
        break;
    }
    if (message.content.is_parts()) message.content = std::move(parts);
    read_xml_calls(message);
}

std::vector<Message> ImRenderer::create_conversation_prefix_with_tools(
    std::span<ToolSpec const> tools, std::string_view system_prompt) const {
    if (style_.calls == CallFormat::json) {
        return QwenRenderer::create_conversation_prefix_with_tools(tools, system_prompt);
    }
    std::string const prompt{system_prompt};
    auto text = style_.tools_as_xml ? xml_tools_as_xml(tools) : xml_tools_as_json(tools);
    if (text.empty()) {
        text = prompt;
    } else if (!prompt.empty()) {
        text = style_.tools_as_xml ? prompt + "\n\n" + text : text + "\n\n" + prompt;
    }
    return {Message{.role = "system", .content = std::move(text)}};
}

}  // namespace

RendererPointer make_im(TokenizerPointer tokenizer, ImOptions const& options) {
    return std::make_unique<ImRenderer>(std::move(tokenizer), options);
}

}  // namespace tinkxx::text::render
