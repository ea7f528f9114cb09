#include "text/errors/refuse.hpp"
#include "text/render/common/characters.hpp"
#include "text/render/families/families.hpp"
#include "text/render/parse/parsing.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tinkxx::text::render {

namespace {

constexpr std::string_view dsml_open = "<｜DSML｜ calls>";
constexpr std::string_view dsml_close = "</｜DSML｜ calls>";
constexpr std::string_view invoke_open = "<｜DSML｜ invoke name=\"";
constexpr std::string_view invoke_close = "</｜DSML｜ invoke>";
constexpr std::string_view dsml_parameter_open = "<｜DSML｜ parameter name=\"";
constexpr std::string_view dsml_parameter_close = "</｜DSML｜ parameter>";

constexpr std::string_view v4_tools_before = R"(## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

)";
constexpr std::string_view v4_tools_after = R"(

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
)";

bool is_user_turn(Message const& message) {
    return message.role == "user" || message.role == "tool";
}

// The text of a message that declares tools: a list of `{"function": …}`.
std::string declared_tools(Message const& message) {
    auto const& text = plain_text(message.content);
    auto const read = read_json(text);
    std::string schemas;
    bool good = read.value && read.value->is_array();
    if (good) {
        for (auto const& tool : read.value->items()) {
            auto const* function = tool.find("function");
            good = good && function != nullptr;
            if (!good) break;
            if (&tool != read.value->items().data()) schemas += '\n';
            schemas += write_json(*function, {.ascii = false});
        }
    }
    if (!good) {
        refuse("render_message", "content", std::string{cut(text, 60)},
               "a message of the role tool_declare is no JSON list of tools; make it by "
               "create_conversation_prefix_with_tools");
    }
    return std::string{v4_tools_before} + schemas + std::string{v4_tools_after};
}

Json v4_arguments(std::string const& text) {
    auto parsed = Json::string(text);
    for (int i = 0; i < 2 && parsed.is_string(); ++i) {  // some are encoded twice
        auto read = read_json(parsed.text());
        if (!read.value) break;
        parsed = std::move(*read.value);
    }
    if (parsed.is_object()) return parsed;
    auto out = Json::object();
    out.append("arguments", Json::string(text));
    return out;
}

std::string dsml_calls(std::vector<ToolCall> const& calls) {
    auto out = "\n\n" + std::string{dsml_open} + "\n";
    for (auto const& call : calls) {
        out.append(invoke_open).append(call.name).append("\">\n");
        auto const arguments = v4_arguments(call.arguments);
        for (auto const& [name, value] : arguments.members()) {
            if (&name != &arguments.members().front().first) out += '\n';
            out.append(dsml_parameter_open).append(name);
            out += value.is_string() ? "\" string=\"true\">" : "\" string=\"false\">";
            out += value.is_string() ? value.text() : write_json(value, {.ascii = false});
            out += dsml_parameter_close;
        }
        out.append("\n").append(invoke_close).append("\n");
    }
    return out + std::string{dsml_close};
}

// Reading ---------------------------------------------------------------------------------------

struct DsmlParameter {
    std::size_t begin{0};
    std::size_t end{0};
    std::string_view name{};
    bool is_string{false};
    std::string_view value{};
};

std::optional<DsmlParameter> next_dsml_parameter(std::string_view text, std::size_t at) {
    constexpr std::string_view middle = "\" string=\"";
    auto const begin = text.find(dsml_parameter_open, at);
    if (begin == std::string_view::npos) return std::nullopt;
    auto const name = begin + dsml_parameter_open.size();
    for (auto end = text.find(middle, name); end != std::string_view::npos;
         end = text.find(middle, end + 1)) {
        auto const flag = text.substr(end + middle.size());
        auto const is_true = flag.starts_with("true\">");
        if (!is_true && !flag.starts_with("false\">")) continue;
        auto const value = end + middle.size() + (is_true ? 6 : 7);
        auto const close = text.find(dsml_parameter_close, value);
        if (close == std::string_view::npos) return std::nullopt;
        return DsmlParameter{begin, close + dsml_parameter_close.size(),
                             text.substr(name, end - name), is_true,
                             text.substr(value, close - value)};
    }
    return std::nullopt;
}

