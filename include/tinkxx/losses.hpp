#pragma once

#include <tinkxx/types/training.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Ready-made losses for `TrainingClient::forward_backward_custom`, each with its gradient worked
/// out by hand. Per token, p is the log-probability that the model gives to the target, w the
/// input `weights` (1 if a datum has none). All throw `ValidationError` from the call if a datum
/// lacks an input or has one of another length than its log-probabilities.
namespace tinkxx::losses {

/// Sum of -w * p: what the service's `cross_entropy` is.
[[nodiscard]] CustomLoss weighted_cross_entropy();

struct DpoOptions {
    double beta{0.1};
    /// The loss input with the log-probabilities of the frozen reference model.
    std::string reference{"reference_logprobs"};
};
/// Direct preference optimization, mean over pairs. Data 0 and 1 are a pair, 2 and 3 the next; the
/// first of each is the better one. A pair has the loss -log sigmoid(beta * (a - b)), where a and b
/// are the sums of w * (p - reference) of the two. Metrics: `dpo_loss`, `accuracy`, `margin`,
/// `chosen_reward`, `rejected_reward`.
[[nodiscard]] CustomLoss dpo(DpoOptions options = DpoOptions());

/// How the divergence is estimated from the one token that was drawn, with d = p - reference.
enum class KlEstimate : std::uint8_t {
    k1,  ///< d: no bias, much noise
    k2,  ///< d * d / 2
    k3,  ///< exp(-d) - 1 + d: no bias, never negative
};
struct KlOptions {
    double coefficient{1};
    KlEstimate estimate{KlEstimate::k3};
    std::string reference{"reference_logprobs"};
};
/// Sum of coefficient * w * estimate. Metric: `kl`, the mean estimate by weight.
[[nodiscard]] CustomLoss kl_to_reference(KlOptions options = KlOptions());

/// Rewards a model for being undecided: the sum of -coefficient * w * entropy. Where the targets
/// are a matrix, the entropy of a row is the sum of -exp(p) * p over its cells, and w its first
/// weight; where they are a list, it is estimated by -p, which is right in the mean for tokens that
/// the model drew itself. Metric: `entropy`, the mean by weight.
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
/// The weighted sum of losses, gradients and all. Metrics keep their names; where two have the
/// same, the later one stays.
[[nodiscard]] CustomLoss sum(std::vector<Term> terms);

struct GradientCheckOptions {
    /// How far each log-probability is moved either way, times its size if that is more than 1.
    float step{1e-3F};
    /// The largest difference that is fine, relative to the larger of the two derivatives and 1.
    double tolerance{1e-3};
    /// At most so many derivatives are compared, spread evenly; 0: all.
    std::size_t most{0};
};
/// Where a gradient differs most from finite differences of its loss.
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
/// Compares the gradient that a loss gives with central differences of its value. Throws
/// `ValidationError` if the gradient has another form than the log-probabilities.
[[nodiscard]] GradientCheck check_gradient(
    CustomLoss const& loss, std::span<Datum const> data, std::span<TensorData const> logprobs,
    GradientCheckOptions const& options = GradientCheckOptions());

}  // namespace tinkxx::losses
