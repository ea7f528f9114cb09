#include "text/tokenizer/models/bpe_model.hpp"

#include "text/tokenizer/models/bpe_backtracker.hpp"
#include "text/tokenizer/models/safe_cuts.hpp"
#include "text/tokenizer/models/scratch.hpp"
#include "text/unicode/aligned_text.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <functional>
#include <string>

namespace tinkxx::text {
namespace {

/// Words up to here are merged by looking at all pairs again and again.
constexpr std::size_t short_word = 40;

constexpr std::uint32_t nothing = 0xffffffff;

/// `<0xE4>`, as vocabularies with byte fallback spell a byte.
std::string spelled_byte(unsigned byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    return {'<', '0', 'x', digits[byte >> 4U], digits[byte & 15U], '>'};
}

struct LaterStep {
    bool operator()(MergeStep const& a, MergeStep const& b) const noexcept {
        return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    }
};

}  // namespace

BpeModel::BpeModel(BpeOptions options, Vocabulary vocabulary,
                   std::unordered_map<std::string, std::uint32_t> odd, PairTable pairs)
    : options_{std::move(options)},
      vocabulary_{std::move(vocabulary)},
      odd_{std::move(odd)},
      pairs_{std::move(pairs)} {
    has_affixes_ = !options_.prefix.empty() || !options_.suffix.empty();
    for (std::uint32_t id = 0; id < vocabulary_.limit(); ++id) {
        if (vocabulary_.contains(id))
            longest_token_ = std::max(longest_token_, vocabulary_.length(id));
    }
    for (auto const& [text, id] : odd_) odd_texts_.emplace(id, text);
    for (unsigned byte = 0; byte < 256; ++byte) {
        auto const c = static_cast<char>(byte);
        byte_symbols_[byte] = vocabulary_.find({&c, 1});
        if (byte_symbols_[byte] == no_token) has_all_bytes_ = false;
        fallback_symbols_[byte] = vocabulary_.find(spelled_byte(byte));
    }
}

BpeModel::~BpeModel() = default;

std::uint32_t BpeModel::find(std::string_view text) const {
    if (!options_.byte_level) return vocabulary_.find(text);
    if (auto const found = odd_.find(std::string{text}); found != odd_.end()) return found->second;
    std::string bytes;
    for (char const *p = text.data(), *end = p + text.size(); p < end;) {
        auto const byte = byte_of_character(next_character(p));
        if (byte < 0) return no_token;
        bytes += static_cast<char>(byte);
    }
    return vocabulary_.find(bytes);
}

std::optional<std::string> BpeModel::text(std::uint32_t id) const {
    if (auto const found = odd_texts_.find(id); found != odd_texts_.end()) return found->second;
    if (!vocabulary_.contains(id)) return std::nullopt;
    if (!options_.byte_level) return std::string{vocabulary_.text(id)};
    std::string text;
    for (auto const c : vocabulary_.text(id)) {
        append_utf8(text, character_of_byte(static_cast<unsigned char>(c)));
    }
    return text;
}

std::optional<std::string_view> BpeModel::bytes(std::uint32_t id) const noexcept {
    if (!options_.byte_level || !vocabulary_.contains(id)) return std::nullopt;
    return vocabulary_.text(id);
}

std::size_t BpeModel::size() const noexcept { return vocabulary_.size() + odd_.size(); }

std::size_t BpeModel::limit() const noexcept {
    auto limit = vocabulary_.limit();
    for (auto const& [id, text] : odd_texts_) limit = std::max<std::size_t>(limit, id + 1);
    return limit;
}

void BpeModel::encode(std::string_view word, Scratch& scratch, std::vector<Token>& out) const {
    if (word.size() > WordCache::longest) return encode_new(word, scratch, out);
    add_cached(scratch.words, WordCache::key_of(word), out,
               [&] { encode_new(word, scratch, out); });
}

void BpeModel::encode_new(std::string_view word, Scratch& scratch, std::vector<Token>& out) const {
    if (options_.ignore_merges && word.size() <= longest_token_) {
        if (auto const id = vocabulary_.find(word); id != no_token) {
            out.push_back(static_cast<Token>(id));
            return;
        }
    }
    if (word.size() <= WordCache::longest || has_affixes_) return merge_part(word, scratch, out);
    if (!tables_pay(word.size())) return merge_symbols(word, scratch, out);
    auto const& safe = cuts();
    while (!word.empty()) {
        auto const part = word.substr(0, safe.next(word));
        encode_part(part, scratch, out);
        word.remove_prefix(part.size());
    }
}

void BpeModel::encode_part(std::string_view part, Scratch& scratch, std::vector<Token>& out) const {
    if (part.size() > WordCache::longest) return merge_part(part, scratch, out);
    // A part is always merged, where a word may be taken as it is.
    constexpr std::uint64_t part_mark = 0x40;
    auto key = WordCache::key_of(part);
    if (options_.ignore_merges) key.size |= part_mark;
    add_cached(scratch.words, key, out, [&] { merge_part(part, scratch, out); });
}

void BpeModel::merge_part(std::string_view part, Scratch& scratch, std::vector<Token>& out) const {
    if (options_.byte_level && has_all_bytes_) {
        if (part.size() <= WordCache::longest) return encode_short(part, out);
        auto const* const fast = backtracker();
        if (fast != nullptr && fast->encode(part, scratch, out)) return;
        if (part.size() <= short_word) return encode_short(part, out);
    }
    merge_symbols(part, scratch, out);
}

void BpeModel::merge_symbols(std::string_view word, Scratch& scratch,
                             std::vector<Token>& out) const {
    fill_symbols(word, scratch);
    merge(scratch);
    for (auto const id : scratch.ids) out.push_back(static_cast<Token>(id));
}

void BpeModel::encode_short(std::string_view word, std::vector<Token>& out) const {
    std::array<std::uint32_t, short_word> ids;
    std::array<std::uint32_t, short_word> ranks;  // of each symbol and the next
    std::array<std::uint32_t, short_word> merged;
    auto count = word.size();
    for (std::size_t i = 0; i < count; ++i) {
        ids[i] = byte_symbols_[static_cast<unsigned char>(word[i])];
    }
    auto const look_up = [&](std::size_t i) {
        auto const& merge = pairs_.find(ids[i], ids[i + 1]);
        ranks[i] = merge.rank;
        merged[i] = merge.token;
    };
    for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
    while (count > 1) {
        std::size_t best = 0;
        for (std::size_t i = 1; i + 1 < count; ++i) {
            if (ranks[i] < ranks[best]) best = i;
        }
        if (ranks[best] == no_token) break;
        ids[best] = merged[best];
        --count;
        for (auto i = best + 1; i < count; ++i) {
            ids[i] = ids[i + 1];
            ranks[i] = ranks[i + 1];
            merged[i] = merged[i + 1];
        }
        if (best + 1 < count) look_up(best);
        if (best > 0) look_up(best - 1);
    }
    for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<Token>(ids[i]));
}

