#pragma once

#include "text/tokenizer/models/model.hpp"
#include "text/tokenizer/vocabulary/hash.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// The tokens of words that came lately. Words are compared whole, so that no two are confused.
class WordCache {
public:
    static constexpr std::size_t longest = 24;
    static constexpr std::size_t most_tokens = 8;

    struct Key {
        std::array<std::uint64_t, 3> words{};
        std::uint64_t size{};

        bool operator==(Key const&) const = default;
    };

    /// `word` is not empty, and not above `longest`.
    [[nodiscard]] static Key key_of(std::string_view word) noexcept {
        auto const* const p = word.data();
        auto const size = word.size();
        Key key{.size = size};
        if (size <= 8) {
            key.words[0] = load_up_to_8(p, size);
        } else {
            key.words[0] = load64(p);
            if (size > 16) key.words[1] = load64(p + 8);
            key.words[2] = load64(p + size - 8);
        }
        return key;
    }

    [[nodiscard]] static std::size_t place_of(Key const& key) noexcept {
        constexpr std::uint64_t a = 0x9e3779b97f4a7c15U;
        constexpr std::uint64_t b = 0xd6e8feb86659fd93U;
        auto const hash = mix(key.words[0] ^ a, key.words[2] ^ key.size ^ b) ^ key.words[1] * a;
        return hash >> (64U - bits);
    }

    /// Adds the tokens of a word; false if it is not there.
    [[nodiscard]] bool get(Key const& key, std::size_t place, std::vector<Token>& out) noexcept {
        auto const* entry = &entries_[place];
        if (!same(*entry, key)) {
            entry = &entries_[place ^ 1U];
            if (!same(*entry, key)) return false;
        }
        auto const old = out.size();
        out.resize(old + entry->count);
        std::copy_n(entry->tokens.data(), entry->count, out.data() + old);
        return true;
    }

    void put(Key const& key, std::size_t place, std::span<Token const> tokens) noexcept {
        if (tokens.size() > most_tokens) return;
        entries_[place ^ 1U] = entries_[place];
        auto& entry = entries_[place];
        entry.words = key.words;
        entry.size = static_cast<std::uint8_t>(key.size);
        entry.count = static_cast<std::uint8_t>(tokens.size());
        std::ranges::copy(tokens, entry.tokens.begin());
    }

private:
    static constexpr unsigned bits = 15;

    struct alignas(64) Entry {
        std::array<std::uint64_t, 3> words{};
        std::array<Token, most_tokens> tokens{};
        std::uint8_t size{};
        std::uint8_t count{};
    };

    [[nodiscard]] static bool same(Entry const& entry, Key const& key) noexcept {
        return entry.words == key.words && entry.size == key.size;
    }

    std::vector<Entry> entries_ = std::vector<Entry>(std::size_t{1} << bits);
};

/// Adds the tokens of a word of at most `WordCache::longest` bytes: those that are remembered, else
/// those that `make` adds to `out`.
template <class Make>
void add_cached(WordCache& words, WordCache::Key const& key, std::vector<Token>& out,
                Make const& make) {
    auto const place = WordCache::place_of(key);
    if (words.get(key, place, out)) return;
    auto const before = out.size();
    make();
    words.put(key, place, std::span{out}.subspan(before));
}

/// A pair of symbols that may be merged.
struct MergeStep {
    std::uint32_t rank{};
    std::uint32_t position{};
    std::uint32_t token{};
};

/// What was decided about two tokens beside each other.
struct PairVerdict {
    std::uint64_t pair{~std::uint64_t{0}};
    bool valid{};
};

struct Scratch {
    // Symbols of a word.
    std::vector<std::uint32_t> ids;
    std::vector<std::uint32_t> lengths;
    std::vector<std::uint32_t> previous;
    std::vector<std::uint32_t> next;
    std::vector<MergeStep> heap;
    // Backtracking: places that lead nowhere.
    std::vector<std::uint64_t> dead;
    std::vector<PairVerdict> verdicts;
    // Best paths of Unigram.
    struct Path {
        double score{};
        std::size_t from{};
        std::uint32_t id{no_token};
    };
    std::vector<Path> paths;
    std::vector<TokenSpan> spans;
    std::vector<Token> tokens;
    WordCache words;
};

}  // namespace tinkxx::text
