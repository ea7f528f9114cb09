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

/// Converts text to the tokens of a model and back. Any thread.
class Tokenizer {
public:
    virtual ~Tokenizer() = default;

    [[nodiscard]] virtual std::vector<Token> encode(std::string_view text) const = 0;
    [[nodiscard]] virtual std::string decode(std::span<Token const> tokens) const = 0;
    /// As `decode`, without special tokens, such as the one that ends a text. By default `decode`.
    [[nodiscard]] virtual std::string decode_text(std::span<Token const> tokens) const {
        return decode(tokens);
    }
};

/// For models whose tokens are bytes, such as tinkxx/tiny.
class ByteTokenizer final : public Tokenizer {
public:
    [[nodiscard]] std::vector<Token> encode(std::string_view text) const override;
    /// Tokens that are not bytes, such as the end-of-text token, are left out.
    [[nodiscard]] std::string decode(std::span<Token const> tokens) const override;
};

/// Loads the tokenizer with this id. Exceptions are passed on.
using TokenizerLoader = std::function<std::shared_ptr<Tokenizer const>(TokenizerId const& id)>;

/// A cache of tokenizers by id, which are loaded on first use.
///
/// A cheap handle: copies share one cache. Every member may be called from any thread; two threads
/// that request the same missing tokenizer at once may both load it.
class Tokenizers {
public:
    /// The number of tokenizers that are kept; the least recently used one is dropped first.
    static constexpr std::size_t default_capacity = 32;

    /// Throws `ValidationError` if there is no loader.
    explicit Tokenizers(TokenizerLoader loader);
    Tokenizers(TokenizerLoader loader, std::size_t capacity);

    /// Never null: throws `ValidationError` if the loader returns null.
    [[nodiscard]] std::shared_ptr<Tokenizer const> get(TokenizerId const& id) const;

private:
    class Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace tinkxx
