// Messages in the form of the OpenAI API.
#include "text/errors/refuse.hpp"
#include "text/render/common/json.hpp"
#include "text/render/parse/parsing.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::text::render {

namespace {

Json openai_arguments(ToolCall const& call, OpenAiArguments form) {
    if (form == OpenAiArguments::text) return Json::string(call.arguments);
    if (form == OpenAiArguments::value_or_empty && call.arguments.empty()) return Json::object();
    return call_arguments(call);
}

Json openai_calls(std::vector<ToolCall> const& calls, OpenAiArguments form) {
    auto out = Json::array();
    for (auto const& call : calls) {
        auto function = Json::object();
        function.append("name", Json::string(call.name));
        function.append("arguments", openai_arguments(call, form));
        auto one = Json::object();
        one.append("type", Json::string("function"));
        one.append("id", call.id ? Json::string(*call.id) : Json{});
        one.append("function", std::move(function));
        out.push(std::move(one));
    }
    return out;
}

std::string finish_openai(Json out, Message const& message, OpenAiArguments form) {
    if (message.tool_calls && !message.tool_calls->empty()) {
        out.append("tool_calls", openai_calls(*message.tool_calls, form));
    }
    if (message.role == "tool") {
        if (message.tool_call_id) out.append("tool_call_id", Json::string(*message.tool_call_id));
        if (message.name) out.append("name", Json::string(*message.name));
    }
    return write_json(out, {.ascii = false});
}

Json openai_start(Message const& message) {
    auto out = Json::object();
    out.append("role", Json::string(message.role));
    return out;
}

}  // namespace

std::string openai_with_reasoning(Message const& message, OpenAiArguments arguments) {
    auto out = openai_start(message);
    out.append("content", Json::string(get_text(message)));
    if (has_thinking_part(message.content)) {
        out.append("reasoning_content", Json::string(get_thinking(message)));
    }
    return finish_openai(std::move(out), message, arguments);
}

std::string openai_with_tags(Message const& message) {
    std::string text = message.content.text();
    for (auto const& part : message.content.parts()) {
        if (auto const* said = std::get_if<TextPart>(&part)) {
            text += said->text;
        } else if (auto const* thought = std::get_if<ThinkingPart>(&part)) {
            text += "<think>" + thought->thinking + "</think>";
        } else {
            refuse("to_openai_message", "content", "image",
                   "the message has an image, which would be lost; use build_generation_prompt");
        }
    }
    auto out = openai_start(message);
    out.append("content", Json::string(std::move(text)));
    return finish_openai(std::move(out), message, OpenAiArguments::text);
}

}  // namespace tinkxx::text::render
