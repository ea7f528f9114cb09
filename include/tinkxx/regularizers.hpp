#pragma once

#include <tinkxx/types/training.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

/// Penalties that are added to a custom loss.
namespace tinkxx {

/// A penalty: its value, and its derivatives with respect to the log-probabilities of each datum. A
/// function that may take long should check `stop` regularly and return when asked.
using Regularizer = std::function<CustomLossValue(
    std::span<Datum const> data, std::span<TensorData const> logprobs, std::stop_token stop)>;

struct RegularizerSpec {
    /// A unique name, which is the prefix of its metrics.
    std::string name{};
    /// 0 or more.
    double weight{1};
    Regularizer fn{};
    /// Whether it may run in parallel with the others, on another thread.
    bool async{true};
};

struct RegularizerOptions {
    /// The number of penalties that run in parallel; 0: the number of processors.
    unsigned parallel{0};
    /// The time limit of each penalty. If one takes longer, the whole loss fails, and the others
    /// are asked to stop.
    std::chrono::milliseconds time_limit{std::chrono::seconds{30}};
    /// Whether the metrics include the gradient norms.
    bool grad_norms{true};
    /// The clock for time limits. Empty: the monotonic clock.
    std::function<std::chrono::nanoseconds()> now{};
};

/// base + the sum of weight * penalty. Metrics: those of `base`, `loss_total`, `base_loss`,
/// `regularizer_total`, `total_grad_norm`, and for each penalty `<name>/value`, `/weight`,
/// `/contribution`, `/grad_norm`, `/grad_norm_weighted` and its own metrics. If penalties fail, the
/// loss fails with the error of the first of them, in their order. Throws `ValidationError` for an
/// invalid spec.
[[nodiscard]] CustomLoss with_regularizers(CustomLoss base, std::vector<RegularizerSpec> specs,
                                           RegularizerOptions options = RegularizerOptions());

namespace regularizers {

/// What a penalty is applied to: x, the concatenated log-probabilities of all data.
enum class On : std::uint8_t {
    logprobs,
    probabilities,  ///< exp(x)
};
enum class Reduce : std::uint8_t { sum, mean };

/// Common to all norm penalties. `input` names a loss input to use instead of x; its derivatives
/// with respect to x are 0.
struct SizeOptions {
    double lambda{1};
    On on{On::logprobs};
    std::string input{};
    Reduce reduce{Reduce::sum};
};
/// lambda * sum of |x|.
[[nodiscard]] Regularizer l1(SizeOptions options = SizeOptions());

struct L2Options {
    double lambda{1};
    On on{On::logprobs};
    std::string input{};
    Reduce reduce{Reduce::sum};
    enum class Center : std::uint8_t { none, mean, value };
    Center center{Center::none};
    double center_value{0};
    /// Clips x - center to +- this value. Empty: no clipping.
    std::optional<double> clip{};
};
/// lambda * sum of clip(x - center)^2.
[[nodiscard]] Regularizer l2(L2Options options = L2Options());

struct ElasticNetOptions {
    double lambda{1};
    double alpha{0.5};
    On on{On::logprobs};
    std::string input{};
    Reduce reduce{Reduce::sum};
};
/// lambda * (alpha * l1 + (1 - alpha) * l2).
[[nodiscard]] Regularizer elastic_net(ElasticNetOptions options = ElasticNetOptions());

struct EntropyOptions {
    enum class Aim : std::uint8_t { maximize, minimize };
    Aim aim{Aim::maximize};
    /// Divides by the logarithm of the number of cells in a row.
    bool normalize{false};
    /// Uses the renormalised distribution of x / temperature. Empty: uses exp(x) unchanged.
    std::optional<double> temperature{};
    double lambda{1};
    Reduce reduce{Reduce::sum};
};
/// -H to maximize entropy, H to minimize it; H is the sum of -p log p over the last axis, in which
/// cells with log p <= -50 are ignored, and is reduced over the rows of all data.
[[nodiscard]] Regularizer entropy(EntropyOptions options = EntropyOptions());

/// The name of a loss input with a reference of the same shape as the log-probabilities.
struct KlDivergenceOptions {
    enum class Direction : std::uint8_t { forward, reverse, symmetric };
    Direction direction{Direction::forward};
    std::string reference{"reference_logprobs"};
    double lambda{1};
    Reduce reduce{Reduce::sum};
};
/// The sum of p (log p - log q), where q is the reference. The difference of logarithms is clipped
/// to
/// +-100, and cells with p <= 1e-10 are ignored. Reverse: p and q are exchanged. Symmetric: the
/// mean of both.
[[nodiscard]] Regularizer kl_divergence(KlDivergenceOptions options = KlDivergenceOptions());

struct ConsistencyOptions {
    enum class Measure : std::uint8_t { mse, l1, cosine, symmetric_kl };
    Measure measure{Measure::mse};
    std::string reference{"reference_logprobs"};
    double lambda{1};
};
/// The distance of x from a reference r, over all data together: the mean of (x - r)^2, the mean of
/// |x - r|, 1 minus the cosine similarity, or the symmetric divergence divided by the number of
/// cells.
[[nodiscard]] Regularizer consistency(ConsistencyOptions options = ConsistencyOptions());

struct OrthogonalityOptions {
    enum class Mode : std::uint8_t { soft, hard, spectral };
    Mode mode{Mode::soft};
    double lambda{1};
};
/// Penalises rows that are not orthogonal, by the Gram matrix G of the normalised rows (norms are
/// at least 1e-8). Soft: the sum of squares of G off the diagonal; hard: of G - I; spectral: (trace
/// - n)^2 plus the soft penalty. The rows are those of each datum's matrix, or the data themselves
/// if all are lists, which must then have equal lengths.
[[nodiscard]] Regularizer orthogonality(OrthogonalityOptions options = OrthogonalityOptions());

struct GradientPenaltyOptions {
    double lambda{1};
    /// Evaluates at a random point between x and the loss input with this name, determined by
    /// `seed`. Empty: at x.
    std::string reference{};
    std::uint64_t seed{0};
    /// The step of the finite differences of the gradient of `loss`.
    double step{1e-3};
};
/// (norm of the gradient of `loss` - 1)^2. Its own gradient needs second derivatives, which are
/// computed as finite differences of the gradients of `loss`.
[[nodiscard]] Regularizer gradient_penalty(
    CustomLoss loss, GradientPenaltyOptions options = GradientPenaltyOptions());

}  // namespace regularizers
}  // namespace tinkxx
