// GLM-5.3. A message ends where the next role begins, so that token is what the model has to write:
// it belongs to the message of the assistant, and the message that follows leaves it out.
#include "text/errors/refuse.hpp"
#include "text/python/characters.hpp"
#include "text/render/common/characters.hpp"
#include "text/render/families/families.hpp"
#include "text/render/parse/parsing.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace tinkxx::text::render {

namespace {

constexpr std::string_view glm_tools_before = R"(
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
)";
constexpr std::string_view glm_tools_after =
    "</tools>\n\nFor each function call, output the function name and arguments within the "
    "following XML format:\n<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>"
    "{arg-value-1}</arg_value><arg_key>{arg-key-2}</arg_key><arg_value>{arg-value-2}</arg_value>"
    "...</tool_call>";

std::string glm_call(ToolCall const& call) {
    auto out = "<tool_call>" + call.name;
    auto const arguments = call_members(call);
    for (auto const& [name, value] : arguments.members()) {
        out += "<arg_key>" + name + "</arg_key><arg_value>" +
               (value.is_string() ? value.text() : write_json(value, {.ascii = false})) +
               "</arg_value>";
    }
    return out + "</tool_call>";
}

std::size_t glm_name_length(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        auto const found = decode_at(text, at);
        if (!python::is_word(found.code) && found.code != '-' && found.code != '.') break;
        at += found.size;
    }
    return at;
}

struct GlmArgument {
    std::size_t begin{0};
    std::size_t end{0};
    std::string_view key{};
    std::string_view value{};
};

// The next key that a value follows; a key may hold anything up to there.
std::optional<GlmArgument> next_glm_argument(std::string_view body, std::size_t at) {
    constexpr std::string_view key_open = "<arg_key>";
    constexpr std::string_view key_close = "</arg_key>";
    constexpr std::string_view value_open = "<arg_value>";
    constexpr std::string_view value_close = "</arg_value>";
    auto const begin = body.find(key_open, at);
    if (begin == std::string_view::npos) return std::nullopt;
    auto const key = begin + key_open.size();
    for (auto end = body.find(key_close, key); end != std::string_view::npos;
         end = body.find(key_close, end + 1)) {
        auto const rest = strip_left(body.substr(end + key_close.size()));
        if (!rest.starts_with(value_open)) continue;
        auto const value = body.size() - rest.size() + value_open.size();
        auto const value_end = body.find(value_close, value);
        if (value_end == std::string_view::npos) return std::nullopt;
        return GlmArgument{begin, value_end + value_close.size(), body.substr(key, end - key),
                           body.substr(value, value_end - value)};
    }
    return std::nullopt;
}

ParsedCall parse_glm_call(std::string_view raw) {
    constexpr std::string_view open = "<tool_call>";
    constexpr std::string_view close = "</tool_call>";
    auto const broken = [raw](std::string_view error) {
        return UnparsedToolCall{std::string{raw}, std::string{error}};
    };
    auto text = strip_left(raw.substr(open.size(), raw.size() - open.size() - close.size()));
    auto const name = text.substr(0, glm_name_length(text));
    if (name.empty()) return broken("Malformed GLM tool call");
    auto const body = strip(text.substr(name.size()));
    auto arguments = Json::object();
    std::size_t at = 0;
    while (auto const argument = next_glm_argument(body, at)) {
        if (!strip(body.substr(at, argument->begin - at)).empty()) {
            return broken("Unexpected content between tool call arguments");
        }
        auto const key = strip(argument->key);
        if (key.empty()) return broken("Empty tool call argument key");
        auto read = read_json(argument->value);
        arguments.set(std::string{key}, read.value ? std::move(*read.value)
                                                   : Json::string(std::string{argument->value}));
        at = argument->end;
    }
    if (!strip(body.substr(at)).empty()) {
        return broken("Unexpected trailing content inside tool call");
    }
    return ToolCall{.name = std::string{name}, .arguments = write_json(arguments)};
}

bool has_calls(Message const& message) {
    return message.tool_calls && !message.tool_calls->empty();
}

// Each id once, and none missing; else nothing.
template <class Item, class Id>
std::optional<std::vector<std::string>> unique_ids(std::span<Item const> items, Id const& id) {
    std::vector<std::string> out;
    std::set<std::string> seen;
    for (auto const& item : items) {
        auto const& one = id(item);
        if (!one || one->empty() || !seen.insert(*one).second) return std::nullopt;
        out.push_back(*one);
    }
    return out;
}

// Answers in the order of the calls, if there is no doubt which answers which.
void sort_answers(std::span<Message> answers, Message const& caller) {
    if (caller.role != "assistant" || !has_calls(caller)) return;
    auto const calls = unique_ids(std::span<ToolCall const>{*caller.tool_calls},
                                  [](ToolCall const& call) -> auto& { return call.id; });
    auto const ids = unique_ids(std::span<Message const>{answers},
                                [](Message const& answer) -> auto& { return answer.tool_call_id; });
    if (!calls || !ids) return;
    auto const place = [&calls](std::string const& id) { return std::ranges::find(*calls, id); };
    if (std::ranges::any_of(*ids, [&](auto const& id) { return place(id) == calls->end(); }))
        return;
    std::ranges::stable_sort(answers, {},
                             [&](Message const& answer) { return place(*answer.tool_call_id); });
}

