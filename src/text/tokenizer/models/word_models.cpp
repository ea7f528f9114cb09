#include "text/tokenizer/models/word_models.hpp"

#include "text/errors/refuse.hpp"
#include "text/unicode/utf8.hpp"

namespace tinkxx::text {

std::uint32_t WordModel::find(std::string_view text) const { return vocabulary_.find(text); }

std::optional<std::string> WordModel::text(std::uint32_t id) const {
    if (!vocabulary_.contains(id)) return std::nullopt;
    return std::string{vocabulary_.text(id)};
}

void WordModel::add_unknown(std::string_view word, std::vector<TokenSpan>& out) const {
    if (unknown_ == no_token) {
        refuse(
            "encode: a word is not in the vocabulary, which has no unknown token; "
            "add model.unk_token to the vocabulary",
            "text", std::string{word});
    }
    out.push_back({.id = static_cast<Token>(unknown_), .begin = 0, .end = word.size()});
}

void WordLevelModel::encode_spans(std::string_view word, Scratch& /*scratch*/,
                                  std::vector<TokenSpan>& out) const {
    auto const id = vocabulary_.find(word);
    if (id == no_token) return add_unknown(word, out);
    out.push_back({.id = static_cast<Token>(id), .begin = 0, .end = word.size()});
}

WordPieceModel::WordPieceModel(Vocabulary vocabulary, std::string const& unknown,
                               std::string_view prefix, std::size_t longest_word)
    : WordModel{std::move(vocabulary), unknown}, longest_word_{longest_word} {
    std::vector<ByteTrie::Word> words;
    words.reserve(vocabulary_.size());
    for (std::uint32_t id = 0; id < vocabulary_.limit(); ++id) {
        if (vocabulary_.contains(id)) words.push_back({.text = vocabulary_.text(id), .value = id});
    }
    words_ = ByteTrie{std::move(words)};
    continued_ = ByteTrie::root;
    for (auto const c : prefix) {
        if (continued_ == ByteTrie::nowhere) break;
        continued_ = words_.child(continued_, static_cast<unsigned char>(c));
    }
}

void WordPieceModel::encode_spans(std::string_view word, Scratch& /*scratch*/,
                                  std::vector<TokenSpan>& out) const {
    auto const before = out.size();
    auto const characters = count_characters(word);
    std::size_t at = 0;
    while (at < word.size() && characters <= longest_word_) {
        auto node = at == 0 ? ByteTrie::root : continued_;
        TokenSpan found{.begin = at, .end = at};
        for (auto end = at; end < word.size() && node != ByteTrie::nowhere;) {
            node = words_.child(node, static_cast<unsigned char>(word[end++]));
            if (node == ByteTrie::nowhere || words_.value(node) == no_token) continue;
            found.id = static_cast<Token>(words_.value(node));
            found.end = end;
        }
        if (found.end == at) break;
        out.push_back(found);
        at = found.end;
    }
    if (at == word.size()) return;
    out.resize(before);
    add_unknown(word, out);
}

}  // namespace tinkxx::text
