#include <tinkxx/text/render_tokenizer.hpp>

#include <utility>

namespace tinkxx::text {

namespace {

class FullTokenizer final : public RenderTokenizer {
public:
    explicit FullTokenizer(TextTokenizer tokenizer) : tokenizer_{std::move(tokenizer)} {}

    [[nodiscard]] std::vector<Token> encode(std::string_view text,
                                            Specials specials) const override {
        return tokenizer_.encode(
            text, {.add_special = false,
                   .special_text = specials == Specials::recognised ? SpecialText::parse
                                                                    : SpecialText::as_text});
    }

    [[nodiscard]] std::string decode(std::span<Token const> tokens) const override {
        return tokenizer_.decode(tokens);
    }

    [[nodiscard]] std::optional<Token> find(std::string_view token) const override {
        return tokenizer_.id_of(token);
    }

    [[nodiscard]] std::optional<std::string> bos() const override {
        auto const id = tokenizer_.bos();
        return id ? tokenizer_.text_of(*id) : std::nullopt;
    }

    [[nodiscard]] std::optional<Token> eos() const override { return tokenizer_.eos(); }

private:
    TextTokenizer tokenizer_;
};

}  // namespace

std::shared_ptr<RenderTokenizer const> make_render_tokenizer(TextTokenizer tokenizer) {
    return std::make_shared<FullTokenizer>(std::move(tokenizer));
}

}  // namespace tinkxx::text