void BpeModel::encode_spans(std::string_view word, Scratch& scratch,
                            std::vector<TokenSpan>& out) const {
    if (options_.ignore_merges) {
        if (auto const id = vocabulary_.find(word); id != no_token) {
            out.push_back({.id = static_cast<Token>(id), .begin = 0, .end = word.size()});
            return;
        }
    }
    fill_symbols(word, scratch);
    merge(scratch);
    std::size_t at = 0;
    for (std::size_t i = 0; i < scratch.ids.size(); ++i) {
        auto const end = at + scratch.lengths[i];
        out.push_back({.id = static_cast<Token>(scratch.ids[i]), .begin = at, .end = end});
        at = end;
    }
}

void BpeModel::fill_symbols(std::string_view word, Scratch& scratch) const {
    scratch.ids.clear();
    scratch.lengths.clear();
    if (!options_.byte_level) return fill_characters(word, scratch);
    for (auto const c : word) {
        auto const id = byte_symbols_[static_cast<unsigned char>(c)];
        if (id == no_token) continue;  // left out, like any character without a symbol
        scratch.ids.push_back(id);
        scratch.lengths.push_back(1);
    }
}

std::uint32_t BpeModel::symbol_of(std::string_view character, bool first, bool last) const {
    auto const prefixed = !first && !options_.prefix.empty();
    auto const suffixed = last && !options_.suffix.empty();
    if (!prefixed && !suffixed) return vocabulary_.find(character);
    std::string text{prefixed ? options_.prefix : std::string{}};
    text += character;
    if (suffixed) text += options_.suffix;
    return vocabulary_.find(text);
}

