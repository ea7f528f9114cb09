#pragma once

#include <tinkxx/types/model_input.hpp>
#include <tinkxx/types/training.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx {

/// Turns text into the tokens of some model, and back. Any thread.
class Tokenizer {
public:
    virtual ~Tokenizer() = default;

    [[nodiscard]] virtual std::vector<Token> encode(std::string_view text) const = 0;
    [[nodiscard]] virtual std::string decode(std::span<Token const> tokens) const = 0;
};

/// For models whose tokens are the bytes of a text, such as tinkxx/tiny.
class ByteTokenizer final : public Tokenizer {
public:
    [[nodiscard]] std::vector<Token> encode(std::string_view text) const override;
    /// Tokens that are no byte, such as the one that ends a text, are left out.
    [[nodiscard]] std::string decode(std::span<Token const> tokens) const override;
};

/// Finds the tokenizer of that id, wherever the caller keeps them. What it throws passes through.
using TokenizerLoader = std::function<std::shared_ptr<Tokenizer const>(TokenizerId const& id)>;

/// Tokenizers by their id, which are loaded when they are first asked for and then kept.
///
/// A cheap handle: copies share what is kept. Every member may be called from any thread; two that
/// ask at once for a tokenizer that is not there may both have it loaded.
class Tokenizers {
public:
    /// How many are kept: those that were asked for last.
    static constexpr std::size_t default_capacity = 32;

    /// Throw `ValidationError` if there is no loader.
    explicit Tokenizers(TokenizerLoader loader);
    Tokenizers(TokenizerLoader loader, std::size_t capacity);

    /// Never null: throws `ValidationError` if the loader gave none.
    [[nodiscard]] std::shared_ptr<Tokenizer const> get(TokenizerId const& id) const;

private:
    class Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace tinkxx
