// gpt-oss: the Harmony format, in which the assistant's message is split into channels.
#include "text/errors/refuse.hpp"
#include "text/python/characters.hpp"
#include "text/render/common/characters.hpp"
#include "text/render/families/families.hpp"
#include "text/render/parse/parsing.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <utility>

namespace tinkxx::text::render {

namespace {

// Stands for a message that is rendered as the system's; what the user calls system is the
// developer's.
constexpr std::string_view internal_system = "_gptoss_internal_system";
constexpr std::string_view channel_token = "<|channel|>";
constexpr std::string_view message_token = "<|message|>";
constexpr std::string_view start_token = "<|start|>";
constexpr std::size_t deepest_harmony_schema = 64;

std::string today() {
    auto const now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 16> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &local)};
}

// Declarations ------------------------------------------------------------------------------------

bool is_word_of(Json const* value, std::string_view word) {
    return value != nullptr && value->is_string() && value->text() == word;
}

bool is_required(Json const& schema, std::string const& name) {
    auto const* required = schema.find("required");
    return required != nullptr && std::ranges::any_of(required->items(), [&name](Json const& one) {
               return one.is_string() && one.text() == name;
           });
}

std::string harmony_type(Json const& schema, std::size_t depth);

std::string harmony_union(std::vector<Json> const& schemas, std::size_t depth) {
    std::string out;
    for (auto const& one : schemas) {
        out += (&one == schemas.data() ? "" : " | ") + harmony_type(one, depth + 1);
    }
    return out;
}

std::string harmony_object(Json const& schema, std::size_t depth) {
    std::string out;
    if (auto const* properties = schema.find("properties")) {
        for (auto const& [name, property] : properties->members()) {
            out += (out.empty() ? "" : ", ") + name + (is_required(schema, name) ? "" : "?") +
                   ": " + harmony_type(property, depth + 1);
        }
    }
    return "{ " + out + " }";
}

std::string harmony_named(Json const& schema, Json const* type, std::size_t depth) {
    if (is_word_of(type, "string")) return "string";
    if (is_word_of(type, "number") || is_word_of(type, "integer")) return "number";
    if (is_word_of(type, "boolean")) return "boolean";
    if (is_word_of(type, "object")) return harmony_object(schema, depth);
    if (!is_word_of(type, "array")) return "any";
    auto const* items = schema.find("items");
    return harmony_type(items == nullptr ? Json::object() : *items, depth + 1) + "[]";
}

std::string harmony_type(Json const& schema, std::size_t depth) {
    if (depth > deepest_harmony_schema || !schema.is_object()) {
        refuse("create_conversation_prefix_with_tools", "parameters", {},
               "the schema of a tool's parameters is nested too deeply, or holds what is no "
               "object; simplify it");
    }
    for (auto const* name : {"oneOf", "anyOf"}) {
        if (auto const* schemas = schema.find(name)) return harmony_union(schemas->items(), depth);
    }
    auto const* type = schema.find("type");
    if (type != nullptr && type->is_array()) {
        std::vector<Json> schemas;
        for (auto const& one : type->items()) {
            schemas.push_back(Json::object());
            schemas.back().append("type", one);
        }
        return harmony_union(schemas, depth);
    }
    auto const* values = schema.find("enum");
    if (values != nullptr && is_word_of(type, "string")) {
        std::string out;
        for (auto const& value : values->items()) {
            out += (&value == values->items().data() ? "" : " | ") + write_json(value);
        }
        return out;
    }
    auto const* nullable = schema.find("nullable");
    return harmony_named(schema, type, depth) +
           (nullable != nullptr && nullable->truthy() ? " | null" : "");
}

void add_comments(std::string& out, Json const& schema) {
    auto const line = [&out](std::string const& text) { out += "// " + text + "\n"; };
    auto const shown = [&schema](std::string_view name) {
        auto const* found = schema.find(name);
        return found != nullptr && found->truthy() ? found : nullptr;
    };
    if (auto const* title = shown("title")) {
        line(to_text(*title));
        line("");
    }
    if (auto const* description = shown("description")) line(to_text(*description));
    if (auto const* examples = shown("examples")) {
        line("Examples:");
        for (auto const& example : examples->items()) line("- " + write_json(example));
    }
}

std::string harmony_parameters(Json const& schema) {
    auto const* properties = schema.find("properties");
    if (!is_word_of(schema.find("type"), "object") || properties == nullptr ||
        !properties->truthy()) {
        return "()";
    }
    std::string out = "(_:";
    auto const* description = schema.find("description");
    if (description != nullptr && description->truthy()) out += " // " + to_text(*description);
    out += "\n{\n";
    for (auto const& [name, property] : properties->members()) {
        add_comments(out, property);
        out +=
            name + (is_required(schema, name) ? "" : "?") + ": " + harmony_type(property, 0) + ",";
        if (auto const* standard = property.find("default")) {
            out += " // default: " + write_json(*standard);
        }
        out += "\n";
    }
    return out + "})";
}

