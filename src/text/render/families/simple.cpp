// Formats without tools or thinking: role_colon and llama3.
#include "text/render/common/characters.hpp"
#include "text/render/families/families.hpp"
#include "text/render/parse/parsing.hpp"

#include <utility>

namespace tinkxx::text::render {

namespace {

constexpr std::string_view colon_stop = "\n\nUser:";

std::string capitalized(std::string_view role) {
    std::string out{role};
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto& c = out[i];
        if (i == 0 && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        if (i > 0 && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

class RoleColonRenderer final : public Renderer {
public:
    explicit RoleColonRenderer(TokenizerPointer tokenizer) : Renderer{std::move(tokenizer)} {}

    [[nodiscard]] StopSequences stop_sequences() const override {
        return {.texts = {std::string{colon_stop}}};
    }
    [[nodiscard]] bool has_extension_property() const override { return true; }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& /*context*/) const override {
        // The stop text ends in what would introduce the user's next message.
        return {.header = encode(capitalized(message.role) + ":"),
                .output = encode(" " + plain_text(message.content) + "\n\n"),
                .stop_overlap = encode(message.role == "assistant" ? "User:" : "<UNUSED>")};
    }

    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override {
        auto const eos = tokenizer().eos();
        auto const ended = eos && !response.empty() && response.back() == *eos;
        if (ended) response = response.first(response.size() - 1);
        auto const text = tokenizer().decode(response);
        auto const stops = count(text, colon_stop);
        std::string_view content{text};
        content = content.substr(0, content.find(colon_stop));
        if (content.starts_with(' ')) content.remove_prefix(1);
        if (content.ends_with("\n\n")) content.remove_suffix(2);
        auto termination = ParseTermination::malformed;
        if (stops == 0 && ended) termination = ParseTermination::eos;
        if (stops == 1 && !ended) termination = ParseTermination::stop_sequence;
        return {Message{.role = "assistant", .content = content}, termination};
    }

protected:
    [[nodiscard]] std::vector<Token> bos_tokens() const override {
        auto const bos = tokenizer().bos();
        return bos ? encode(*bos) : std::vector<Token>{};
    }
};

class Llama3Renderer final : public Renderer {
public:
    explicit Llama3Renderer(TokenizerPointer tokenizer)
        : Renderer{std::move(tokenizer)}, end_{single_token("<|eot_id|>")} {}

    [[nodiscard]] StopSequences stop_sequences() const override { return {.tokens = {end_}}; }
    [[nodiscard]] bool has_extension_property() const override { return true; }

    [[nodiscard]] RenderedMessage render_message(Message const& message,
                                                 RenderContext const& /*context*/) const override {
        return {.header = encode("<|start_header_id|>" + message.role + "<|end_header_id|>\n\n"),
                .output = encode(plain_text(message.content) + "<|eot_id|>")};
    }

    [[nodiscard]] ParsedResponse parse_response(std::span<Token const> response) const override {
        return split_at_stop(response, tokenizer(), end_);
    }

protected:
    [[nodiscard]] std::vector<Token> bos_tokens() const override {
        return encode("<|begin_of_text|>");
    }

private:
    Token end_;
};

}  // namespace

RendererPointer make_role_colon(TokenizerPointer tokenizer) {
    return std::make_unique<RoleColonRenderer>(std::move(tokenizer));
}

RendererPointer make_llama3(TokenizerPointer tokenizer) {
    return std::make_unique<Llama3Renderer>(std::move(tokenizer));
}

}  // namespace tinkxx::text::render
