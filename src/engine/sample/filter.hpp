#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tinkxx::engine {

/// How the next token is chosen from the logits.
struct FilterParams {
    /// 0: always the most likely token (the first of several); the others are then ignored.
    double temperature{1.0};
    /// Keeps the tokens whose logit is at least the k-th largest; ≤ 0: off.
    std::int64_t top_k{-1};
    /// Of these, keeps the smallest set of most likely tokens whose probabilities reach this sum,
    /// at least one; 1: off.
    double top_p{1.0};
};

/// The tokens that may be sampled. Reused from call to call, it allocates nothing.
class TokenFilter {
public:
    /// Takes the logits of one position. The result depends on nothing else.
    void apply(std::span<float const> logits, FilterParams const& params);

    /// The token at `u` in [0, 1) of the distribution.
    [[nodiscard]] std::int32_t pick(double u) const;
    /// The tokens that were kept; some may be too unlikely ever to be picked.
    [[nodiscard]] std::vector<std::int32_t> const& tokens() const noexcept { return tokens_; }
    /// The probability of each token of the vocabulary; 0 where it was filtered out.
    [[nodiscard]] std::vector<double> probabilities(std::size_t vocabulary) const;

private:
    void keep_top_p(double top_p);

    std::vector<std::int32_t> tokens_{};
    std::vector<float> weights_{};
    /// Logits or positions to select among.
    std::vector<float> scratch_{};
    std::vector<std::uint32_t> order_{};
    double total_{0};
};

}  // namespace tinkxx::engine