std::string harmony_tool(Json const& tool) {
    std::string out;
    auto const* description = tool.find("description");
    if (description != nullptr && description->truthy()) {
        out += "// " + to_text(*description) + "\n";
    }
    auto const* parameters = tool.find("parameters");
    return out + "type " + member_text(tool, "name") + " = " +
           harmony_parameters(parameters == nullptr ? Json::object() : *parameters) + " => any;";
}

// Responses -------------------------------------------------------------------------------------

struct HarmonyMessage {
    std::string_view channel{};
    std::string_view recipient{};
    std::string_view content{};
    std::string_view raw{};
};

// The text behind a marker up to white space or `<`; that of the first marker that has any.
std::string_view word_behind(std::string_view header, std::string_view marker) {
    for (auto at = header.find(marker); at != std::string_view::npos;
         at = header.find(marker, at + 1)) {
        auto const start = at + marker.size();
        auto end = start;
        while (end < header.size() && header[end] != '<') {
            auto const found = decode_at(header, end);
            if (python::is_space(found.code)) break;
            end += found.size;
        }
        if (end > start) return header.substr(start, end - start);
    }
    return {};
}

std::vector<HarmonyMessage> harmony_messages(std::string_view content) {
    constexpr std::array<std::string_view, 3> ends{"<|end|>", "<|call|>", "<|return|>"};
    std::vector<HarmonyMessage> out;
    std::size_t at = 0;
    while (true) {
        auto const message = content.find(message_token, at);
        if (message == std::string_view::npos) return out;
        auto const before = content.substr(at, message - at);
        auto const start = before.rfind(start_token);
        auto const header_start = start == std::string_view::npos ? at : at + start;
        auto const header = content.substr(header_start, message - header_start);
        auto const body = message + message_token.size();
        auto end = content.size();
        std::size_t end_size = 0;
        for (auto const token : ends) {
            auto const found = content.find(token, body);
            if (found != std::string_view::npos && found < end) {
                end = found;
                end_size = token.size();
            }
        }
        out.push_back({word_behind(header, channel_token), word_behind(header, "to="),
                       content.substr(body, end - body),
                       content.substr(header_start, end + end_size - header_start)});
        at = end + end_size;
    }
}

struct HarmonyParts {
    std::vector<ContentPart> parts{};
    std::vector<ParsedCall> calls{};
};

HarmonyParts harmony_parts(std::string_view content) {
    constexpr std::string_view functions = "functions.";
    HarmonyParts out;
    for (auto const& message : harmony_messages(content)) {
        if (strip(message.content).empty()) continue;
        if (message.recipient.starts_with(functions)) {
            auto const read = read_json(message.content);
            if (read.value) {
                out.calls.emplace_back(
                    ToolCall{.name = std::string{message.recipient.substr(functions.size())},
                             .arguments = std::string{strip(message.content)}});
            } else {
                out.calls.emplace_back(
                    UnparsedToolCall{std::string{message.raw}, "Invalid JSON: " + read.error});
            }
        } else if (message.channel == "analysis") {
            out.parts.emplace_back(ThinkingPart{std::string{message.content}});
        } else if (message.channel == "final" || message.channel == "commentary") {
            out.parts.emplace_back(TextPart{std::string{message.content}});
        }
    }
    return out;
}

std::optional<UnparsedToolCall> call_without_arguments(std::string_view content,
                                                       std::size_t calls) {
    if (count(content, "to=functions.") <= calls) return std::nullopt;
    auto const start = content.rfind(start_token);
    return UnparsedToolCall{
        std::string{start == std::string_view::npos ? content : content.substr(start)},
        std::string{unterminated_block} +
            ": 'to=functions.' tool-call header without a parsable arguments payload"};
}

class GptOssRenderer final : public Renderer {
public:
    GptOssRenderer(TokenizerPointer tokenizer, std::string_view effort, std::string_view date)
        : Renderer{std::move(tokenizer)},
          effort_{effort},
          date_{date},
          return_{single_token("<|return|>")},
          call_{single_token("<|call|>")} {}

    [[nodiscard]] StopSequences stop_sequences() const override {
        return {.tokens = {return_, call_}};
    }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& context) const override {
        auto const& role = message.role;
        if (role == "tool") return tool_answer(message);
        auto const shown = role == internal_system ? "system"
                           : role == "system"      ? "developer"
                                                   : role;
        std::string output;
        if (role == "assistant") {
            output = assistant_text(message, context.is_last);
        } else if (role == "system") {
            output = std::string{message_token} + "# Instructions\n\n" +
                     plain_text(message.content) + "\n\n<|end|>";
        } else {
            output = std::string{message_token} + plain_text(message.content) + "<|end|>";
        }
        return {.header = encode(std::string{start_token} + shown), .output = encode(output)};
    }

    [[nodiscard]] std::vector<Token> build_generation_prompt(
        Messages messages, std::string_view role, std::string_view prefill) const override {
        return Renderer::build_generation_prompt(with_system(messages), role, prefill);
    }
    [[nodiscard]] RenderedExample build_supervised_example(
        Messages messages, TrainOnWhat train_on_what) const override {
        return Renderer::build_supervised_example(with_system(messages), train_on_what);
    }
    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override;
    [[nodiscard]] std::string to_openai_message(Message const& message) const override {
        return openai_with_reasoning(message, OpenAiArguments::text);
    }
    [[nodiscard]] std::vector<Message> create_conversation_prefix_with_tools(
        std::span<ToolSpec const> tools, std::string_view system_prompt) const override;