void BpeModel::fill_characters(std::string_view word, Scratch& scratch) const {
    auto const add = [&scratch](std::uint32_t id, std::size_t length) {
        scratch.ids.push_back(id);
        scratch.lengths.push_back(static_cast<std::uint32_t>(length));
    };
    std::size_t unknown = 0;  // bytes that wait to become one unknown token
    auto const flush = [&] {
        if (unknown > 0) add(options_.unknown, unknown);
        unknown = 0;
    };
    // With byte fallback the affixes fall back too.
    auto const fall_back = [&](std::string_view character, bool first, bool last) {
        auto text = std::string{first ? std::string_view{} : std::string_view{options_.prefix}};
        text += character;
        if (last) text += options_.suffix;
        auto const known = [this](char c) {
            return fallback_symbols_[static_cast<unsigned char>(c)] != no_token;
        };
        if (!std::ranges::all_of(text, known)) return false;
        for (auto const c : text) add(fallback_symbols_[static_cast<unsigned char>(c)], 1);
        return true;
    };
    for (std::size_t i = 0; i < word.size();) {
        auto const length = utf8_length(static_cast<unsigned char>(word[i]));
        auto const character = word.substr(i, length);
        auto const first = i == 0;
        i += length;
        auto const last = i == word.size();
        if (auto const id = symbol_of(character, first, last); id != no_token) {
            flush();
            add(id, length);
        } else if (options_.byte_fallback && fall_back(character, first, last)) {
            // An unknown token before it comes after it: so it is in the model's own code.
        } else if (options_.unknown != no_token) {
            if (!options_.fuse_unknown) flush();
            unknown += length;
        }
    }
    flush();
}

void BpeModel::merge(Scratch& scratch) const {
    auto& ids = scratch.ids;
    auto& lengths = scratch.lengths;
    auto const count = static_cast<std::uint32_t>(ids.size());
    if (count < 2) return;
    auto& heap = scratch.heap;
    auto& previous = scratch.previous;
    auto& next = scratch.next;
    heap.clear();
    previous.resize(count);
    next.resize(count);
    auto const offer = [&](std::uint32_t left, std::uint32_t right) {
        auto const& merge = pairs_.find(ids[left], ids[right]);
        if (merge.rank == no_token) return false;
        heap.push_back({.rank = merge.rank, .position = left, .token = merge.token});
        return true;
    };
    for (std::uint32_t i = 0; i < count; ++i) {
        previous[i] = i - 1;  // `nothing` for the first
        next[i] = i + 1 < count ? i + 1 : nothing;
        if (i + 1 < count) offer(i, i + 1);
    }
    std::ranges::make_heap(heap, LaterStep{});
    while (!heap.empty()) {
        std::ranges::pop_heap(heap, LaterStep{});
        auto const step = heap.back();
        heap.pop_back();
        auto const left = step.position;
        auto const right = lengths[left] == 0 ? nothing : next[left];
        // The step may be of symbols that have been merged otherwise since.
        if (right == nothing || pairs_.find(ids[left], ids[right]).token != step.token) continue;
        ids[left] = step.token;
        lengths[left] += lengths[right];
        lengths[right] = 0;
        next[left] = next[right];
        if (next[left] != nothing) previous[next[left]] = left;
        if (previous[left] != nothing && offer(previous[left], left)) {
            std::ranges::push_heap(heap, LaterStep{});
        }
        if (next[left] != nothing && offer(left, next[left])) {
            std::ranges::push_heap(heap, LaterStep{});
        }
    }
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (lengths[i] == 0) continue;
        ids[kept] = ids[i];
        lengths[kept++] = lengths[i];
    }
    ids.resize(kept);
    lengths.resize(kept);
}

bool BpeModel::tables_pay(std::size_t word_size) const noexcept {
    constexpr std::size_t enough = std::size_t{128} << 10U;
    if (long_bytes_.load(std::memory_order_relaxed) > enough) return true;
    return long_bytes_.fetch_add(word_size, std::memory_order_relaxed) + word_size > enough;
}

BpeBacktracker const* BpeModel::backtracker() const {
    std::call_once(backtracker_once_, [this] {
        backtracker_ = BpeBacktracker::make(vocabulary_, pairs_, byte_symbols_);
    });
    return backtracker_.get();
}

SafeCuts const& BpeModel::cuts() const {
    std::call_once(cuts_once_, [this] {
        std::vector<std::uint32_t> products;
        products.reserve(pairs_.size());
        for (auto const& merge : pairs_.slots()) {
            if (merge.pair != PairTable::empty) products.push_back(merge.token);
        }
        std::ranges::sort(products);
        products.erase(std::ranges::unique(products).begin(), products.end());
        cuts_ = std::make_unique<SafeCuts const>(vocabulary_, products, !options_.byte_level);
    });
    return *cuts_;
}

}  // namespace tinkxx::text
