#include <tinkxx/text/renderer.hpp>

#include "text/errors/refuse.hpp"
#include "text/render/common/characters.hpp"
#include "text/render/parse/parsing.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tinkxx::text {

namespace {

constexpr std::array<std::string_view, 7> train_names{"last_assistant_message",
                                                      "last_assistant_turn",
                                                      "all_assistant_messages",
                                                      "all_messages",
                                                      "all_tokens",
                                                      "all_user_and_system_messages",
                                                      "customized"};

std::ptrdiff_t last_of(Renderer::Messages messages, std::string_view role) {
    for (auto i = messages.size(); i > 0; --i) {
        if (messages[i - 1].role == role) return static_cast<std::ptrdiff_t>(i - 1);
    }
    return -1;
}

RenderContext context_of(Renderer::Messages messages, std::size_t i, std::ptrdiff_t last_user,
                         std::size_t turn_start) {
    return {.index = i,
            .is_last = i + 1 == messages.size(),
            .previous = i > 0 ? &messages[i - 1] : nullptr,
            .next = i + 1 < messages.size() ? &messages[i + 1] : nullptr,
            .last_user_index = last_user,
            .in_last_assistant_turn = i >= turn_start};
}

void put_tokens(std::vector<Token>& out, std::vector<Token> const& tokens) {
    out.insert(out.end(), tokens.begin(), tokens.end());
}

void put_weighted(RenderedExample& out, std::vector<Token> const& tokens, bool counts) {
    put_tokens(out.tokens, tokens);
    out.weights.resize(out.tokens.size(), counts ? 1.0F : 0.0F);
}

void check_trainable(Message const& message, std::size_t index, TrainOnWhat what) {
    auto const customized = what == TrainOnWhat::customized;
    if (message.trainable.has_value() == customized) return;
    refuse("build_supervised_example", "/" + std::to_string(index) + "/trainable", {},
           customized ? "a message does not say whether it is trainable; with `customized` each "
                        "message has to"
                      : "a message says whether it is trainable; train on `customized`, or leave "
                        "that out");
}

// The message before which the generation prompt ends, if what is trained is what follows a prompt.
std::optional<std::size_t> first_trained(Renderer::Messages messages, TrainOnWhat what) {
    std::ptrdiff_t boundary = -1;
    if (what == TrainOnWhat::last_assistant_message) {
        boundary = std::ssize(messages) - 1;
    } else if (what == TrainOnWhat::last_assistant_turn) {
        boundary = last_of(messages, "user") + 1;
    } else {
        return std::nullopt;
    }
    if (boundary < 0 || boundary >= std::ssize(messages)) return std::nullopt;
    auto const index = static_cast<std::size_t>(boundary);
    if (messages[index].role != "assistant") return std::nullopt;
    return index;
}

// What the generation prompt supplies is never trained, on whichever side of a header it stands.
void withhold_prompt(Renderer const& renderer, Renderer::Messages messages, TrainOnWhat what,
                     RenderedExample& example) {
    auto const boundary = first_trained(messages, what);
    if (!boundary) return;
    auto const prompt = renderer.build_generation_prompt(messages.first(*boundary));
    auto const follows = prompt.size() <= example.tokens.size() &&
                         std::equal(prompt.begin(), prompt.end(), example.tokens.begin());
    if (follows) {
        std::fill_n(example.weights.begin(), prompt.size(), 0.0F);
    } else if (renderer.disables_thinking()) {
        refuse("build_supervised_example", "messages", {},
               "the trained turn does not follow its prompt, which tells the model not to think; "
               "use the renderer that thinks, or remove the thinking from this turn");
    }
}

}  // namespace

std::string_view to_string(TrainOnWhat what) noexcept {
    return train_names[static_cast<std::size_t>(what)];
}

TrainOnWhat read_train_on_what(std::string_view name) {
    if (name == "custom") return TrainOnWhat::customized;
    auto const found = std::ranges::find(train_names, name);
    if (found != train_names.end()) return static_cast<TrainOnWhat>(found - train_names.begin());
    std::string all;
    for (auto const known : train_names) all += (all.empty() ? "" : ", ") + std::string{known};
    refuse("read_train_on_what", "train_on_what", std::string{name},
           "\"" + std::string{name} + "\" is not known; use one of " + all);
}

std::string_view to_string(ParseTermination termination) noexcept {
    switch (termination) {
        case ParseTermination::stop_sequence:
            return "stop_sequence";
        case ParseTermination::eos:
            return "eos";
        case ParseTermination::malformed:
            return "malformed";
    }
    return "malformed";
}

Stop StopSequences::to_stop() const { return texts.empty() ? Stop{tokens} : Stop{texts}; }

std::optional<ParseFailure> classify_parse_failure(ParsedResponse const& response) {
    if (!is_clean(response.termination)) {
        return ParseFailure{ParseFailure::Kind::structural,
                            "response did not terminate cleanly (termination=" +
                                std::string{to_string(response.termination)} +
                                "): expected the renderer's stop signal or EOS, so the message "
                                "framing is broken"};
    }
    auto const& calls = response.message.unparsed_tool_calls;
    if (calls.empty()) return std::nullopt;
    std::string detail;
    for (auto const& call : calls) detail += (&call == calls.data() ? "" : "\n") + call.error;
    return ParseFailure{ParseFailure::Kind::content,
                        std::string{render::cut(detail, render::longest_detail)}};
}

Renderer::Renderer(std::shared_ptr<RenderTokenizer const> tokenizer)
    : tokenizer_{std::move(tokenizer)} {
    if (!tokenizer_) refuse("Renderer", "tokenizer", {}, "there is no tokenizer; give one");
}

