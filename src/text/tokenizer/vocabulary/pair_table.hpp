#pragma once

#include "text/tokenizer/vocabulary/vocabulary.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tinkxx::text {

/// Which pairs of tokens are merged, when, and into what.
class PairTable {
public:
    struct Merge {
        std::uint64_t pair{empty};
        std::uint32_t rank{no_token};
        std::uint32_t token{no_token};
    };

    [[nodiscard]] static std::uint64_t key(std::uint32_t left, std::uint32_t right) noexcept {
        return static_cast<std::uint64_t>(left) << 32U | right;
    }

    void reserve(std::size_t count) { grow(std::bit_ceil(count + count / 2 + 16)); }

    /// The last of several merges of one pair holds.
    void add(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t token) {
        if ((size_ + 1) * 3 > merges_.size() * 2) grow(merges_.empty() ? 16 : merges_.size() * 2);
        auto& slot = place(key(left, right));
        if (slot.pair == empty) ++size_;
        slot = {.pair = key(left, right), .rank = rank, .token = token};
    }

    /// Lets the memory come that `add` is going to need.
    void prepare(std::uint32_t left, std::uint32_t right) const noexcept {
        if (!merges_.empty()) __builtin_prefetch(&merges_[slot_of(key(left, right))], 1);
    }

    /// A merge of rank `no_token` if the pair is not merged.
    [[nodiscard]] Merge const& find(std::uint32_t left, std::uint32_t right) const noexcept {
        static constexpr Merge none{};
        if (merges_.empty()) return none;
        auto const wanted = key(left, right);
        auto const mask = merges_.size() - 1;
        for (auto at = slot_of(wanted);; at = (at + 1) & mask) {
            auto const& merge = merges_[at];
            if (merge.pair == wanted) return merge;
            if (merge.pair == empty) return none;
        }
    }

    [[nodiscard]] std::vector<Merge> const& slots() const noexcept { return merges_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    static constexpr std::uint64_t empty = ~std::uint64_t{0};

private:
    [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const noexcept {
        return (pair * 0x9e3779b97f4a7c15U ^ pair >> 29U) * 0xd6e8feb86659fd93U >> shift_;
    }
    [[nodiscard]] Merge& place(std::uint64_t pair) noexcept {
        auto const mask = merges_.size() - 1;
        auto at = slot_of(pair);
        while (merges_[at].pair != empty && merges_[at].pair != pair) at = (at + 1) & mask;
        return merges_[at];
    }
    void grow(std::size_t slots) {
        auto old = std::vector<Merge>(slots);
        old.swap(merges_);
        shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
        for (auto const& merge : old) {
            if (merge.pair != empty) place(merge.pair) = merge;
        }
    }

    std::vector<Merge> merges_;
    std::size_t size_{0};
    unsigned shift_{64};
};

}  // namespace tinkxx::text
