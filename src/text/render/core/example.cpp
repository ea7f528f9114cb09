// From examples to data, and to what people look at.
#include <tinkxx/text/renderer.hpp>

#include "text/errors/refuse.hpp"
#include "text/render/common/characters.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::text {

namespace {

enum class Mark { ignored, counts, against };

Mark mark_of(float weight) {
    if (weight == 0) return Mark::ignored;
    return weight < 0 ? Mark::against : Mark::counts;
}

// Control characters as pictures, so that a text cannot tell a terminal to do something.
std::string shown_text(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        auto const found = render::decode_at(text, at);
        if (found.code < 0x20 && found.code != '\n') {
            append_utf8(out, 0x2400 + found.code);
        } else if (found.code == 0x7f) {
            append_utf8(out, 0x2421);
        } else if (found.code >= 0x80 && found.code < 0xa0) {
            append_utf8(out, 0xfffd);
        } else {
            append_utf8(out, found.code);
        }
        at += found.size;
    }
    return out;
}

std::string marked(std::string const& text, Mark mark, bool ansi) {
    if (!ansi) {
        if (mark == Mark::ignored) return text;
        return mark == Mark::counts ? "【" + text + "】" : "〖" + text + "〗";
    }
    std::string_view const colour = mark == Mark::counts    ? "\x1b[32m"
                                    : mark == Mark::ignored ? "\x1b[33m"
                                                            : "\x1b[31m";
    // Each line on its own: what pages through a text loses colours at line ends.
    std::string out;
    std::string_view rest{text};
    while (!rest.empty()) {
        auto const size = std::min(rest.find('\n'), rest.size());
        if (size > 0) out.append(colour).append(rest.substr(0, size)).append("\x1b[0m");
        if (size < rest.size()) out += '\n';
        rest.remove_prefix(std::min(size + 1, rest.size()));
    }
    return out;
}

// The text of tokens, with a bar wherever a token ends at the end of a character.
std::string bounded_text(std::span<Token const> tokens, RenderTokenizer const& tokenizer) {
    std::string out;
    std::size_t from = 0;
    for (std::size_t end = 1; end <= tokens.size(); ++end) {
        auto const text = tokenizer.decode(tokens.subspan(from, end - from));
        if (text.ends_with("\xef\xbf\xbd") && end < tokens.size() && end - from < 8) continue;
        if (!out.empty()) out += "│";
        out += shown_text(text);
        from = end;
    }
    return out;
}

void check_lengths(std::string_view operation, RenderedExample const& example) {
    if (example.tokens.size() == example.weights.size()) return;
    text::refuse(operation, "weights", std::to_string(example.weights.size()),
                 "there are " + std::to_string(example.weights.size()) + " weights for " +
                     std::to_string(example.tokens.size()) + " tokens; give one for each");
}

std::vector<float> numbers_of(Datum const& datum, std::string_view name) {
    auto const found = datum.loss_fn_inputs.find(name);
    if (!found) {
        text::refuse(
            "show_datum", std::string{name}, {},
            "the datum has no " + std::string{name} + "; give one that was made for cross_entropy");
    }
    auto const dense = found->sparse() ? to_dense(to_tensor_data(*found)) : to_tensor_data(*found);
    auto const view = tinkxx::view(dense);
    std::vector<float> out;
    std::visit(
        [&out](auto const& numbers) {
            for (auto const number : numbers) out.push_back(static_cast<float>(number));
        },
        view.data);
    return out;
}

Token last_target(Datum const& datum) {
    auto const found = datum.loss_fn_inputs.find("target_tokens");
    if (found) {
        auto const* numbers = std::get_if<std::span<std::int64_t const>>(&found->data);
        if (numbers != nullptr && !numbers->empty() && !found->sparse()) {
            return static_cast<Token>(numbers->back());
        }
    }
    text::refuse("show_datum", "target_tokens", {},
                 "the datum has no target_tokens; give one that was made for cross_entropy");
}

}  // namespace

Datum to_datum(RenderedExample const& example, ConversationDatumOptions const& options) {
    check_lengths("to_datum", example);
    std::span<Token const> tokens{example.tokens};
    if (options.max_length) {
        auto const most = static_cast<std::size_t>(std::max<std::int64_t>(*options.max_length, 0));
        tokens = tokens.first(std::min(tokens.size(), most));
    }
    if (tokens.size() < 2) {
        text::refuse("to_datum", "tokens", std::to_string(tokens.size()),
                     "there are " + std::to_string(tokens.size()) +
                         " tokens; two are needed, one to read and one to predict");
    }
    std::vector<float> weights{
        example.weights.begin() + 1,
        example.weights.begin() + static_cast<std::ptrdiff_t>(tokens.size())};
    if (options.reduction == ConversationDatumOptions::Reduction::mean) {
        float total = 0;
        for (auto const weight : weights) total += weight;
        if (total > 0) {
            for (auto& weight : weights) weight /= total;
        }
    }
    Datum out;
    out.model_input = ModelInput::from_tokens({tokens.begin(), tokens.end() - 1});
    out.loss_fn_inputs.set("target_tokens",
                           std::vector<std::int64_t>(tokens.begin() + 1, tokens.end()));
    out.loss_fn_inputs.set("weights", std::move(weights));
    return out;
}

std::string show_example(RenderedExample const& example, RenderTokenizer const& tokenizer,
                         ExampleTextOptions const& options) {
    check_lengths("show_example", example);
    std::string out;
    std::span<Token const> const tokens{example.tokens};
    for (std::size_t from = 0; from < tokens.size();) {
        auto const mark = mark_of(example.weights[from]);
        auto end = from + 1;
        while (end < tokens.size() && mark_of(example.weights[end]) == mark) ++end;
        // All of a run at once, since tokens may be parts of characters.
        auto const run = tokens.subspan(from, end - from);
        out += marked(
            options.token_bounds ? bounded_text(run, tokenizer) : shown_text(tokenizer.decode(run)),
            mark, options.ansi);
        from = end;
    }
    return out;
}

std::string show_datum(Datum const& datum, RenderTokenizer const& tokenizer,
                       ExampleTextOptions const& options) {
    RenderedExample example;
    example.tokens = datum.model_input.to_tokens();
    example.tokens.push_back(last_target(datum));
    example.weights = numbers_of(datum, "weights");
    example.weights.insert(example.weights.begin(), 0.0F);
    check_lengths("show_datum", example);
    return show_example(example, tokenizer, options);
}

}  // namespace tinkxx::text

namespace tinkxx::data {

Datum from_conversation(text::Renderer const& renderer, std::span<text::Message const> messages,
                        text::ConversationDatumOptions const& options) {
    return to_datum(renderer.build_supervised_example(messages, options.train_on_what), options);
}

}  // namespace tinkxx::data