std::vector<Message> with_sorted_answers(std::span<Message const> messages) {
    std::vector<Message> out{messages.begin(), messages.end()};
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto end = i;
        while (end < out.size() && out[end].role == "tool") ++end;
        if (end == i) continue;
        if (i > 0) sort_answers(std::span{out}.subspan(i, end - i), out[i - 1]);
        i = end - 1;
    }
    return out;
}

class GlmRenderer final : public Renderer {
public:
    GlmRenderer(TokenizerPointer tokenizer, std::string_view effort, bool strip_thinking)
        : Renderer{std::move(tokenizer)},
          effort_{effort},
          strip_thinking_{strip_thinking},
          system_{single_token("<|system|>")},
          user_{single_token("<|user|>")},
          assistant_{single_token("<|assistant|>")},
          observation_{single_token("<|observation|>")},
          end_of_text_{single_token("<|endoftext|>")},
          think_open_{single_token("<think>")},
          think_close_{single_token("</think>")} {}

    [[nodiscard]] StopSequences stop_sequences() const override {
        return {.tokens = {user_, observation_, end_of_text_}};
    }
    [[nodiscard]] bool has_extension_property() const override { return !strip_thinking_; }
    [[nodiscard]] bool supports_streaming() const override { return true; }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& context) const override;
    [[nodiscard]] std::vector<Token> build_generation_prompt(
        Messages messages, std::string_view role, std::string_view prefill) const override {
        return Renderer::build_generation_prompt(with_sorted_answers(messages), role, prefill);
    }
    [[nodiscard]] RenderedExample build_supervised_example(
        Messages messages, TrainOnWhat train_on_what) const override {
        return Renderer::build_supervised_example(with_sorted_answers(messages), train_on_what);
    }
    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override {
        return parsed(normalize_response(response), false);
    }
    [[nodiscard]] std::string to_openai_message(Message const& message) const override {
        for (auto const& part : message.content.parts()) refuse_image(part, true);
        return openai_with_reasoning(message, OpenAiArguments::value_or_empty);
    }
    [[nodiscard]] std::vector<Message> create_conversation_prefix_with_tools(
        std::span<ToolSpec const> tools, std::string_view system_prompt) const override;

protected:
    [[nodiscard]] std::vector<Token> bos_tokens() const override {
        return encode("[gMASK]<sop><|system|>Reasoning Effort: " + effort_);
    }
    [[nodiscard]] std::vector<Token> generation_suffix(
        std::string_view role, RenderContext const& /*context*/) const override {
        if (role == "assistant") return {assistant_, think_open_};
        if (role == "system") return {system_};
        if (role == "user") return {user_};
        if (role == "tool") return {observation_};
        refuse_role(role);
    }
    [[nodiscard]] std::vector<Token> normalize_response(
        std::span<Token const> response) const override {
        std::vector<Token> out{response.begin(), response.end()};
        if (!out.empty() && out.front() != think_open_ &&
            std::ranges::find(out, think_close_) != out.end()) {
            out.insert(out.begin(), think_open_);
        }
        return out;
    }
    [[nodiscard]] Token end_of_message(std::span<Token const> response) const override {
        auto const found = std::ranges::find_if(response, [this](Token t) { return is_stop(t); });
        return found == response.end() ? user_ : *found;
    }
    [[nodiscard]] ParsedResponse parse_whole(std::span<Token const> response) const override {
        return parsed(response, true);
    }

private:
    [[nodiscard]] bool is_stop(Token token) const {
        return token == user_ || token == observation_ || token == end_of_text_;
    }
    [[noreturn]] static void refuse_role(std::string_view role) {
        refuse("render_message", "role", std::string{role},
               "the role \"" + std::string{role} +
                   "\" is not known to GLM-5.3; use system, user, assistant or tool");
    }
    static void refuse_image(ContentPart const& part, bool may_think) {
        if (std::holds_alternative<TextPart>(part)) return;
        if (may_think && std::holds_alternative<ThinkingPart>(part)) return;
        refuse("render_message", "content", {},
               "the content has a part that GLM-5.3 does not take there; give text, and thinking "
               "in messages of the assistant only");
    }
    static std::string visible_text(Content const& content) {
        std::string out = content.text();
        for (auto const& part : content.parts()) {
            refuse_image(part, false);
            out += std::get<TextPart>(part).text;
        }
        return out;
    }

    // The token that ends the assistant's message: the one that introduces what follows, unless
    // that is nothing the model would expect.
    [[nodiscard]] std::optional<Token> terminator(Message const& message,
                                                  Message const* next) const {
        auto const expected = has_calls(message) ? observation_ : user_;
        if (next == nullptr) return expected;
        if (next->role == "user" && expected == user_) return expected;
        if (next->role == "tool" && expected == observation_) return expected;
        return std::nullopt;
    }
    [[nodiscard]] bool introduced_before(Message const& message,
                                         RenderContext const& context) const {
        auto const* before = context.previous;
        return before != nullptr && before->role == "assistant" && terminator(*before, &message);
    }

    [[nodiscard]] RenderedMessage assistant(Message const& message,
                                            RenderContext const& context) const;
    [[nodiscard]] ParsedResponse parsed(std::span<Token const> response, bool whole) const;

    std::string effort_;
    bool strip_thinking_;
    Token system_;
    Token user_;
    Token assistant_;
    Token observation_;
    Token end_of_text_;
    Token think_open_;
    Token think_close_;
};

