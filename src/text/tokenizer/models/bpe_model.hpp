#pragma once

#include "text/tokenizer/models/model.hpp"
#include "text/tokenizer/vocabulary/pair_table.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tinkxx::text {

class BpeBacktracker;
class SafeCuts;

struct BpeOptions {
    /// Texts are bytes, and the vocabulary spells them as the characters that stand for bytes.
    bool byte_level{false};
    bool fuse_unknown{false};
    bool byte_fallback{false};
    /// Words that are in the vocabulary are not merged from their parts.
    bool ignore_merges{false};
    std::uint32_t unknown{no_token};
    std::string prefix{};  ///< of all symbols of a word but the first
    std::string suffix{};  ///< of the last one
};

/// Byte pair encoding: beginning with single characters, the pair with the lowest rank is merged,
/// the leftmost of equals, until none is left.
class BpeModel final : public Model {
public:
    /// `odd` are tokens of a byte-level vocabulary that are not spelled by its characters; no word
    /// contains them.
    BpeModel(BpeOptions options, Vocabulary vocabulary,
             std::unordered_map<std::string, std::uint32_t> odd, PairTable pairs);
    ~BpeModel() override;

    void encode(std::string_view word, Scratch& scratch, std::vector<Token>& out) const override;
    void encode_spans(std::string_view word, Scratch& scratch,
                      std::vector<TokenSpan>& out) const override;
    [[nodiscard]] std::uint32_t find(std::string_view text) const override;
    [[nodiscard]] std::optional<std::string> text(std::uint32_t id) const override;
    [[nodiscard]] std::size_t size() const noexcept override;
    [[nodiscard]] std::size_t limit() const noexcept override;
    [[nodiscard]] std::optional<std::string_view> bytes(std::uint32_t id) const noexcept override;

private:
    /// A word that is not in the cache.
    void encode_new(std::string_view word, Scratch& scratch, std::vector<Token>& out) const;
    /// Part of a word, whose tokens depend on nothing else.
    void encode_part(std::string_view part, Scratch& scratch, std::vector<Token>& out) const;
    /// The same, without the cache.
    void merge_part(std::string_view part, Scratch& scratch, std::vector<Token>& out) const;
    void encode_short(std::string_view word, std::vector<Token>& out) const;
    /// Any word, without tables.
    void merge_symbols(std::string_view word, Scratch& scratch, std::vector<Token>& out) const;
    void fill_symbols(std::string_view word, Scratch& scratch) const;
    void fill_characters(std::string_view word, Scratch& scratch) const;
    void merge(Scratch& scratch) const;
    [[nodiscard]] std::uint32_t symbol_of(std::string_view character, bool first, bool last) const;
    /// Whether so many long words have come, with one more of that size, that tables pay.
    [[nodiscard]] bool tables_pay(std::size_t word_size) const noexcept;
    [[nodiscard]] BpeBacktracker const* backtracker() const;
    [[nodiscard]] SafeCuts const& cuts() const;

    BpeOptions options_;
    Vocabulary vocabulary_;
    std::unordered_map<std::string, std::uint32_t> odd_;
    std::unordered_map<std::uint32_t, std::string> odd_texts_;
    PairTable pairs_;
    std::array<std::uint32_t, 256> byte_symbols_{};
    std::array<std::uint32_t, 256> fallback_symbols_{};
    bool has_all_bytes_{true};
    bool has_affixes_{false};
    std::size_t longest_token_{0};
    // Made once they pay: that takes as long as to merge some hundred kilobytes without them.
    mutable std::atomic<std::size_t> long_bytes_{0};
    mutable std::once_flag backtracker_once_;
    mutable std::unique_ptr<BpeBacktracker const> backtracker_;
    mutable std::once_flag cuts_once_;
    mutable std::unique_ptr<SafeCuts const> cuts_;
};

}  // namespace tinkxx::text