struct Invoke {
    std::size_t begin{0};
    std::size_t end{0};
    std::string_view name{};
    std::string_view inside{};
};

std::optional<Invoke> next_invoke(std::string_view text, std::size_t at) {
    auto const begin = text.find(invoke_open, at);
    if (begin == std::string_view::npos) return std::nullopt;
    auto const name = begin + invoke_open.size();
    auto const name_end = text.find("\">\n", name);
    if (name_end == std::string_view::npos) return std::nullopt;
    auto const inside = name_end + 3;
    auto const close = text.find(invoke_close, inside);
    if (close == std::string_view::npos) return std::nullopt;
    return Invoke{begin, close + invoke_close.size(), text.substr(name, name_end - name),
                  text.substr(inside, close - inside)};
}

// The arguments of an invoke, or in `error` what is wrong with them.
std::optional<Json> dsml_arguments(Invoke const& invoke, std::string& error) {
    std::vector<DsmlParameter> parameters;
    std::string between;
    std::size_t at = 0;
    while (auto const parameter = next_dsml_parameter(invoke.inside, at)) {
        between += invoke.inside.substr(at, parameter->begin - at);
        at = parameter->end;
        parameters.push_back(*parameter);
    }
    between += invoke.inside.substr(at);
    auto const fail = [&error](std::string why) -> std::optional<Json> {
        error = std::move(why);
        return std::nullopt;
    };
    if (strip(invoke.name).empty()) return fail("empty function name");
    if (!strip(between).empty()) return fail("text outside parameters");
    auto arguments = Json::object();
    for (auto const& parameter : parameters) {
        std::string const name{parameter.name};
        if (strip(name).empty()) return fail("empty parameter name");
        if (arguments.find(name) != nullptr) {
            return fail("duplicate parameter " + to_repr(Json::string(name)));
        }
        if (parameter.is_string) {
            arguments.append(name, Json::string(std::string{parameter.value}));
            continue;
        }
        auto read = read_json(parameter.value);
        if (!read.value) return fail(std::move(read.error));
        arguments.append(name, std::move(*read.value));
    }
    return arguments;
}

std::vector<ParsedCall> v4_calls(std::string_view block) {
    auto body = block;
    if (body.starts_with("\n\n")) body.remove_prefix(2);
    body.remove_prefix(dsml_open.size());
    body.remove_suffix(dsml_close.size());
    std::vector<Invoke> invokes;
    std::string between;
    std::size_t at = 0;
    while (auto const invoke = next_invoke(body, at)) {
        between += body.substr(at, invoke->begin - at);
        at = invoke->end;
        invokes.push_back(*invoke);
    }
    between += body.substr(at);
    if (invokes.empty() || !strip(between).empty()) {
        return {UnparsedToolCall{std::string{block}, "Invalid DSML: malformed invoke"}};
    }
    std::vector<ParsedCall> out;
    for (auto const& invoke : invokes) {
        std::string error;
        if (auto const arguments = dsml_arguments(invoke, error)) {
            out.emplace_back(
                ToolCall{.name = std::string{invoke.name}, .arguments = write_json(*arguments)});
        } else {
            out.emplace_back(
                UnparsedToolCall{std::string{body.substr(invoke.begin, invoke.end - invoke.begin)},
                                 "Invalid DSML: " + error});
        }
    }
    return out;
}

// Conversations -----------------------------------------------------------------------------------

// Tools' answers in the order of the calls, in the places where answers stand.
std::vector<Message const*> in_call_order(
    std::span<Message const> turn, std::unordered_map<std::string, std::size_t> const& order) {
    std::vector<Message const*> tools;
    for (auto const& message : turn) {
        if (message.role == "tool") tools.push_back(&message);
    }
    std::ranges::stable_sort(tools, {}, [&order](Message const* message) -> std::size_t {
        auto const found = order.find(message->tool_call_id.value_or(""));
        return found == order.end() ? 0 : found->second;
    });
    std::vector<Message const*> out;
    auto next = tools.begin();
    for (auto const& message : turn) out.push_back(message.role == "tool" ? *next++ : &message);
    return out;
}

