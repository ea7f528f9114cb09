#include "text/render/parse/parsing.hpp"

#include "text/errors/refuse.hpp"
#include "text/render/common/characters.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::text::render {

namespace {

constexpr std::string_view think_open = "<think>";
constexpr std::string_view think_close = "</think>";
constexpr std::string_view call_open = "<tool_call>";
constexpr std::string_view call_close = "</tool_call>";

ParsedCall json_call(std::string_view inner, std::string_view raw) {
    auto const broken = [raw](std::string error) {
        return UnparsedToolCall{std::string{raw}, std::move(error)};
    };
    auto const read = read_json(strip(inner));
    if (!read.value) return broken("Invalid JSON: " + read.error);
    if (!read.value->is_object()) return broken("Tool call is not a JSON object");
    auto const* name = read.value->find("name");
    auto const* arguments = read.value->find("arguments");
    auto const* id = read.value->find("id");
    if (name == nullptr || !name->is_string()) return broken("Missing or invalid 'name' field");
    if (arguments == nullptr || !arguments->is_object()) {
        return broken("Missing or invalid 'arguments' field");
    }
    ToolCall out{.name = name->text(), .arguments = write_json(*arguments)};
    if (id != nullptr && id->is_string()) out.id = id->text();
    return out;
}

void add_text(std::vector<ContentPart>& parts, std::string_view text) {
    if (!text.empty()) parts.emplace_back(TextPart{std::string{text}});
}

void add_thinking(std::vector<ContentPart>& parts, std::string_view text) {
    if (!text.empty()) parts.emplace_back(ThinkingPart{std::string{text}});
}

}  // namespace

std::string const& plain_text(Content const& content) {
    if (!content.is_parts()) return content.text();
    auto const& parts = content.parts();
    if (parts.size() == 1) {
        if (auto const* text = std::get_if<TextPart>(&parts.front())) return text->text;
    }
    refuse("render_message", "content", std::to_string(parts.size()) + " parts",
           "the content has " + std::to_string(parts.size()) +
               " parts, or a part that is no text; this role takes one text only");
}

bool has_thinking_part(Content const& content) {
    return std::ranges::any_of(content.parts(), [](ContentPart const& part) {
        return std::holds_alternative<ThinkingPart>(part);
    });
}

bool has_thinking(Content const& content) {
    return content.is_parts() ? has_thinking_part(content) : contains(content.text(), think_open);
}

std::vector<ContentPart> as_parts(Content const& content) {
    if (content.is_parts()) return content.parts();
    return {TextPart{content.text()}};
}

Json call_arguments(ToolCall const& call) {
    auto read = read_json(call.arguments);
    if (read.value) return std::move(*read.value);
    refuse("render_message", "arguments", call.arguments,
           "the arguments of the call of \"" + call.name + "\" are no JSON: " + read.error);
}

Json call_members(ToolCall const& call) {
    if (call.arguments.empty()) return Json::object();
    auto value = call_arguments(call);
    if (value.is_object()) return value;
    refuse("render_message", "arguments", call.arguments,
           "the arguments of the call of \"" + call.name + "\" are no JSON object; give one");
}

std::string call_payload(ToolCall const& call) {
    auto out = Json::object();
    out.append("name", Json::string(call.name));
    out.append("arguments", call_arguments(call));
    return write_json(out);
}

Json tool_json(ToolSpec const& tool) {
    auto const text = to_json(tool);
    auto read = read_json(text);
    if (read.value && read.value->is_object()) return std::move(*read.value);
    refuse("create_conversation_prefix_with_tools", "tools", text,
           "a tool is no JSON object; give its function object");
}

std::string member_text(Json const& object, std::string_view name) {
    auto const* found = object.find(name);
    return found == nullptr ? std::string{} : to_text(*found);
}

std::string_view cut(std::string_view text, std::size_t characters) {
    std::size_t at = 0;
    while (at < text.size() && characters > 0) {
        at += decode_at(text, at).size;
        --characters;
    }
    return text.substr(0, at);
}

void refuse_stops(std::size_t found) {
    refuse("parse_response", "response", std::to_string(found) + " stop tokens",
           "the response has " + std::to_string(found) +
               " stop tokens where one is expected; sample with the renderer's stop_sequences");
}

ParsedResponse split_at_stop(std::span<Token const> response, RenderTokenizer const& tokenizer,
                             Token stop) {
    auto const found = std::ranges::count(response, stop);
    if (found > 1) refuse_stops(static_cast<std::size_t>(found));
    auto const end = std::ranges::find(response, stop);
    auto const text = tokenizer.decode({response.begin(), end});
    return {Message{.role = "assistant", .content = text},
            found == 1 ? ParseTermination::stop_sequence : ParseTermination::malformed};
}

std::optional<Block> find_block(std::string_view text, std::size_t at, std::string_view open,
                                std::string_view close) {
    auto const begin = text.find(open, at);
    if (begin == std::string_view::npos) return std::nullopt;
    auto const inner = begin + open.size();
    auto const end = text.find(close, inner);
    if (end == std::string_view::npos) return std::nullopt;
    return Block{begin, inner, end, end + close.size()};
}

std::optional<ContentBlocks> parse_content_blocks(std::string_view content) {
    if (!contains(content, think_open) && !contains(content, call_open)) return std::nullopt;
    ContentBlocks out;
    std::size_t at = 0;
    while (true) {
        auto const thinking = find_block(content, at, think_open, think_close);
        auto const call = find_block(content, at, call_open, call_close);
        if (!thinking && !call) break;
        auto const thinks = thinking && (!call || thinking->begin < call->begin);
        auto const& block = thinks ? *thinking : *call;
        add_text(out.parts, content.substr(at, block.begin - at));
        if (thinks) {
            add_thinking(out.parts, block.inside(content));
        } else {
            out.calls.push_back(json_call(block.inside(content), block.whole(content)));
        }
        at = block.end;
    }
    add_text(out.parts, content.substr(at));
    return out;
}

std::optional<std::vector<ContentPart>> parse_think_blocks(std::string_view content) {
    if (!contains(content, think_open)) return std::nullopt;
    std::vector<ContentPart> parts;
    std::size_t at = 0;
    while (auto const block = find_block(content, at, think_open, think_close)) {
        add_text(parts, content.substr(at, block->begin - at));
        add_thinking(parts, block->inside(content));
        at = block->end;
    }
    add_text(parts, content.substr(at));
    return parts;
}

Content think_content(std::string_view content) {
    if (auto parts = parse_think_blocks(content)) return std::move(*parts);
    return content;
}

std::optional<UnparsedToolCall> find_unterminated(std::string_view content, std::string_view open,
                                                  std::string_view close) {
    auto const opened = count(content, open);
    if (opened == 0 || opened <= count(content, close)) return std::nullopt;
    return UnparsedToolCall{std::string{cut(content.substr(content.rfind(open)), longest_detail)},
                            std::string{unterminated_block} + ": '" + std::string{open} +
                                "' opened without a matching '" + std::string{close} + "'"};
}

void put_calls(Message& message, std::vector<ParsedCall> calls) {
    for (auto& call : calls) {
        if (auto* parsed = std::get_if<ToolCall>(&call)) {
            if (!message.tool_calls) message.tool_calls.emplace();
            message.tool_calls->push_back(std::move(*parsed));
        } else {
            message.unparsed_tool_calls.push_back(std::get<UnparsedToolCall>(std::move(call)));
        }
    }
}

void put_unparsed(Message& message, std::optional<UnparsedToolCall> call) {
    if (call) message.unparsed_tool_calls.push_back(std::move(*call));
}

}  // namespace tinkxx::text::render
