#include <tinkxx/text/message.hpp>

#include "text/errors/refuse.hpp"
#include "text/render/common/json.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace tinkxx::text {

namespace {

using render::Json;

// A value in a document, and the way to it.
struct Place {
    Json const* value;
    std::string path;
    std::string_view operation;

    [[noreturn]] void fail(std::string_view expected) const {
        auto shown = render::write_json(*value);
        if (shown.size() > 60) shown = shown.substr(0, 60) + "...";
        refuse(operation, path, shown,
               std::string{expected} + " is expected at " + (path.empty() ? "/" : path) +
                   ", where " + shown + " stands");
    }
    [[nodiscard]] Place at(std::string_view name, Json const& member) const {
        return {&member, path + "/" + std::string{name}, operation};
    }
    // The member; null if it is missing or null.
    [[nodiscard]] std::optional<Place> find(std::string_view name) const {
        auto const* member = value->find(name);
        if (member == nullptr || member->kind() == Json::Kind::null) return std::nullopt;
        return at(name, *member);
    }
    [[nodiscard]] Place required(std::string_view name) const {
        if (auto found = find(name)) return *found;
        fail("an object with \"" + std::string{name} + "\"");
    }
    [[nodiscard]] std::string const& string() const {
        if (!value->is_string()) fail("a string");
        return value->text();
    }
    [[nodiscard]] std::optional<std::string> string(std::string_view name) const {
        auto const member = find(name);
        if (!member) return std::nullopt;
        return member->string();
    }
    void object() const {
        if (!value->is_object()) fail("an object");
    }
    void each(std::function<void(Place const&)> const& take) const {
        if (!value->is_array()) fail("a list");
        for (std::size_t i = 0; i < value->items().size(); ++i) {
            take(at(std::to_string(i), value->items()[i]));
        }
    }
};

Json document(std::string_view operation, std::string_view text) {
    auto read = render::read_json(text);
    if (read.value) return std::move(*read.value);
    refuse(operation, {}, {}, "the text is no JSON: " + read.error);
}

ContentPart content_part(Place const& place) {
    place.object();
    auto const type = place.required("type").string();
    if (type == "text") return TextPart{place.required("text").string()};
    if (type == "thinking") return ThinkingPart{place.required("thinking").string()};
    if (type == "image") return ImagePart{place.string("image").value_or("")};
    if (type == "image_url") {
        auto const url = place.required("image_url");
        return ImagePart{url.value->is_string() ? url.string() : url.required("url").string()};
    }
    place.required("type").fail("\"text\", \"thinking\", \"image\" or \"image_url\"");
}

Content message_content(Place const& place) {
    auto const found = place.find("content");
    if (!found) return {};
    if (found->value->is_string()) return found->string();
    std::vector<ContentPart> parts;
    found->each([&parts](Place const& part) { parts.push_back(content_part(part)); });
    return parts;
}

ToolCall tool_call(Place const& place) {
    place.object();
    auto const function = place.find("function").value_or(place);
    function.object();
    ToolCall out;
    out.name = function.required("name").string();
    out.id = place.string("id");
    auto const arguments = function.find("arguments");
    if (!arguments) {
        out.arguments = "{}";
    } else if (arguments->value->is_string()) {
        out.arguments = arguments->string();
    } else {
        out.arguments = render::write_json(*arguments->value);
        out.form = ToolCall::Form::object;
    }
    return out;
}

std::string other_members(Json const& message) {
    constexpr std::array<std::string_view, 8> known{
        "role",      "content",      "tool_calls", "unparsed_tool_calls",
        "trainable", "tool_call_id", "name",       "reasoning_content"};
    auto other = Json::object();
    for (auto const& [name, value] : message.members()) {
        if (std::ranges::find(known, name) == known.end()) other.append(name, value);
    }
    return other.members().empty() ? std::string{} : render::write_json(other);
}

Message message_at(Place const& place) {
    place.object();
    Message out;
    out.role = place.required("role").string();
    out.content = message_content(place);
    if (auto const calls = place.find("tool_calls")) {
        auto& into = out.tool_calls.emplace();
        calls->each([&into](Place const& call) { into.push_back(tool_call(call)); });
    }
    if (auto const calls = place.find("unparsed_tool_calls")) {
        calls->each([&out](Place const& call) {
            call.object();
            out.unparsed_tool_calls.push_back(
                {call.required("raw_text").string(), call.required("error").string()});
        });
    }
    if (auto const trainable = place.find("trainable")) {
        if (!trainable->value->is(true) && !trainable->value->is(false)) {
            trainable->fail("true or false");
        }
        out.trainable = trainable->value->is(true);
    }
    out.tool_call_id = place.string("tool_call_id");
    out.name = place.string("name");
    out.reasoning_content = place.string("reasoning_content");
    out.other = other_members(*place.value);
    return out;
}

Json part_json(ContentPart const& part) {
    auto out = Json::object();
    if (auto const* text = std::get_if<TextPart>(&part)) {
        out.append("type", Json::string("text"));
        out.append("text", Json::string(text->text));
    } else if (auto const* thinking = std::get_if<ThinkingPart>(&part)) {
        out.append("type", Json::string("thinking"));
        out.append("thinking", Json::string(thinking->thinking));
    } else {
        out.append("type", Json::string("image"));
        out.append("image", Json::string(std::get<ImagePart>(part).image));
    }
    return out;
}

Json content_json(Content const& content) {
    if (content.is_null()) return {};
    if (content.is_text()) return Json::string(content.text());
    auto out = Json::array();
    for (auto const& part : content.parts()) out.push(part_json(part));
    return out;
}

Json call_json(ToolCall const& call) {
    auto function = Json::object();
    function.append("name", Json::string(call.name));
    auto const read = call.form == ToolCall::Form::object ? render::read_json(call.arguments)
                                                          : render::JsonRead{};
    function.append("arguments", read.value ? *read.value : Json::string(call.arguments));
    auto out = Json::object();
    out.append("type", Json::string("function"));
    out.append("id", call.id ? Json::string(*call.id) : Json{});
    out.append("function", std::move(function));
    return out;
}

void append_known(Json& out, std::string_view name, std::optional<std::string> const& text) {
    if (text) out.append(std::string{name}, Json::string(*text));
}

Json message_json(Message const& message) {
    auto out = Json::object();
    out.append("role", Json::string(message.role));
    out.append("content", content_json(message.content));
    if (message.tool_calls) {
        auto calls = Json::array();
        for (auto const& call : *message.tool_calls) calls.push(call_json(call));
        out.append("tool_calls", std::move(calls));
    }
    if (!message.unparsed_tool_calls.empty()) {
        auto calls = Json::array();
        for (auto const& call : message.unparsed_tool_calls) {
            auto one = Json::object();
            one.append("raw_text", Json::string(call.raw_text));
            one.append("error", Json::string(call.error));
            calls.push(std::move(one));
        }
        out.append("unparsed_tool_calls", std::move(calls));
    }
    if (message.trainable) out.append("trainable", Json::boolean(*message.trainable));
    append_known(out, "tool_call_id", message.tool_call_id);
    append_known(out, "name", message.name);
    append_known(out, "reasoning_content", message.reasoning_content);
    if (!message.other.empty()) {
        auto const other = document("to_json", message.other);
        for (auto const& [name, value] : other.members()) out.set(name, value);
    }
    return out;
}

template <class Part>
std::string joined(Content const& content, std::string Part::*text) {
    std::string out;
    for (auto const& part : content.parts()) {
        if (auto const* found = std::get_if<Part>(&part)) out += found->*text;
    }
    return out;
}

std::string written(Json const& value) { return render::write_json(value, {.ascii = false}); }

}  // namespace

