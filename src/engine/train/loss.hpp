#pragma once

#include <tinkxx/result.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::engine {

enum class LossFn : std::uint8_t { cross_entropy, importance_sampling, ppo, cispo, dro };

/// A loss with its settings. Thresholds bound the ratio exp(p - q) itself.
struct Loss {
    LossFn fn{LossFn::cross_entropy};
    double clip_low{0.8};
    double clip_high{1.2};
    double beta{0.0};

    bool operator==(Loss const&) const = default;
};

/// A loss by the name and settings of a request. Not given: ppo clips to 0.8 … 1.2, cispo to
/// 0 … 4. Fails for an unknown name or setting, and for dro without `beta`.
Result<Loss> make_loss(std::string_view name, std::map<std::string, double> const& config);

/// One sequence and what its tokens are measured against, shifted by the caller already:
/// `targets[i]` is to be predicted after `tokens[0 … i]`.
struct Datum {
    std::vector<std::int32_t> tokens{};
    /// `targets_per_token` for each token, row by row.
    std::vector<std::int32_t> targets{};
    /// More than 1 (soft targets) for cross_entropy only.
    std::size_t targets_per_token{1};
    /// cross_entropy: as many as targets.
    std::vector<float> weights{};
    /// The other losses: one for each token.
    std::vector<float> logprobs{};
    std::vector<float> advantages{};
};

/// Fails unless the datum has what the loss needs, in matching lengths, with tokens of the
/// vocabulary, finite numbers and at most `max_positions` tokens. `index` goes into the message.
Result<void> check(Datum const& datum, Loss const& loss, int vocab_size, int max_positions,
                   std::size_t index);

/// The loss of one token and its derivative by the logprob.
struct TokenLoss {
    double loss{0};
    double slope{0};
};

/// `p` is the learner's logprob of target `index` of the datum (of all its targets in a row).
TokenLoss token_loss(Loss const& loss, Datum const& datum, std::size_t index, double p);

}  // namespace tinkxx::engine