RenderedMessage GlmRenderer::render_message(Message const& message,
                                            RenderContext const& context) const {
    if (message.role == "assistant") return assistant(message, context);
    RenderedMessage out;
    if (message.role == "system") {
        out.header = {system_};
        out.output = encode(visible_text(message.content));
    } else if (message.role == "user") {
        if (!introduced_before(message, context)) out.header = {user_};
        out.output = encode(visible_text(message.content));
    } else if (message.role == "tool") {
        auto const follows_answer = context.previous != nullptr && context.previous->role == "tool";
        if (!follows_answer && !introduced_before(message, context)) out.header = {observation_};
        out.output = encode("<tool_response>" + visible_text(message.content) + "</tool_response>");
    } else {
        refuse_role(message.role);
    }
    return out;
}

RenderedMessage GlmRenderer::assistant(Message const& message, RenderContext const& context) const {
    std::string thinking;
    std::string text;
    for (auto const& part : message.content.parts()) refuse_image(part, true);
    if (message.content.is_parts()) {
        thinking = get_thinking(message);
        text = get_text(message);
    } else {
        text = message.content.text();
        if (auto const close = text.find("</think>"); close != std::string::npos) {
            constexpr std::size_t open_size = 7;
            constexpr std::size_t close_size = 8;
            thinking = text.substr(0, close);
            auto const open = thinking.rfind("<think>");
            if (open != std::string::npos) thinking = thinking.substr(open + open_size);
            text = text.substr(text.rfind("</think>") + close_size);
        }
    }
    auto const keeps =
        !strip_thinking_ || static_cast<std::ptrdiff_t>(context.index) > context.last_user_index;
    // The prompt always opens the block, so that is never what the model writes.
    auto output = (keeps ? thinking : "") + "</think>" + std::string{strip(text)};
    if (has_calls(message)) {
        for (auto const& call : *message.tool_calls) output += glm_call(call);
    }
    RenderedMessage out{.header = {assistant_, think_open_}, .output = encode(output)};
    auto const end = terminator(message, context.next);
    if (end && context.is_last) out.stop_overlap = {*end};
    if (end && !context.is_last) out.output.push_back(*end);
    return out;
}

ParsedResponse GlmRenderer::parsed(std::span<Token const> response, bool whole) const {
    auto const is_end = [this](Token token) { return is_stop(token); };
    auto const stops = std::ranges::count_if(response, is_end);
    if (stops > 1) refuse_stops(static_cast<std::size_t>(stops));
    auto const end = std::ranges::find_if(response, is_end);
    auto const content = tokenizer().decode({response.begin(), end});
    ParsedResponse out{Message{.role = "assistant", .content = content},
                       ParseTermination::malformed};
    if (stops == 0 && !whole) return out;
    if (stops == 1) {
        out.termination =
            *end == end_of_text_ ? ParseTermination::eos : ParseTermination::stop_sequence;
    }
    auto blocks = parse_content_blocks(content);
    if (!blocks) return out;
    out.message.content = std::move(blocks->parts);
    std::vector<ParsedCall> calls;
    for (auto const& call : blocks->calls) {
        if (std::holds_alternative<ToolCall>(call)) calls.push_back(call);
    }
    for (auto const& call : blocks->calls) {
        auto const* unparsed = std::get_if<UnparsedToolCall>(&call);
        if (unparsed != nullptr) calls.push_back(parse_glm_call(unparsed->raw_text));
    }
    put_calls(out.message, std::move(calls));
    return out;
}

std::vector<Message> GlmRenderer::create_conversation_prefix_with_tools(
    std::span<ToolSpec const> tools, std::string_view system_prompt) const {
    std::vector<Message> out;
    if (!tools.empty()) {
        std::string text{glm_tools_before};
        for (auto const& tool : tools) {
            auto const json = tool_json(tool);
            auto const* deferred = json.find("defer_loading");
            if (deferred != nullptr && deferred->truthy()) continue;
            auto shown = Json::object();
            for (auto const& [name, value] : json.members()) {
                if (name != "defer_loading" && name != "strict") shown.append(name, value);
            }
            text += write_json(shown, {.ascii = false}) + "\n";
        }
        out.push_back({.role = "system", .content = text + std::string{glm_tools_after}});
    }
    if (!system_prompt.empty()) out.push_back({.role = "system", .content = system_prompt});
    return out;
}

}  // namespace

RendererPointer make_glm5_3(TokenizerPointer tokenizer, std::string_view effort,
                            bool strip_thinking) {
    return std::make_unique<GlmRenderer>(std::move(tokenizer), effort, strip_thinking);
}

}  // namespace tinkxx::text::render
