// A renderer over any chat template. It knows of the template only what it makes of messages.
#include <tinkxx/text/renderer.hpp>

#include "text/errors/refuse.hpp"
#include "text/render/common/characters.hpp"
#include "text/render/parse/parsing.hpp"

#include <utility>

namespace tinkxx::text {

namespace {

// A stretch of the text of a conversation.
struct Stretch {
    std::size_t begin{0};
    std::size_t end{0};
    bool counts{false};
};

class TemplateRenderer final : public Renderer {
public:
    TemplateRenderer(std::shared_ptr<RenderTokenizer const> tokenizer, ChatText chat_text,
                     TemplateRendererOptions options)
        : Renderer{std::move(tokenizer)},
          chat_text_{std::move(chat_text)},
          options_{std::move(options)} {
        if (!chat_text_) {
            text::refuse("make_template_renderer", "chat_text", {},
                         "there is no function from messages to text; give one");
        }
        end_ = options_.end_of_message.empty() ? this->tokenizer().eos()
                                               : this->tokenizer().find(options_.end_of_message);
        if (!end_ && options_.end_of_message.empty()) {
            text::refuse("make_template_renderer", "end_of_message", {},
                         "nothing says where a message ends; give its text, or a tokenizer that "
                         "has an end-of-text token");
        }
    }

    [[nodiscard]] StopSequences stop_sequences() const override {
        if (end_) return {.tokens = {*end_}};
        return {.texts = {options_.end_of_message}};
    }

    /// The message as a conversation of its own.
    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& /*context*/) const override {
        return {.output = encode(chat_text_({&message, 1}, false))};
    }

    [[nodiscard]] std::vector<Token> build_generation_prompt(
        Messages messages, std::string_view role, std::string_view prefill) const override {
        if (role != "assistant") {
            text::refuse("build_generation_prompt", "role", std::string{role},
                         "a chat template introduces messages of the assistant only; use the "
                         "role assistant");
        }
        auto out = encode(chat_text_(messages, true));
        auto const more = prefill.empty() ? std::vector<Token>{} : encode(prefill);
        out.insert(out.end(), more.begin(), more.end());
        return out;
    }

    [[nodiscard]] RenderedExample build_supervised_example(
        Messages messages, TrainOnWhat train_on_what) const override;
    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override;

private:
    [[nodiscard]] bool counts(Messages messages, std::size_t index, TrainOnWhat what) const;
    [[nodiscard]] Stretch stretch_of(Messages messages, std::size_t index,
                                     std::string const& whole) const;

    ChatText chat_text_;
    TemplateRendererOptions options_;
    std::optional<Token> end_{};
};

bool TemplateRenderer::counts(Messages messages, std::size_t index, TrainOnWhat what) const {
    auto const turn = last_assistant_turn_start(messages.first(messages.size() - 1));
    RenderContext const context{.index = index,
                                .is_last = index + 1 == messages.size(),
                                .in_last_assistant_turn = index >= turn};
    return output_is_trained(messages[index], context, what);
}

// Where in the whole text a message stands, without what its prompt supplies.
Stretch TemplateRenderer::stretch_of(Messages messages, std::size_t index,
                                     std::string const& whole) const {
    auto const is_last = index + 1 == messages.size();
    auto const until = is_last ? whole : chat_text_(messages.first(index + 1), false);
    auto const before = index == 0 ? std::string{} : chat_text_(messages.first(index), false);
    auto const prompt =
        messages[index].role == "assistant" ? chat_text_(messages.first(index), true) : before;
    if (!whole.starts_with(until) || (!until.starts_with(prompt) && !until.starts_with(before))) {
        text::refuse("build_supervised_example", "/" + std::to_string(index), {},
                     "the template writes messages differently once others follow, so message " +
                         std::to_string(index) +
                         " does not stand in the text as it was sampled; train on the last "
                         "message only, with one example for each");
    }
    auto const begin = until.starts_with(prompt) ? prompt.size() : before.size();
    auto end = until.size();
    if (!options_.end_of_message.empty()) {  // what follows, such as a line break, nobody samples
        auto const last = until.rfind(options_.end_of_message);
        if (last != std::string::npos && last >= begin) end = last + options_.end_of_message.size();
    }
    return {begin, end, true};
}

RenderedExample TemplateRenderer::build_supervised_example(Messages messages,
                                                           TrainOnWhat train_on_what) const {
    auto const whole = chat_text_(messages, false);
    std::vector<Stretch> stretches;
    std::size_t at = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        auto const customized = train_on_what == TrainOnWhat::customized;
        if (messages[i].trainable.has_value() != customized) {
            text::refuse("build_supervised_example", "/" + std::to_string(i) + "/trainable", {},
                         "with `customized` each message says whether it is trainable, and else "
                         "none does");
        }
        if (train_on_what == TrainOnWhat::all_tokens || !counts(messages, i, train_on_what)) {
            continue;
        }
        auto const found = stretch_of(messages, i, whole);
        if (found.begin > at) stretches.push_back({at, found.begin, false});
        stretches.push_back(found);
        at = found.end;
    }
    stretches.push_back({at, whole.size(), train_on_what == TrainOnWhat::all_tokens});
    RenderedExample out;
    for (auto const& stretch : stretches) {
        auto const tokens =
            encode(std::string_view{whole}.substr(stretch.begin, stretch.end - stretch.begin));
        out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
        out.weights.resize(out.tokens.size(), stretch.counts ? 1.0F : 0.0F);
    }
    return out;
}

ParsedResponse TemplateRenderer::parse_response(std::span<Token const> response) const {
    ParsedResponse out;
    std::string text;
    if (end_) {
        out = render::split_at_stop(response, tokenizer(), *end_);
        text = out.message.content.text();
    } else {
        text = tokenizer().decode(response);
        auto const stops = render::count(text, options_.end_of_message);
        if (stops > 1) render::refuse_stops(stops);
        if (stops == 1) out.termination = ParseTermination::stop_sequence;
        text = text.substr(0, text.find(options_.end_of_message));
        out.message = Message{.role = "assistant", .content = text};
    }
    auto const& open = options_.thinking_open;
    auto const& close = options_.thinking_close;
    if (open.empty() || close.empty() || !render::contains(text, close)) return out;
    // The prompt may have opened the block.
    std::string_view rest{text};
    auto const end = rest.find(close);
    auto thinking = rest.substr(0, end);
    std::string_view before;
    if (auto const begin = thinking.find(open); begin != std::string_view::npos) {
        before = thinking.substr(0, begin);
        thinking = thinking.substr(begin + open.size());
    }
    rest = rest.substr(end + close.size());
    std::vector<ContentPart> parts;
    if (!render::strip(before).empty()) parts.emplace_back(TextPart{std::string{before}});
    thinking = render::strip(thinking);
    if (!thinking.empty()) parts.emplace_back(ThinkingPart{std::string{thinking}});
    parts.emplace_back(TextPart{std::string{render::strip_left(rest, '\n')}});
    out.message.content = std::move(parts);
    return out;
}

}  // namespace

std::unique_ptr<Renderer> make_template_renderer(std::shared_ptr<RenderTokenizer const> tokenizer,
                                                 ChatText chat_text,
                                                 TemplateRendererOptions options) {
    return std::make_unique<TemplateRenderer>(std::move(tokenizer), std::move(chat_text),
                                              std::move(options));
}

}  // namespace tinkxx::text