private:
    static std::string assistant_text(Message const& message, bool is_last) {
        auto const next = "<|end|>" + std::string{start_token} + "assistant";
        auto const thinking = get_thinking(message);
        auto const text = get_text(message);
        std::string out;
        if (!thinking.empty()) out += "<|channel|>analysis<|message|>" + thinking + next;
        if (!message.tool_calls || message.tool_calls->empty()) {
            return out + "<|channel|>final<|message|>" + text +
                   (is_last ? "<|return|>" : "<|end|>");
        }
        if (!text.empty()) out += "<|channel|>commentary<|message|>" + text + next;
        for (auto const& call : *message.tool_calls) {
            if (&call != message.tool_calls->data()) out += std::string{start_token} + "assistant";
            out += " to=functions." + call.name +
                   "<|channel|>commentary <|constrain|>json<|message|>" + call.arguments +
                   "<|call|>";
        }
        return out;
    }

    [[nodiscard]] RenderedMessage tool_answer(Message const& message) const {
        auto name = message.name.value_or("");
        if (name.empty()) name = "unknown";
        if (!name.starts_with("functions.")) name = "functions." + name;
        return {.header = encode(std::string{start_token} + name + " to=assistant"),
                .output = encode("<|channel|>commentary<|message|>" + plain_text(message.content) +
                                 "<|end|>")};
    }

    [[nodiscard]] std::vector<Message> with_system(Messages messages) const {
        std::vector<Message> out{messages.begin(), messages.end()};
        if (effort_.empty()) return out;
        auto const text =
            "You are ChatGPT, a large language model trained by OpenAI.\n"
            "Knowledge cutoff: 2024-06\nCurrent date: " +
            (date_.empty() ? today() : date_) + "\n\nReasoning: " + effort_ +
            "\n\n# Valid channels: analysis, commentary, final. Channel must be included for every "
            "message.";
        Message system{.role = std::string{internal_system}, .content = text};
        out.insert(out.begin(), std::move(system));
        return out;
    }

    std::string effort_;
    std::string date_;
    Token return_;
    Token call_;
};

ParsedResponse GptOssRenderer::parse_response(std::span<Token const> response) const {
    auto const calls = std::ranges::count(response, call_);
    auto const returns = std::ranges::count(response, return_);
    if (calls > 1) refuse_stops(static_cast<std::size_t>(calls));
    if (returns > 1) refuse_stops(static_cast<std::size_t>(returns));
    auto const end = std::ranges::find_if(
        response, [this](Token token) { return token == call_ || token == return_; });
    auto const text = tokenizer().decode({response.begin(), end});
    ParsedResponse out{Message{.role = "assistant", .content = text}, ParseTermination::malformed};
    if (calls + returns == 0) return out;
    out.termination = ParseTermination::stop_sequence;
    auto read = harmony_parts(text);
    auto const found = read.calls.size();
    if (!read.parts.empty()) out.message.content = std::move(read.parts);
    put_calls(out.message, std::move(read.calls));
    put_unparsed(out.message, call_without_arguments(text, found));
    return out;
}

std::vector<Message> GptOssRenderer::create_conversation_prefix_with_tools(
    std::span<ToolSpec const> tools, std::string_view system_prompt) const {
    std::vector<Message> out;
    std::string text;
    if (!system_prompt.empty()) text = "# Instructions\n\n" + std::string{system_prompt};
    if (!tools.empty()) {
        out.push_back(
            {.role = std::string{internal_system},
             .content = "Calls to these tools must go to the commentary channel: 'functions'."});
        if (!text.empty()) text += "\n\n";
        text += "# Tools\n\n## functions\n\nnamespace functions {\n\n";
        for (auto const& tool : tools) text += harmony_tool(tool_json(tool)) + "\n\n";
        text += "} // namespace functions";
    }
    if (!text.empty()) out.push_back({.role = "developer", .content = std::move(text)});
    return out;
}

}  // namespace

RendererPointer make_gpt_oss(TokenizerPointer tokenizer, std::string_view effort,
                             std::string_view date) {
    return std::make_unique<GptOssRenderer>(std::move(tokenizer), effort, date);
}

}  // namespace tinkxx::text::render
