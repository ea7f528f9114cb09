#pragma once

#include "text/tokenizer/models/model.hpp"
#include "text/tokenizer/vocabulary/byte_trie.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text {

/// Unigram: the tokens whose scores have the highest sum.
class UnigramModel final : public SpanModel {
public:
    struct Piece {
        std::string text{};
        double score{};
    };
    /// `unknown` may be `no_token`.
    UnigramModel(std::vector<Piece> pieces, std::uint32_t unknown, bool byte_fallback);

    void encode_spans(std::string_view word, Scratch& scratch,
                      std::vector<TokenSpan>& out) const override;
    [[nodiscard]] std::uint32_t find(std::string_view text) const override;
    [[nodiscard]] std::optional<std::string> text(std::uint32_t id) const override;
    [[nodiscard]] std::size_t size() const noexcept override { return pieces_.size(); }
    [[nodiscard]] std::size_t limit() const noexcept override { return pieces_.size(); }

private:
    void find_paths(std::string_view word, Scratch& scratch) const;
    void add_piece(std::string_view word, std::size_t begin, std::size_t end,
                   std::vector<TokenSpan>& out) const;

    std::vector<Piece> pieces_;
    ByteTrie words_;
    std::uint32_t unknown_;
    double unknown_score_;
    std::array<std::uint32_t, 256> fallback_{};
    bool byte_fallback_;
};

}  // namespace tinkxx::text