std::string const& Content::text() const noexcept {
    static std::string const none;
    auto const* text = std::get_if<std::string>(&value_);
    return text == nullptr ? none : *text;
}

std::vector<ContentPart> const& Content::parts() const noexcept {
    static std::vector<ContentPart> const none;
    auto const* parts = std::get_if<std::vector<ContentPart>>(&value_);
    return parts == nullptr ? none : *parts;
}

std::string get_text(Message const& message) {
    if (message.content.is_text()) return message.content.text();
    return joined(message.content, &TextPart::text);
}

std::string get_thinking(Message const& message) {
    return joined(message.content, &ThinkingPart::thinking);
}

Message with_thinking_parts(Message message) {
    if (!message.reasoning_content) return message;
    std::vector<ContentPart> parts{ThinkingPart{std::move(*message.reasoning_content)}};
    if (message.content.is_text()) {
        parts.emplace_back(TextPart{message.content.text()});
    } else {
        auto const& old = message.content.parts();
        parts.insert(parts.end(), old.begin(), old.end());
    }
    message.content = std::move(parts);
    message.reasoning_content.reset();
    return message;
}

Message read_message(std::string_view json) {
    constexpr std::string_view operation = "read_message";
    auto const value = document(operation, json);
    return message_at({&value, "", operation});
}

std::vector<Message> read_messages(std::string_view json) {
    constexpr std::string_view operation = "read_messages";
    auto const value = document(operation, json);
    std::vector<Message> out;
    Place const place{&value, "", operation};
    place.each([&out](Place const& message) { out.push_back(message_at(message)); });
    return out;
}

std::vector<ToolSpec> read_tools(std::string_view json) {
    constexpr std::string_view operation = "read_tools";
    auto const value = document(operation, json);
    std::vector<ToolSpec> out;
    Place const place{&value, "", operation};
    place.each([&out](Place const& tool) {
        tool.object();
        auto const function = tool.find("function").value_or(tool);
        function.object();
        auto const parameters = function.find("parameters");
        ToolSpec spec;
        spec.name = function.required("name").string();
        spec.description = function.string("description").value_or("");
        if (parameters) spec.parameters = written(*parameters->value);
        spec.json = written(*function.value);
        out.push_back(std::move(spec));
    });
    return out;
}

std::string to_json(Message const& message) { return written(message_json(message)); }

std::string to_json(std::span<Message const> messages) {
    auto out = Json::array();
    for (auto const& message : messages) out.push(message_json(message));
    return written(out);
}

std::string to_json(ToolSpec const& tool) {
    if (!tool.json.empty()) return written(document("to_json", tool.json));
    auto out = Json::object();
    out.append("name", Json::string(tool.name));
    out.append("description", Json::string(tool.description));
    out.append("parameters", document("to_json", tool.parameters));
    return written(out);
}

std::string to_json(std::span<ToolSpec const> tools) {
    std::string out = "[";
    for (auto const& tool : tools) out += (out.size() > 1 ? ", " : "") + to_json(tool);
    return out + "]";
}

}  // namespace tinkxx::text
