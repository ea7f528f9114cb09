#include "text/tokenizer/models/bpe_backtracker.hpp"

#include "text/tokenizer/models/scratch.hpp"

#include <algorithm>
#include <limits>

namespace tinkxx::text {
namespace {

constexpr std::size_t verdict_count = 1U << 15U;
constexpr auto no_limit = std::numeric_limits<std::int64_t>::max();

std::uint32_t left_of(PairTable::Merge const& merge) noexcept {
    return static_cast<std::uint32_t>(merge.pair >> 32U);
}
std::uint32_t right_of(PairTable::Merge const& merge) noexcept {
    return static_cast<std::uint32_t>(merge.pair);
}

}  // namespace

std::unique_ptr<BpeBacktracker const> BpeBacktracker::make(
    Vocabulary const& vocabulary, PairTable const& pairs,
    std::array<std::uint32_t, 256> const& bytes) {
    std::unique_ptr<BpeBacktracker> made{new BpeBacktracker{vocabulary, pairs}};
    if (!made->find_origins(bytes)) return nullptr;
    made->find_words(vocabulary);
    return made;
}

bool BpeBacktracker::find_origins(std::array<std::uint32_t, 256> const& bytes) {
    for (auto const id : bytes) {
        origins_[id] = {.left = id, .right = id, .rank = single};
    }
    std::vector<PairTable::Merge> merges;
    merges.reserve(pairs_.size());
    for (auto const& merge : pairs_.slots()) {
        if (merge.pair != PairTable::empty) merges.push_back(merge);
    }
    std::ranges::sort(merges, {}, &PairTable::Merge::rank);
    std::vector<PairTable::Merge> early;  // of parts that were not there yet
    for (auto const& merge : merges) {
        auto const left = left_of(merge);
        auto const right = right_of(merge);
        auto& origin = origins_[merge.token];
        if (origins_[left].rank == unreachable || origins_[right].rank == unreachable) {
            early.push_back(merge);
        } else if (origin.rank == unreachable && can_stand(left, right, merge.rank)) {
            origin.left = left;
            origin.right = right;
            origin.rank = merge.rank;
        } else if (origin.rank == single) {
            return false;  // a byte that is merged from others
        }
    }
    // Such a merge never happens if the bytes of both parts have become something else before the
    // later of the parts is there.
    return std::ranges::none_of(early, [this](PairTable::Merge const& merge) {
        auto const left = origins_[left_of(merge)].rank;
        auto const right = origins_[right_of(merge)].rank;
        if (left == unreachable || right == unreachable) return false;
        auto const made = origins_[merge.token].rank;
        return made == unreachable || made >= std::max(left, right);
    });
}

void BpeBacktracker::find_words(Vocabulary const& vocabulary) {
    std::vector<ByteTrie::Word> words;
    words.reserve(vocabulary.size());
    for (std::uint32_t id = 0; id < origins_.size(); ++id) {
        if (origins_[id].rank == unreachable || !vocabulary.contains(id)) continue;
        origins_[id].length = static_cast<std::uint32_t>(vocabulary.length(id));
        words.push_back({.text = vocabulary.text(id), .value = id});
    }
    words_ = ByteTrie{words};
    for (auto const& word : words) {
        auto node = ByteTrie::root;
        auto shorter = no_token;
        for (auto const c : word.text) {
            node = words_.child(node, static_cast<unsigned char>(c));
            auto const id = words_.value(node);
            if (id != no_token && id != word.value) shorter = id;
        }
        origins_[word.value].shorter = shorter;
    }
}

bool BpeBacktracker::can_stand(std::uint32_t left, std::uint32_t right,
                               std::int64_t limit) const noexcept {
    // Takes the merges of both back, the latest first. Before each, no merge across the border may
    // have been due.
    while (true) {
        auto const& across = pairs_.find(left, right);
        if (across.rank != no_token && across.rank < limit) return false;
        auto const& a = origins_[left];
        auto const& b = origins_[right];
        if (a.rank > b.rank) {
            limit = a.rank;
            left = a.right;
        } else if (b.rank != single) {
            limit = b.rank + 1;  // of equals, the leftmost is merged first
            right = b.left;
        } else {
            return true;
        }
    }
}

bool BpeBacktracker::can_stand(std::uint32_t left, std::uint32_t right,
                               Scratch& scratch) const noexcept {
    auto const pair = PairTable::key(left, right);
    auto const hash = (pair * 0x9e3779b97f4a7c15U ^ pair >> 29U) * 0xd6e8feb86659fd93U;
    auto& verdict = scratch.verdicts[hash >> 32U & (verdict_count - 1)];
    if (verdict.pair != pair) {
        verdict = {.pair = pair, .valid = can_stand(left, right, no_limit)};
    }
    return verdict.valid;
}

std::uint32_t BpeBacktracker::longest(std::string_view text) const noexcept {
    auto found = no_token;
    auto node = ByteTrie::root;
    for (auto const c : text) {
        node = words_.child(node, static_cast<unsigned char>(c));
        if (node == ByteTrie::nowhere) break;
        if (auto const id = words_.value(node); id != no_token) found = id;
    }
    return found;
}

bool BpeBacktracker::encode(std::string_view word, Scratch& scratch,
                            std::vector<Token>& out) const {
    if (scratch.verdicts.empty()) scratch.verdicts.resize(verdict_count);
    auto& dead = scratch.dead;
    dead.assign(word.size() / 64 + 1, 0);
    auto const is_dead = [&dead](std::size_t i) { return (dead[i / 64] >> i % 64 & 1U) != 0; };
    auto const begin = out.size();
    std::size_t at = 0;
    auto token = longest(word);
    while (at < word.size()) {
        auto const last = out.size() > begin ? static_cast<std::uint32_t>(out.back()) : no_token;
        while (token != no_token) {
            auto const end = at + origins_[token].length;
            if (!is_dead(end) && (last == no_token || can_stand(last, token, scratch))) break;
            token = origins_[token].shorter;
        }
        if (token != no_token) {
            out.push_back(static_cast<Token>(token));
            at += origins_[token].length;
            token = longest(word.substr(at));
        } else {
            // Nothing can stand here: the last token must be a shorter one.
            if (last == no_token) return false;
            dead[at / 64] |= std::uint64_t{1} << at % 64;
            out.pop_back();
            at -= origins_[last].length;
            token = origins_[last].shorter;
        }
    }
    return true;
}

}  // namespace tinkxx::text