std::vector<Token> Renderer::encode(std::string_view text,
                                    RenderTokenizer::Specials specials) const {
    if (auto const at = find_invalid_utf8(text); at != text.size()) {
        refuse("encode", "text", {},
               "the text is no UTF-8 at byte " + std::to_string(at) + "; convert it before");
    }
    return tokenizer_->encode(text, specials);
}

Token Renderer::single_token(std::string_view text) const {
    auto const tokens = encode(text);
    if (tokens.size() == 1) return tokens.front();
    refuse("Renderer", "tokenizer", std::string{text},
           "the tokenizer has no token \"" + std::string{text} +
               "\"; use the tokenizer of a model that this renderer is for");
}

std::vector<Token> Renderer::generation_suffix(std::string_view role,
                                               RenderContext const& context) const {
    return render_message(Message{.role = std::string{role}, .content = ""}, context).header;
}

bool Renderer::output_is_trained(Message const& message, RenderContext const& context,
                                 TrainOnWhat train_on_what) const {
    auto const assistant = message.role == "assistant";
    switch (train_on_what) {
        case TrainOnWhat::last_assistant_message:
            return context.is_last && assistant;
        case TrainOnWhat::last_assistant_turn:
            return assistant && context.in_last_assistant_turn;
        case TrainOnWhat::all_assistant_messages:
            return assistant;
        case TrainOnWhat::all_messages:
        case TrainOnWhat::all_tokens:
            return true;
        case TrainOnWhat::all_user_and_system_messages:
            return message.role == "user" || message.role == "system";
        case TrainOnWhat::customized:
            return message.trainable.value_or(false);
    }
    return false;
}

std::size_t Renderer::last_assistant_turn_start(Messages messages) const {
    return static_cast<std::size_t>(last_of(messages, "user") + 1);
}

std::vector<Token> Renderer::build_generation_prompt(Messages messages, std::string_view role,
                                                     std::string_view prefill) const {
    auto out = bos_tokens();
    auto const last_user = last_of(messages, "user");
    auto const turn_start = last_assistant_turn_start(messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        auto const rendered =
            render_message(messages[i], context_of(messages, i, last_user, turn_start));
        put_tokens(out, rendered.header);
        put_tokens(out, rendered.output);
    }
    RenderContext const context{.index = messages.size(),
                                .is_last = true,
                                .previous = messages.empty() ? nullptr : &messages.back(),
                                .last_user_index = last_user,
                                .in_last_assistant_turn = true};
    put_tokens(out, generation_suffix(role, context));
    if (!prefill.empty()) put_tokens(out, encode(prefill));
    return out;
}

RenderedExample Renderer::build_supervised_example(Messages messages,
                                                   TrainOnWhat train_on_what) const {
    RenderedExample out;
    put_weighted(out, bos_tokens(), false);
    auto const last_user = last_of(messages, "user");
    auto const turn_start =
        last_assistant_turn_start(messages.first(messages.empty() ? 0 : messages.size() - 1));
    for (std::size_t i = 0; i < messages.size(); ++i) {
        check_trainable(messages[i], i, train_on_what);
        auto const context = context_of(messages, i, last_user, turn_start);
        auto const rendered = render_message(messages[i], context);
        put_weighted(out, rendered.header, train_on_what == TrainOnWhat::all_tokens);
        auto const counts = output_is_trained(messages[i], context, train_on_what);
        put_weighted(out, rendered.output, counts);
        if (context.is_last) put_weighted(out, rendered.stop_overlap, counts);
    }
    withhold_prompt(*this, messages, train_on_what, out);
    return out;
}

std::vector<RenderedExample> Renderer::build_supervised_examples(Messages messages,
                                                                 TrainOnWhat train_on_what) const {
    if (has_extension_property()) return {build_supervised_example(messages, train_on_what)};
    std::size_t first = 0;
    switch (train_on_what) {
        case TrainOnWhat::last_assistant_message:
            if (messages.empty()) {
                refuse("build_supervised_examples", "messages", {},
                       "the conversation has no messages; give at least one");
            }
            first = messages.size() - 1;
            break;
        case TrainOnWhat::last_assistant_turn:
            first = last_assistant_turn_start(messages);
            break;
        case TrainOnWhat::all_assistant_messages:
            break;
        default:
            refuse("build_supervised_examples", "train_on_what",
                   std::string{to_string(train_on_what)},
                   "this renderer writes earlier messages differently, so there is one example for "
                   "each message of the assistant, and no prompt for others to follow; train on "
                   "messages of the assistant, or use build_supervised_example");
    }
    std::vector<RenderedExample> out;
    for (auto i = first; i < messages.size(); ++i) {
        if (messages[i].role != "assistant") continue;
        out.push_back(
            build_supervised_example(messages.first(i + 1), TrainOnWhat::last_assistant_message));
    }
    return out;
}

std::vector<Message> Renderer::create_conversation_prefix_with_tools(
    std::span<ToolSpec const> /*tools*/, std::string_view /*system_prompt*/) const {
    refuse("create_conversation_prefix_with_tools", "tools", {},
           "this format has no tool calls; use a renderer that has");
}

std::string Renderer::to_openai_message(Message const& message) const {
    return render::openai_with_tags(message);
}

std::vector<Token> Renderer::normalize_response(std::span<Token const> response) const {
    return {response.begin(), response.end()};
}

Token Renderer::end_of_message(std::span<Token const> /*response*/) const {
    refuse("parse_response_streaming", {}, {},
           "this renderer does not tell the pieces of a response apart; use parse_response");
}

ParsedResponse Renderer::parse_whole(std::span<Token const> response) const {
    return parse_response(response);
}

}  // namespace tinkxx::text
