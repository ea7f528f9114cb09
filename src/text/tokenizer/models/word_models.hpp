#pragma once

#include "text/tokenizer/models/model.hpp"
#include "text/tokenizer/vocabulary/byte_trie.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// What WordPiece and WordLevel share: a vocabulary with a token for what is not in it.
class WordModel : public SpanModel {
public:
    WordModel(Vocabulary vocabulary, std::string const& unknown)
        : vocabulary_{std::move(vocabulary)}, unknown_{vocabulary_.find(unknown)} {}

    [[nodiscard]] std::uint32_t find(std::string_view text) const override;
    [[nodiscard]] std::optional<std::string> text(std::uint32_t id) const override;
    [[nodiscard]] std::size_t size() const noexcept override { return vocabulary_.size(); }
    [[nodiscard]] std::size_t limit() const noexcept override { return vocabulary_.limit(); }

protected:
    void add_unknown(std::string_view word, std::vector<TokenSpan>& out) const;

    Vocabulary vocabulary_;  // NOLINT: of our own classes only
    std::uint32_t unknown_;  // NOLINT
};

/// One token a word.
class WordLevelModel final : public WordModel {
public:
    using WordModel::WordModel;
    void encode_spans(std::string_view word, Scratch& scratch,
                      std::vector<TokenSpan>& out) const override;
};

/// The longest token that the rest of a word begins with, again and again; one unknown token for
/// the whole word if that does not reach its end.
class WordPieceModel final : public WordModel {
public:
    WordPieceModel(Vocabulary vocabulary, std::string const& unknown, std::string_view prefix,
                   std::size_t longest_word);
    void encode_spans(std::string_view word, Scratch& scratch,
                      std::vector<TokenSpan>& out) const override;

private:
    std::size_t longest_word_;  // in characters
    ByteTrie words_;
    ByteTrie::Node continued_;  // where tokens begin that are not the first of their word
};

}  // namespace tinkxx::text
