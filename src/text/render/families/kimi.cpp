// Kimi K2, K2.5 and K2.6.
#include "text/errors/refuse.hpp"
#include "text/python/characters.hpp"
#include "text/render/common/characters.hpp"
#include "text/render/families/families.hpp"
#include "text/render/parse/kimi_tools.hpp"
#include "text/render/parse/parsing.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tinkxx::text::render {

namespace {

constexpr std::string_view kimi_system = "You are Kimi, an AI assistant created by Moonshot AI.";
constexpr std::string_view kimi_call_begin = "<|tool_call_begin|>";
constexpr std::string_view kimi_arguments_begin = "<|tool_call_argument_begin|>";
constexpr std::string_view kimi_call_end = "<|tool_call_end|>";

struct Markers {
    std::string_view open;
    std::string_view close;
};
// Models write both spellings.
constexpr std::array<Markers, 2> kimi_sections{
    {{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
     {"<|tool_call_section_begin|>", "<|tool_call_section_end|>"}}};

std::optional<Block> kimi_section(std::string_view content) {
    std::optional<Block> first;
    for (auto const& markers : kimi_sections) {
        auto const found = find_block(content, 0, markers.open, markers.close);
        if (found && (!first || found->begin < first->begin)) first = found;
    }
    return first;
}

// Whether a text ends in a colon and digits, with something before.
bool is_call_id(std::string_view text) {
    auto end = strip_right(text).size();
    auto const digits = end;
    while (end > 0) {
        auto const last = decode_before(text, end);
        if (!python::is_decimal(last.code)) break;
        end -= last.size;
    }
    return end < digits && end > 1 && text[end - 1] == ':';
}

// The name in an id such as functions.get_weather:0.
std::string_view name_in_id(std::string_view id) {
    auto const name = id.substr(0, id.find(':'));
    auto const dot = name.find('.');
    return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::vector<ParsedCall> kimi_calls(std::string_view section) {
    std::vector<ParsedCall> out;
    std::size_t at = 0;
    while (true) {
        auto const begin = section.find(kimi_call_begin, at);
        if (begin == std::string_view::npos) return out;
        at = begin + kimi_call_begin.size();
        auto const id_end = section.find('<', at);
        if (id_end == std::string_view::npos) return out;
        auto const id = section.substr(at, id_end - at);
        if (!section.substr(id_end).starts_with(kimi_arguments_begin) || !is_call_id(id)) continue;
        auto const start = id_end + kimi_arguments_begin.size();
        auto const end = section.find(kimi_call_end, start);
        if (end == std::string_view::npos) return out;
        at = end + kimi_call_end.size();
        std::string const shown{strip(id)};
        auto const arguments = strip(section.substr(start, end - start));
        if (auto const read = read_json(arguments); read.value) {
            out.emplace_back(ToolCall{.name = std::string{name_in_id(shown)},
                                      .arguments = std::string{arguments},
                                      .id = shown});
        } else {
            out.emplace_back(UnparsedToolCall{std::string{section.substr(begin, at - begin)},
                                              "Invalid JSON: " + read.error});
        }
    }
}

std::optional<UnparsedToolCall> kimi_unterminated(std::string_view content) {
    for (auto const& markers : kimi_sections) {
        if (auto found = find_unterminated(content, markers.open, markers.close)) return found;
    }
    return find_unterminated(content, kimi_call_begin, kimi_call_end);
}

class KimiRenderer final : public Renderer {
public:
    KimiRenderer(TokenizerPointer tokenizer, KimiFormat format, bool strip_thinking)
        : Renderer{std::move(tokenizer)},
          format_{format},
          strip_thinking_{strip_thinking},
          end_{single_token("<|im_end|>")} {
        if (format_ == KimiFormat::k2) return;
        think_open_ = single_token("<think>");
        think_close_ = single_token("</think>");
    }

    [[nodiscard]] StopSequences stop_sequences() const override { return {.tokens = {end_}}; }
    [[nodiscard]] bool disables_thinking() const override {
        return format_ == KimiFormat::k2_5_no_thinking;
    }
    [[nodiscard]] bool supports_streaming() const override { return true; }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& context) const override {
        RenderedMessage out{.header = encode(header(message))};
        if (message.role == "assistant") {
            out.output = encode(assistant_text(message, context) + "<|im_end|>");
        } else if (!message.content.is_parts() || is_one_text(message.content.parts())) {
            out.output = encode(plain_text(message.content) + "<|im_end|>");
        } else {
            out.output = parts(message.content.parts());
        }
        return out;
    }

    [[nodiscard]] std::vector<Token> build_generation_prompt(
        Messages messages, std::string_view role, std::string_view prefill) const override {
        std::string const opened = format_ == KimiFormat::k2     ? ""
                                   : format_ == KimiFormat::k2_5 ? "<think>"
                                                                 : "<think></think>";
        return Renderer::build_generation_prompt(with_system(messages), role,
                                                 opened + std::string{prefill});
    }
    [[nodiscard]] RenderedExample build_supervised_example(
        Messages messages, TrainOnWhat train_on_what) const override {
        return Renderer::build_supervised_example(with_system(messages), train_on_what);
    }
    [[nodiscard]] std::vector<RenderedExample> build_supervised_examples(
        Messages messages, TrainOnWhat train_on_what) const override;

    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override {
        auto const shaped = normalize_response(response);
        auto out = split_at_stop(shaped, tokenizer(), end_);
        return is_clean(out.termination) ? parse_whole(shaped) : out;
    }
    [[nodiscard]] std::string to_openai_message(Message const& message) const override {
        return openai_with_reasoning(message, OpenAiArguments::text);
    }
    [[nodiscard]] std::vector<Message> create_conversation_prefix_with_tools(
        std::span<ToolSpec const> tools, std::string_view system_prompt) const override;

protected:
    // A turn begins behind the last message of the assistant that called nothing.
    [[nodiscard]] std::size_t last_assistant_turn_start(Messages messages) const override {
        for (auto i = messages.size(); i > 0; --i) {
            auto const& message = messages[i - 1];
            auto const calls = message.tool_calls && !message.tool_calls->empty();
            if (message.role == "assistant" && !calls) return i;
        }
        return 0;
    }
    [[nodiscard]] Token end_of_message(std::span<Token const> /*response*/) const override {
        return end_;
    }
    [[nodiscard]] std::vector<Token> normalize_response(
        std::span<Token const> response) const override {
        std::vector<Token> out{response.begin(), response.end()};
        if (format_ != KimiFormat::k2 && !out.empty() && out.front() != think_open_ &&
            std::ranges::find(out, think_close_) != out.end()) {
            out.insert(out.begin(), think_open_);
        }
        return out;
    }
    [[nodiscard]] ParsedResponse parse_whole(std::span<Token const> response) const override {
        auto out = split_at_stop(response, tokenizer(), end_);
        auto const content = out.message.content.text();
        std::string_view text{content};
        if (auto const section = kimi_section(content)) {
            put_calls(out.message, kimi_calls(section->inside(content)));
            text = text.substr(0, section->begin);
        }
        put_unparsed(out.message, kimi_unterminated(content));
        out.message.content = think_content(text);
        return out;
    }

private:
    static bool is_one_text(std::vector<ContentPart> const& parts) {
        return parts.size() == 1 && std::holds_alternative<TextPart>(parts.front());
    }

    static std::string header(Message const& message) {
        auto const& role = message.role;
        auto const marker = role == "user"        ? "<|im_user|>"
                            : role == "assistant" ? "<|im_assistant|>"
                                                  : "<|im_system|>";
        if (role != "tool") return marker + role + "<|im_middle|>";
        auto const name = message.name.value_or("");
        return marker + (name.empty() ? role : name) + "<|im_middle|>## Return of " +
               message.tool_call_id.value_or("") + "\n";
    }

    [[nodiscard]] std::string assistant_text(Message const& message,
                                             RenderContext const& context) const {
        auto const keeps = context.in_last_assistant_turn || !strip_thinking_;
        auto out =
            "<think>" + (keeps ? get_thinking(message) : "") + "</think>" + get_text(message);
        if (!message.tool_calls || message.tool_calls->empty()) return out;
        out += kimi_sections[0].open;
        std::size_t number = 0;
        for (auto const& call : *message.tool_calls) {
            auto const id = call.id.value_or("");
            out += kimi_call_begin;
            out += id.empty() ? "functions." + call.name + ":" + std::to_string(number) : id;
            out.append(kimi_arguments_begin).append(call.arguments).append(kimi_call_end);
            ++number;
        }
        out += kimi_sections[0].close;
        return out;
    }

    // Each part on its own, as where images stand between.
    [[nodiscard]] std::vector<Token> parts(std::vector<ContentPart> const& content) const {
        std::vector<Token> out;
        for (auto const& part : content) {
            auto const* text = std::get_if<TextPart>(&part);
            if (text == nullptr) {
                refuse("render_message", "content", {},
                       "a message that is not the assistant's has an image or thinking, which "
                       "this renderer does not take; give text only");
            }
            auto const tokens = encode(text->text);
            out.insert(out.end(), tokens.begin(), tokens.end());
        }
        if (format_ == KimiFormat::k2) {
            refuse("render_message", "content", {},
                   "a message has several parts, which Kimi K2 does not take; give one text");
        }
        out.push_back(end_);
        return out;
    }

    static std::vector<Message> with_system(Messages messages) {
        std::vector<Message> out{messages.begin(), messages.end()};
        auto const declares = !out.empty() && out.front().role == "tool_declare";
        auto const place = declares ? std::size_t{1} : std::size_t{0};
        if (place < out.size() && out[place].role == "system") return out;
        out.insert(out.begin() + static_cast<std::ptrdiff_t>(place),
                   Message{.role = "system", .content = kimi_system});
        return out;
    }

    KimiFormat format_;
    bool strip_thinking_;
    Token end_;
    Token think_open_{0};
    Token think_close_{0};
};

// One example for each turn of the user, since thinking is kept within a turn.
std::vector<RenderedExample> KimiRenderer::build_supervised_examples(
    Messages messages, TrainOnWhat train_on_what) const {
    if (train_on_what == TrainOnWhat::last_assistant_message ||
        train_on_what == TrainOnWhat::last_assistant_turn) {
        return {build_supervised_example(messages, train_on_what)};
    }
    auto const what = train_on_what == TrainOnWhat::all_assistant_messages
                          ? TrainOnWhat::last_assistant_turn
                          : train_on_what;
    std::vector<RenderedExample> out;
    bool first = true;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (messages[i].role != "user") continue;
        if (!std::exchange(first, false)) {
            out.push_back(build_supervised_example(messages.first(i), what));
        }
    }
    out.push_back(build_supervised_example(messages, what));
    return out;
}

std::vector<Message> KimiRenderer::create_conversation_prefix_with_tools(
    std::span<ToolSpec const> tools, std::string_view system_prompt) const {
    std::vector<Message> out;
    std::vector<Json> functions;
    for (auto const& tool : tools) functions.push_back(tool_json(tool));
    if (!tools.empty() && format_ != KimiFormat::k2) {
        out.push_back({.role = "tool_declare", .content = kimi_typescript(functions)});
    } else if (!tools.empty()) {
        auto list = Json::array();
        for (auto& function : functions) {
            auto one = Json::object();
            one.append("type", Json::string("function"));
            one.append("function", std::move(function));
            list.push(std::move(one));
        }
        list.sort_members();
        out.push_back({.role = "tool_declare",
                       .content = write_json(list, {.item_separator = ",", .key_separator = ":"})});
    }
    out.push_back(
        {.role = "system", .content = system_prompt.empty() ? kimi_system : system_prompt});
    return out;
}

}  // namespace

RendererPointer make_kimi(TokenizerPointer tokenizer, KimiFormat format, bool strip_thinking) {
    return std::make_unique<KimiRenderer>(std::move(tokenizer), format, strip_thinking);
}

}  // namespace tinkxx::text::render
