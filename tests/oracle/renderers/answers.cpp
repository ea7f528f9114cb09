#include "oracle/renderers/answers.hpp"

#include <tinkxx/error.hpp>

#include "text/render/common/json.hpp"

#include <functional>
#include <utility>

namespace tinkxx::test {

namespace {

using text::render::Json;

Json numbers(auto const& values) {
    auto out = Json::array();
    for (auto const value : values)
        out.push(Json::integer(std::to_string(static_cast<long>(value))));
    return out;
}

Json parsed(std::string const& json) { return *text::render::read_json(json).value; }

// What a call gives, or {"error": …}.
Json attempt(std::function<Json()> const& call) {
    try {
        return call();
    } catch (Error const& e) {
        auto out = Json::object();
        out.append("error", Json::string(e.what()));
        return out;
    }
}

Json example_json(text::RenderedExample const& example) {
    auto out = Json::object();
    out.append("tokens", numbers(example.tokens));
    out.append("weights", numbers(example.weights));
    return out;
}

Json delta_json(text::MessageDelta const& delta) {
    auto out = Json::array();
    if (auto const* header = std::get_if<text::StreamingHeader>(&delta)) {
        out.push(Json::string("header"));
        out.push(Json::string(header->role));
    } else if (auto const* said = std::get_if<text::StreamingText>(&delta)) {
        out.push(Json::string("text"));
        out.push(Json::string(said->text));
        out.push(Json::integer(std::to_string(said->content_index)));
    } else if (auto const* thought = std::get_if<text::StreamingThinking>(&delta)) {
        out.push(Json::string("thinking"));
        out.push(Json::string(thought->thinking));
        out.push(Json::integer(std::to_string(thought->content_index)));
    } else {
        out.push(Json::string("message"));
        out.push(parsed(to_json(std::get<text::Message>(delta))));
    }
    return out;
}

Json response_json(text::Renderer const& renderer, Json const& tokens) {
    std::vector<Token> response;
    for (auto const& token : tokens.items()) {
        response.push_back(static_cast<Token>(std::stol(token.text())));
    }
    auto out = Json::object();
    out.append("parsed", attempt([&] {
                   auto const answer = renderer.parse_response(response);
                   auto one = Json::object();
                   one.append("message", parsed(to_json(answer.message)));
                   one.append("termination",
                              Json::string(std::string{to_string(answer.termination)}));
                   auto const failure = classify_parse_failure(answer);
                   one.append("failure", failure ? Json::string(failure->detail) : Json{});
                   return one;
               }));
    if (!renderer.supports_streaming()) return out;
    out.append("stream", attempt([&] {
                   auto deltas = Json::array();
                   renderer.parse_response_streaming(
                       response, [&deltas](auto const& delta) { deltas.push(delta_json(delta)); });
                   return deltas;
               }));
    return out;
}

void examples(Json& out, Json const& request, text::Renderer const& renderer,
              std::vector<text::Message> const& messages) {
    auto one = Json::object();
    auto many = Json::object();
    for (auto const& name : request.find("train")->items()) {
        auto const what = text::read_train_on_what(name.text());
        one.append(name.text(), attempt([&] {
                       return example_json(renderer.build_supervised_example(messages, what));
                   }));
        many.append(
            name.text(), attempt([&] {
                auto list = Json::array();
                for (auto const& example : renderer.build_supervised_examples(messages, what)) {
                    list.push(example_json(example));
                }
                return list;
            }));
    }
    out.append("one", std::move(one));
    out.append("many", std::move(many));
}

}  // namespace

std::string RendererAnswers::answer(std::string_view line) {
    auto const read = text::render::read_json(line);
    if (!read.value) return "{\"error\": \"no JSON\"}";
    auto const& request = *read.value;
    auto out = Json::object();
    try {
        fill(out, request);
    } catch (Error const& e) {
        out.set("error", Json::string(e.what()));
    }
    return write_json(out);
}

text::Renderer const& RendererAnswers::renderer(Json const& request) {
    text::RendererOptions options;
    if (auto const* strip = request.find("strip")) {
        options.strip_thinking_from_history = strip->is(true);
    }
    if (auto const* date = request.find("date")) options.current_date = date->text();
    if (auto const* as_user = request.find("system_role_as_user")) {
        options.system_role_as_user = as_user->is(true);
    }
    auto const& name = request.find("renderer")->text();
    auto const key = name +
                     (request.find("strip") == nullptr       ? ""
                      : *options.strip_thinking_from_history ? "+strip"
                                                             : "-strip") +
                     (options.system_role_as_user ? "+user" : "");
    auto& made = made_[key];
    if (!made) made = renderers_.make(name, tokenizer_, options);
    return *made;
}

void RendererAnswers::fill(Json& out, Json const& request) {
    auto const& renderer = this->renderer(request);
    auto const messages = text::read_messages(write_json(*request.find("messages")));
    auto const text = [&request](char const* name) {
        auto const* found = request.find(name);
        return found == nullptr ? std::string{} : found->text();
    };
    auto const stop = renderer.stop_sequences();
    out.append("stop",
               stop.texts.empty() ? numbers(stop.tokens) : Json::string(stop.texts.front()));
    out.append("extension", Json::boolean(renderer.has_extension_property()));
    auto const role = text("role").empty() ? std::string{"assistant"} : text("role");
    out.append(
        "prompt", attempt([&] {
            return numbers(renderer.build_generation_prompt(messages, role, text("prefill")));
        }));
    examples(out, request, renderer, messages);
    if (auto const* tools = request.find("tools")) {
        out.append("prefix", attempt([&] {
                       auto const prefix = renderer.create_conversation_prefix_with_tools(
                           text::read_tools(write_json(*tools)), text("system_prompt"));
                       return parsed(to_json(prefix));
                   }));
    }
    auto responses = Json::array();
    for (auto const& tokens : request.find("responses")->items()) {
        responses.push(response_json(renderer, tokens));
    }
    out.append("responses", std::move(responses));
    auto openai = Json::array();
    for (auto const& message : messages) {
        openai.push(attempt([&] { return parsed(renderer.to_openai_message(message)); }));
    }
    out.append("openai", std::move(openai));
}

}  // namespace tinkxx::test
