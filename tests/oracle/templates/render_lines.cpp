// Renders conversations for compare.py: a JSON object per line in, one out.
//
//   {"template": TEXT}                                         is compiled, and used from then on
//   {"render": {"messages": TEXT, "tools": TEXT, …}}           with it; members as of `ChatInput`
//
// Answers {"text": TEXT, "generated": [[BEGIN, END], …]}, in characters, or {"error": TEXT} with
// "raised": TEXT if the template refused.
#include <tinkxx/error.hpp>
#include <tinkxx/text/chat_template.hpp>

#include <boost/json.hpp>

#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace tinkxx;
namespace json = boost::json;

/// Of the clock that compare.py gives to the other side.
constexpr std::chrono::local_seconds pretended{std::chrono::seconds{1'780'000'205}};

std::string text_of(json::object const& from, std::string_view name) {
    auto const* const found = from.if_contains(name);
    return found == nullptr ? std::string{} : std::string{found->as_string()};
}

json::object render(text::ChatTemplate const& chat, json::object const& given) {
    auto const messages = text_of(given, "messages");
    auto const tools = text_of(given, "tools");
    auto const documents = text_of(given, "documents");
    auto const variables = text_of(given, "variables");
    std::vector<std::pair<std::string, std::string>> tokens;
    if (auto const* const special = given.if_contains("special_tokens")) {
        for (auto const& [name, token] : special->as_object()) {
            tokens.emplace_back(std::string{name}, std::string{token.as_string()});
        }
    }
    text::ChatClock const clock{
        [] { return std::chrono::time_point_cast<std::chrono::microseconds>(pretended); }};
    auto const rendered = chat.render({
        .messages = messages,
        .tools = tools,
        .documents = documents,
        .add_generation_prompt = given.contains("add_generation_prompt"),
        .special_tokens = tokens,
        .variables = variables,
        .clock = &clock,
    });
    json::array ranges;
    for (auto const& [begin, end] : text::to_character_ranges(rendered.text, rendered.generated)) {
        ranges.push_back(json::array{begin, end});
    }
    return {{"text", rendered.text}, {"generated", std::move(ranges)}};
}

json::object answer(std::optional<text::ChatTemplate>& chat, std::string const& line) try {
    auto const request = json::parse(line).as_object();
    if (auto const* const source = request.if_contains("template")) {
        chat.reset();
        chat = text::ChatTemplate::from_source(std::string{source->as_string()});
        return {{"compiled", true}};
    }
    if (!chat) return {{"error", "no template"}};
    return render(*chat, request.at("render").as_object());
} catch (ValidationError const& e) {
    json::object refused{{"error", e.what()}};
    if (e.field() == "raise_exception") refused["raised"] = std::string{e.value()};
    return refused;
}

}  // namespace

int main() {
    std::ios::sync_with_stdio(false);
    std::optional<text::ChatTemplate> chat;
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << json::serialize(answer(chat, line)) << '\n' << std::flush;
    }
}