void fold_tools(std::vector<Message>& messages) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (messages[i].role != "tool_declare") continue;
        auto const tools = declared_tools(messages[i]);
        if (i == 0) {
            messages[0].role = "system";
            messages[0].content = "\n\n" + tools;
        } else if (i == 1 && messages[0].role == "system") {
            messages[0].content = plain_text(messages[0].content) + "\n\n" + tools;
            messages[1].content = "";
        } else {
            refuse("render_message", "role", "tool_declare",
                   "tools are declared in the middle of the conversation; put them first, or "
                   "behind the first message of the system");
        }
    }
}

// Gives each turn of the user to its first message; the others are left empty, in their places.
void join_turns(std::vector<Message>& messages) {
    std::unordered_map<std::string, std::size_t> order;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (messages[i].tool_calls && !messages[i].tool_calls->empty()) {
            order.clear();
            auto const& calls = *messages[i].tool_calls;
            for (std::size_t n = 0; n < calls.size(); ++n) {
                if (calls[n].id && !calls[n].id->empty()) order[*calls[n].id] = n;
            }
        }
        if (!is_user_turn(messages[i])) continue;
        auto end = i + 1;
        while (end < messages.size() && is_user_turn(messages[end])) ++end;
        std::string text;
        auto const turn = std::span{messages}.subspan(i, end - i);
        auto const ordered = in_call_order(turn, order);
        for (auto const* message : ordered) {
            auto const& one = plain_text(message->content);
            if (message != ordered.front()) text += "\n\n";
            text += message->role == "tool" ? "<tool_result>" + one + "</tool_result>" : one;
        }
        messages[i].content = std::move(text);
        for (auto rest = i + 1; rest < end; ++rest) messages[rest].content = "";
        i = end - 1;
    }
}

std::ptrdiff_t last_turn_of_user(std::span<Message const> messages, bool tools_too) {
    for (auto i = messages.size(); i > 0; --i) {
        auto const& message = messages[i - 1];
        auto const counts = tools_too ? is_user_turn(message) : message.role == "user";
        if (counts || (message.role == "system" && i > 1))
            return static_cast<std::ptrdiff_t>(i - 1);
    }
    return -1;
}

void refuse_images(Message const& message) {
    auto const is_image = [](ContentPart const& part) {
        return std::holds_alternative<ImagePart>(part);
    };
    if (std::ranges::none_of(message.content.parts(), is_image)) return;
    refuse("render_message", "content", "image",
           "the assistant's message has an image; DeepSeek V4.1 takes text only");
}

class DeepSeekV4Renderer final : public Renderer {
public:
    // Messages of the assistant up to `drop_through` are rendered without thinking.
    DeepSeekV4Renderer(TokenizerPointer tokenizer, int effort, bool strip_thinking,
                       std::optional<std::ptrdiff_t> drop_through)
        : Renderer{tokenizer},
          shared_{std::move(tokenizer)},
          effort_{effort},
          strip_thinking_{strip_thinking},
          drop_through_{drop_through},
          end_{single_token("<｜end▁of▁sentence｜>")} {}

    [[nodiscard]] StopSequences stop_sequences() const override { return {.tokens = {end_}}; }
    [[nodiscard]] bool has_extension_property() const override {
        return !thinks() || !strip_thinking_;
    }
    [[nodiscard]] bool supports_streaming() const override { return true; }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& context) const override;

    [[nodiscard]] std::vector<Token> build_generation_prompt(
        Messages messages, std::string_view role, std::string_view prefill) const override {
        if (drop_through_) return Renderer::build_generation_prompt(messages, role, prefill);
        auto const shaped = normalized(messages);
        return of_conversation(messages, shaped).build_generation_prompt(shaped, role, prefill);
    }
    [[nodiscard]] RenderedExample build_supervised_example(
        Messages messages, TrainOnWhat train_on_what) const override {
        if (drop_through_) return Renderer::build_supervised_example(messages, train_on_what);
        auto const shaped = normalized(messages);
        return of_conversation(messages, shaped).build_supervised_example(shaped, train_on_what);
    }

    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override {
        auto const shaped = normalize_response(response);
        auto out = split_at_stop(shaped, tokenizer(), end_);
        return is_clean(out.termination) ? parse_whole(shaped) : out;
    }

    [[nodiscard]] std::string to_openai_message(Message const& message) const override;
    [[nodiscard]] std::vector<Message> create_conversation_prefix_with_tools(
        std::span<ToolSpec const> tools, std::string_view system_prompt) const override;

