#include "text/tokenizer/models/unigram_model.hpp"

#include "text/errors/refuse.hpp"
#include "text/tokenizer/models/scratch.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace tinkxx::text {
namespace {

/// By how much an unknown character is worse than the worst piece.
constexpr double unknown_penalty = 10.0;
constexpr auto no_place = std::numeric_limits<std::size_t>::max();

std::string byte_piece(unsigned byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    return {'<', '0', 'x', digits[byte >> 4U], digits[byte & 15U], '>'};
}

/// Of several pieces with one text, the last has its id.
ByteTrie make_trie(std::vector<UnigramModel::Piece> const& pieces) {
    std::unordered_map<std::string_view, std::uint32_t> last;
    last.reserve(pieces.size());
    for (std::uint32_t id = 0; id < pieces.size(); ++id) last[pieces[id].text] = id;
    std::vector<ByteTrie::Word> words;
    words.reserve(last.size());
    for (auto const& [text, id] : last) words.push_back({.text = text, .value = id});
    return ByteTrie{std::move(words)};
}

}  // namespace

UnigramModel::UnigramModel(std::vector<Piece> pieces, std::uint32_t unknown, bool byte_fallback)
    : pieces_{std::move(pieces)},
      words_{make_trie(pieces_)},
      unknown_{unknown},
      byte_fallback_{byte_fallback} {
    auto lowest = std::numeric_limits<double>::infinity();
    for (auto const& piece : pieces_) lowest = std::min(lowest, piece.score);
    unknown_score_ = lowest - unknown_penalty;
    for (unsigned byte = 0; byte < 256; ++byte) fallback_[byte] = find(byte_piece(byte));
}

std::uint32_t UnigramModel::find(std::string_view text) const {
    auto node = ByteTrie::root;
    for (auto const c : text) {
        node = words_.child(node, static_cast<unsigned char>(c));
        if (node == ByteTrie::nowhere) return no_token;
    }
    return words_.value(node);
}

std::optional<std::string> UnigramModel::text(std::uint32_t id) const {
    if (id >= pieces_.size()) return std::nullopt;
    return pieces_[id].text;
}

void UnigramModel::find_paths(std::string_view word, Scratch& scratch) const {
    auto& paths = scratch.paths;
    paths.assign(word.size() + 1, {.score = 0, .from = no_place});
    auto const offer = [&](std::size_t from, std::size_t to, double score, std::uint32_t id) {
        auto& path = paths[to];
        if (path.from != no_place && score <= path.score) return;
        path = {.score = score, .from = from, .id = id};
    };
    for (std::size_t at = 0; at < word.size();) {
        auto const here = paths[at].score;
        auto const length = utf8_length(static_cast<unsigned char>(word[at]));
        auto known = false;
        auto node = ByteTrie::root;
        for (auto end = at; end < word.size();) {
            node = words_.child(node, static_cast<unsigned char>(word[end++]));
            if (node == ByteTrie::nowhere) break;
            auto const id = words_.value(node);
            if (id == no_token) continue;
            offer(at, end, pieces_[id].score + here, id);
            known = known || end - at == length;
        }
        if (!known) {
            auto const score = unknown_score_ + here;
            auto const& path = paths[at + length];
            if (unknown_ == no_token && (path.from == no_place || score > path.score)) {
                refuse(
                    "encode: a character is not in the vocabulary, which has no unknown token; "
                    "add model.unk_id to the tokenizer.json",
                    "text", std::string{word.substr(at, length)});
            }
            offer(at, at + length, score, unknown_);
        }
        at += length;
    }
}

void UnigramModel::add_piece(std::string_view word, std::size_t begin, std::size_t end,
                             std::vector<TokenSpan>& out) const {
    auto const text = word.substr(begin, end - begin);
    auto const add = [&](std::uint32_t id) {
        out.push_back({.id = static_cast<Token>(id), .begin = begin, .end = end});
    };
    if (auto const id = find(text); id != no_token) return add(id);
    auto const byte_token = [this](char c) { return fallback_[static_cast<unsigned char>(c)]; };
    if (byte_fallback_ && std::ranges::none_of(
                              text, [](std::uint32_t id) { return id == no_token; }, byte_token)) {
        for (auto const c : text) add(byte_token(c));
        return;
    }
    add(unknown_);
}

void UnigramModel::encode_spans(std::string_view word, Scratch& scratch,
                                std::vector<TokenSpan>& out) const {
    find_paths(word, scratch);
    auto& paths = scratch.paths;
    // The path from its end; turned around by keeping where each place goes to.
    for (auto at = word.size(), to = no_place; at != no_place;) {
        auto const from = at == 0 ? no_place : paths[at].from;
        paths[at].from = to;
        to = at;
        at = from;
    }
    for (std::size_t at = 0; at < word.size();) {
        auto end = paths[at].from;
        // Unknown characters beside each other become one token.
        if (paths[end].id == unknown_) {
            while (end < word.size() && paths[paths[end].from].id == unknown_)
                end = paths[end].from;
        }
        add_piece(word, at, end, out);
        at = end;
    }
}

}  // namespace tinkxx::text
