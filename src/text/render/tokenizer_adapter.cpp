#include <tinkxx/text/render_tokenizer.hpp>

#include <utility>

namespace tinkxx::text {

namespace {

class TextTokenizerAdapter final : public RenderTokenizer {
public:
    explicit TextTokenizerAdapter(TextTokenizer tokenizer) : tokenizer_{std::move(tokenizer)} {}

    [[nodiscard]] std::vector<Token> encode(std::string_view text,
                                            Specials specials) const override {
        auto const parse = specials == Specials::recognised;
        return tokenizer_.encode(
            text, {.add_special = false,
                   .special_text = parse ? SpecialText::parse : SpecialText::as_text});
    }
    [[nodiscard]] std::string decode(std::span<Token const> tokens) const override {
        return tokenizer_.decode(tokens);
    }
    [[nodiscard]] std::optional<Token> find(std::string_view token) const override {
        return tokenizer_.id_of(token);
    }
    [[nodiscard]] std::optional<std::string> bos() const override {
        auto const token = tokenizer_.bos();
        return token ? tokenizer_.text_of(*token) : std::nullopt;
    }
    [[nodiscard]] std::optional<Token> eos() const override { return tokenizer_.eos(); }

private:
    TextTokenizer tokenizer_;
};

}  // namespace

std::shared_ptr<RenderTokenizer const> for_rendering(TextTokenizer const& tokenizer) {
    return std::make_shared<TextTokenizerAdapter>(tokenizer);
}

}  // namespace tinkxx::text
