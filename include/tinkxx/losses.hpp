#pragma once

#include <tinkxx/types/training.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Ready-made losses for `TrainingClient::forward_backward_custom`, each with an analytic gradient.
/// For each token, p is the log-probability of the target, and w the input `weights` (1 if a datum
/// has none). When called, all throw `ValidationError` if a datum lacks an input, or if an input
/// and the log-probabilities differ in length.
namespace tinkxx::losses {

/// The sum of -w * p, as the service's `cross_entropy`.
[[nodiscard]] CustomLoss weighted_cross_entropy();

struct DpoOptions {
    double beta{0.1};
    /// The name of the loss input with the log-probabilities of the frozen reference model.
    std::string reference{"reference_logprobs"};
};
/// Direct preference optimization, averaged over pairs. Data 0 and 1 are a pair, 2 and 3 the next;
/// the first datum of each pair is the preferred one. The loss of a pair is -log sigmoid(beta * (a
/// - b)), where a and b are the sums of w * (p - reference) of the two. Metrics: `dpo_loss`,
/// `accuracy`, `margin`, `chosen_reward`, `rejected_reward`.
[[nodiscard]] CustomLoss dpo(DpoOptions options = DpoOptions());

/// How the divergence is estimated from the sampled token, with d = p - reference.
enum class KlEstimate : std::uint8_t {
    k1,  ///< d: unbiased, high variance
    k2,  ///< d * d / 2
    k3,  ///< exp(-d) - 1 + d: unbiased, never negative
};
struct KlOptions {
    double coefficient{1};
    KlEstimate estimate{KlEstimate::k3};
    std::string reference{"reference_logprobs"};
};
/// The sum of coefficient * w * estimate. Metric: `kl`, the weighted mean of the estimate.
[[nodiscard]] CustomLoss kl_to_reference(KlOptions options = KlOptions());

/// Rewards high entropy: the sum of -coefficient * w * entropy. If the targets are a matrix, the
/// entropy of a row is the sum of -exp(p) * p over its cells, and w is the row's first weight. If
/// they are a list, the entropy is estimated by -p, which is unbiased for tokens that the model
/// sampled itself. Metric: `entropy`, the weighted mean.
[[nodiscard]] CustomLoss entropy_bonus(double coefficient = 1);

struct PpoClipOptions {
    /// Bounds of the ratio.
    double clip_low{0.8};
    double clip_high{1.2};
};
/// Sum of w * -min(r * A, clip(r) * A), with r = exp(p - `logprobs`) and A = `advantages`. Metrics:
/// `ratio`, `clip_fraction`.
[[nodiscard]] CustomLoss ppo_clip(PpoClipOptions options = PpoClipOptions());

/// A part of a sum.
struct Term {
    CustomLoss loss{};
    double weight{1};
};
/// The weighted sum of losses and of their gradients. Metrics keep their names; if two are equal,
/// the later one is kept.
[[nodiscard]] CustomLoss sum(std::vector<Term> terms);

struct GradientCheckOptions {
    /// The step by which each log-probability is changed in both directions, multiplied by its
    /// absolute value if that is more than 1.
    float step{1e-3F};
    /// The tolerated difference, relative to the larger of the two derivatives and 1.
    double tolerance{1e-3};
    /// The maximum number of derivatives to compare, spread evenly; 0: all.
    std::size_t most{0};
};
/// Where a gradient differs most from the finite differences of its loss.
struct GradientCheck {
    bool ok{true};
    std::size_t compared{0};
    double worst{0};
    std::size_t datum{0};
    std::size_t index{0};
    double analytic{0};
    double numeric{0};

    bool operator==(GradientCheck const&) const = default;
};
/// Compares the gradient of a loss with central differences of its value. Throws `ValidationError`
/// if the gradient does not have the shape of the log-probabilities.
[[nodiscard]] GradientCheck check_gradient(
    CustomLoss const& loss, std::span<Datum const> data, std::span<TensorData const> logprobs,
    GradientCheckOptions const& options = GradientCheckOptions());

}  // namespace tinkxx::losses
