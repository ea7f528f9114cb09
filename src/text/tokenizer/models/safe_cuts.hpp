#pragma once

#include "text/tokenizer/vocabulary/vocabulary.hpp"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Where a word may be cut before it is merged, because no token reaches over the cut.
///
/// If two characters stand beside each other in no token that merges make, no merge joins them,
/// whatever is around. Most neighbours in a Chinese sentence are such, and all spaces of a text
/// that is merged as one word: its parts are short then, and found in the cache of words.
class SafeCuts {
public:
    /// `products` are the ids that merges make. With `known_only`, characters that are no token of
    /// the vocabulary are not cut off: what becomes of them depends on what is beside them.
    SafeCuts(Vocabulary const& vocabulary, std::vector<std::uint32_t> const& products,
             bool known_only);

    /// Where the first part of a text in valid UTF-8 ends.
    [[nodiscard]] std::size_t next(std::string_view text) const noexcept;

private:
    static constexpr char32_t direct = 0x20000;
    enum Flag : std::uint8_t { known = 1, joins_behind = 2, joins_before = 4 };

    void add_token(std::string_view text);
    void add_border(std::string_view text, std::size_t at);
    void add_pair(char32_t left, char32_t right);
    [[nodiscard]] bool may_cut(char32_t left, char32_t right, unsigned char left_byte,
                               unsigned char right_byte) const noexcept;
    [[nodiscard]] bool has_pair(char32_t left, char32_t right) const noexcept;

    std::vector<std::uint8_t> flags_;
    std::bitset<128 * 128> ascii_pairs_;
    std::vector<std::uint64_t> pairs_;  // open addressing; 0 is empty
    std::size_t pair_count_{0};
    std::bitset<std::size_t{256} * 256> byte_pairs_;  // of parts of characters
};

}  // namespace tinkxx::text
