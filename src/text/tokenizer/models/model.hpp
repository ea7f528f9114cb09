#pragma once

#include <tinkxx/types/model_input.hpp>

#include "text/tokenizer/vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// A token, and where in its word it comes from.
struct TokenSpan {
    Token id{};
    std::size_t begin{};
    std::size_t end{};
};

class WordCache;

/// What one thread needs while it encodes; kept from one text to the next.
struct Scratch;

/// Turns a word, which the pre-tokenizer has cut, into tokens. Any thread.
class Model {
public:
    Model() = default;
    Model(Model const&) = delete;
    Model& operator=(Model const&) = delete;
    virtual ~Model() = default;

    /// Adds the tokens of a word that is not empty.
    virtual void encode(std::string_view word, Scratch& scratch, std::vector<Token>& out) const = 0;
    /// The same, with places.
    virtual void encode_spans(std::string_view word, Scratch& scratch,
                              std::vector<TokenSpan>& out) const = 0;

    /// As the file spells them.
    [[nodiscard]] virtual std::uint32_t find(std::string_view text) const = 0;
    [[nodiscard]] virtual std::optional<std::string> text(std::uint32_t id) const = 0;
    [[nodiscard]] virtual std::size_t size() const noexcept = 0;
    [[nodiscard]] virtual std::size_t limit() const noexcept = 0;

    /// The bytes of a token, if texts are its bytes and not the characters that stand for them.
    [[nodiscard]] virtual std::optional<std::string_view> bytes(std::uint32_t id) const noexcept {
        (void)id;
        return std::nullopt;
    }
};

/// A model that finds tokens only together with their places.
class SpanModel : public Model {
public:
    void encode(std::string_view word, Scratch& scratch, std::vector<Token>& out) const override;
};

}  // namespace tinkxx::text