protected:
    [[nodiscard]] std::vector<Token> bos_tokens() const override {
        return encode("<｜begin▁of▁sentence｜>");
    }
    [[nodiscard]] std::size_t last_assistant_turn_start(Messages messages) const override {
        return static_cast<std::size_t>(last_turn_of_user(messages, false) + 1);
    }
    [[nodiscard]] Token end_of_message(std::span<Token const> /*response*/) const override {
        return end_;
    }
    [[nodiscard]] std::vector<Token> normalize_response(
        std::span<Token const> response) const override {
        std::vector<Token> out{response.begin(), response.end()};
        if (!thinks()) return out;
        auto const open = single_token("<think>");
        auto const close = single_token("</think>");
        if (std::ranges::find(out, close) != out.end() && out.front() != open) {
            out.insert(out.begin(), open);
        }
        return out;
    }
    [[nodiscard]] ParsedResponse parse_whole(std::span<Token const> response) const override;

private:
    [[nodiscard]] bool thinks() const noexcept { return effort_ > 0; }

    static std::vector<Message> normalized(Messages messages) {
        std::vector<Message> out{messages.begin(), messages.end()};
        fold_tools(out);
        join_turns(out);
        return out;
    }

    // The renderer of one conversation, which knows where thinking begins to be kept.
    [[nodiscard]] DeepSeekV4Renderer of_conversation(Messages given, Messages shaped) const {
        auto const declares = [](Message const& message) { return message.role == "tool_declare"; };
        auto const drops = strip_thinking_ && std::ranges::none_of(given, declares);
        return {shared_, effort_, strip_thinking_,
                drops ? last_turn_of_user(shaped, true) : std::ptrdiff_t{-1}};
    }

    [[nodiscard]] std::string opening(std::string_view role) const {
        if (!thinks()) return role == "system" ? "<｜System｜>" : "";
        return "<｜System｜>Reasoning Effort: " + std::to_string(effort_) +
               " (range 1-100, the higher the value, the more thorough the reasoning)\n\n";
    }

    [[nodiscard]] RenderedMessage system(std::string const& prefix, std::string const& text) const;
    [[nodiscard]] RenderedMessage assistant(Message const& message, RenderContext const& context,
                                            std::string const& opening) const;

    TokenizerPointer shared_;
    int effort_;
    bool strip_thinking_;
    std::optional<std::ptrdiff_t> drop_through_;
    Token end_;
};

RenderedMessage DeepSeekV4Renderer::render_message(Message const& message,
                                                   RenderContext const& context) const {
    auto const& role = message.role;
    auto const start = context.index == 0 ? opening(role) : std::string{};
    if (role == "system") {
        return system(context.index == 0 ? start : "<｜System｜>", plain_text(message.content));
    }
    if (role == "tool_declare") return {};
    if (is_user_turn(message)) {
        if (context.previous != nullptr && is_user_turn(*context.previous)) return {};
        return {.header = encode(start + "<｜User｜>"),
                .output = encode(plain_text(message.content))};
    }
    if (role == "assistant") return assistant(message, context, start);
    refuse("render_message", "role", role,
           "the role \"" + role +
               "\" is not known to DeepSeek V4.1; use system, user, assistant, tool or "
               "tool_declare");
}

