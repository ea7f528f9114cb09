#pragma once

#include "text/tokenizer/models/model.hpp"
#include "text/tokenizer/vocabulary/byte_trie.hpp"
#include "text/tokenizer/vocabulary/pair_table.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Byte pair encoding in linear time, from left to right: takes the longest token that can stand
/// behind the last one, and goes back if none can.
///
/// Two tokens can stand beside each other if merging the bytes of both gives these two. A sequence
/// in which all neighbours can is what merging the whole text gives, provided that each token is
/// merged later than its parts. Vocabularies of which this does not hold have no backtracker.
class BpeBacktracker {
public:
    /// Null if the merges are of another kind.
    [[nodiscard]] static std::unique_ptr<BpeBacktracker const> make(
        Vocabulary const& vocabulary, PairTable const& pairs,
        std::array<std::uint32_t, 256> const& bytes);

    /// False, with nothing added, if there is no such sequence; no vocabulary is known to do that.
    [[nodiscard]] bool encode(std::string_view word, Scratch& scratch,
                              std::vector<Token>& out) const;

private:
    /// How a token comes about.
    struct Origin {
        std::uint32_t left{no_token};
        std::uint32_t right{no_token};
        std::int64_t rank{unreachable};
        std::uint32_t shorter{no_token};  ///< the longest other token that it begins with
        std::uint32_t length{};
    };
    static constexpr std::int64_t unreachable = -2;
    static constexpr std::int64_t single = -1;  ///< the rank of single bytes

    BpeBacktracker(Vocabulary const& vocabulary, PairTable const& pairs)
        : pairs_{pairs}, origins_(vocabulary.limit()) {}

    [[nodiscard]] bool find_origins(std::array<std::uint32_t, 256> const& bytes);
    void find_words(Vocabulary const& vocabulary);
    [[nodiscard]] bool can_stand(std::uint32_t left, std::uint32_t right,
                                 std::int64_t limit) const noexcept;
    [[nodiscard]] bool can_stand(std::uint32_t left, std::uint32_t right,
                                 Scratch& scratch) const noexcept;
    [[nodiscard]] std::uint32_t longest(std::string_view text) const noexcept;

    PairTable const& pairs_;
    std::vector<Origin> origins_;
    ByteTrie words_;
};

}  // namespace tinkxx::text