// Encoded as one text, since tokens may reach over the border; such a one belongs to the header.
RenderedMessage DeepSeekV4Renderer::system(std::string const& prefix,
                                           std::string const& text) const {
    auto const tokens = encode(prefix + text);
    auto const wanted = count_characters(prefix);
    std::size_t split = 0;
    while (split < tokens.size() &&
           count_characters(tokenizer().decode(std::span{tokens}.first(split))) < wanted) {
        ++split;
    }
    auto const border = tokens.begin() + static_cast<std::ptrdiff_t>(split);
    return {.header = {tokens.begin(), border}, .output = {border, tokens.end()}};
}

RenderedMessage DeepSeekV4Renderer::assistant(Message const& message, RenderContext const& context,
                                              std::string const& opening) const {
    auto const keeps =
        thinks() && static_cast<std::ptrdiff_t>(context.index) > drop_through_.value_or(-1);
    auto const* before = context.previous;
    auto const follows_user =
        before != nullptr &&
        (is_user_turn(*before) || (before->role == "system" && context.index > 1));
    auto header = opening;
    if (follows_user) header += keeps ? "<｜Assistant｜><think>" : "<｜Assistant｜></think>";
    refuse_images(message);
    auto text = (keeps ? get_thinking(message) + "</think>" : "") + get_text(message);
    if (message.tool_calls && !message.tool_calls->empty()) text += dsml_calls(*message.tool_calls);
    RenderedMessage out{.header = encode(header), .output = encode(text)};
    out.output.push_back(end_);
    return out;
}

ParsedResponse DeepSeekV4Renderer::parse_whole(std::span<Token const> response) const {
    auto out = split_at_stop(response, tokenizer(), end_);
    auto const whole = out.message.content.text();
    std::string_view content{whole};
    if (auto const block = find_block(content, 0, dsml_open, dsml_close)) {
        auto const begin =
            content.substr(0, block->begin).ends_with("\n\n") ? block->begin - 2 : block->begin;
        put_calls(out.message, v4_calls(content.substr(begin, block->end - begin)));
        auto const after = content.substr(block->end);
        if (!strip(after).empty()) {
            out.message.unparsed_tool_calls.push_back(
                {std::string{after}, "Invalid DSML: output after calls block"});
        }
        content = content.substr(0, begin);
    }
    auto dangling = find_unterminated(content, dsml_open, dsml_close);
    if (!dangling && contains(content, "｜DSML｜")) {
        dangling =
            UnparsedToolCall{std::string{content}, "Invalid DSML: marker outside a calls block"};
    }
    put_unparsed(out.message, std::move(dangling));
    out.message.content = think_content(content);
    return out;
}

std::string DeepSeekV4Renderer::to_openai_message(Message const& message) const {
    auto shown = message;
    if (message.role == "assistant") refuse_images(message);
    if (message.role != "assistant") {
        shown.content = plain_text(message.content);
    } else if (get_thinking(message).empty()) {
        shown.content = get_text(message);
    }
    if (shown.tool_calls) {
        for (auto& call : *shown.tool_calls)
            call.arguments = write_json(v4_arguments(call.arguments));
    }
    return openai_with_reasoning(shown, OpenAiArguments::value);
}

std::vector<Message> DeepSeekV4Renderer::create_conversation_prefix_with_tools(
    std::span<ToolSpec const> tools, std::string_view system_prompt) const {
    std::vector<Message> out;
    if (!system_prompt.empty()) out.push_back({.role = "system", .content = system_prompt});
    if (tools.empty()) return out;
    auto list = Json::array();
    for (auto const& tool : tools) {
        auto one = Json::object();
        one.append("type", Json::string("function"));
        one.append("function", tool_json(tool));
        list.push(std::move(one));
    }
    out.push_back({.role = "tool_declare", .content = write_json(list)});
    return out;
}

}  // namespace

RendererPointer make_deepseek_v4_1(TokenizerPointer tokenizer, int effort, bool strip_thinking) {
    return std::make_unique<DeepSeekV4Renderer>(std::move(tokenizer), effort, strip_thinking,
                                                std::nullopt);
}

}  // namespace tinkxx::text::render
