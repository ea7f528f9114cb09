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

/// A penalty: its value, and its derivatives by the log-probabilities of each datum. A function
/// that may take long looks at `stop` now and then and gives up when asked.
using Regularizer = std::function<CustomLossValue(
    std::span<Datum const> data, std::span<TensorData const> logprobs, std::stop_token stop)>;

struct RegularizerSpec {
    /// Not empty, and no other's. Metrics begin with it.
    std::string name{};
    /// 0 or more.
    double weight{1};
    Regularizer fn{};
    /// Whether it may run on another thread beside the others.
    bool async{true};
};

struct RegularizerOptions {
    /// How many run at once; 0: as many as there are processors.
    unsigned parallel{0};
    /// How long each may take. One that took longer makes the whole loss fail; the others are then
    /// asked to stop.
    std::chrono::milliseconds time_limit{std::chrono::seconds{30}};
    /// Whether the norms of their gradients are among the metrics.
    bool grad_norms{true};
    /// The time that limits are measured by. Empty: the monotonic clock.
    std::function<std::chrono::nanoseconds()> now{};
};

/// base + the sum of weight * penalty. Metrics: those of `base`, `loss_total`, `base_loss`,
/// `regularizer_total`, `total_grad_norm`, and for each penalty `<name>/value`, `/weight`,
/// `/contribution`, `/grad_norm`, `/grad_norm_weighted` and its own. Fails with what the first of
/// them, in their order, failed with. Throws `ValidationError` if a spec is not as it should be.
[[nodiscard]] CustomLoss with_regularizers(CustomLoss base, std::vector<RegularizerSpec> specs,
                                           RegularizerOptions options = RegularizerOptions());

namespace regularizers {

/// What a penalty looks at: x, the log-probabilities of all data one after the other.
enum class On : std::uint8_t {
    logprobs,
    probabilities,  ///< exp(x)
};
enum class Reduce : std::uint8_t { sum, mean };

/// The same for all penalties of size. `input` names a loss input to look at instead; its
/// derivatives by x are 0.
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
    /// x - center is kept within +- this. Empty: not at all.
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
    /// Divides by the logarithm of the number of cells of a row.
    bool normalize{false};
    /// Looks at the distribution of x / temperature, renormalised. Empty: at exp(x) as it is.
    std::optional<double> temperature{};
    double lambda{1};
    Reduce reduce{Reduce::sum};
};
/// -H to maximize entropy, H to minimize it; H is the sum of -p log p over the last axis, in which
/// cells with log p <= -50 count nothing, and is reduced over the rows of all data.
[[nodiscard]] Regularizer entropy(EntropyOptions options = EntropyOptions());

/// A reference of the same form as the log-probabilities: the loss input of that name.
struct KlDivergenceOptions {
    enum class Direction : std::uint8_t { forward, reverse, symmetric };
    Direction direction{Direction::forward};
    std::string reference{"reference_logprobs"};
    double lambda{1};
    Reduce reduce{Reduce::sum};
};
/// Sum of p (log p - log q) with q the reference; the difference of logarithms is kept within
/// +-100, and cells with p <= 1e-10 count nothing. Reverse: p and q change places. Symmetric: the
/// mean of both.
[[nodiscard]] Regularizer kl_divergence(KlDivergenceOptions options = KlDivergenceOptions());

struct ConsistencyOptions {
    enum class Measure : std::uint8_t { mse, l1, cosine, symmetric_kl };
    Measure measure{Measure::mse};
    std::string reference{"reference_logprobs"};
    double lambda{1};
};
/// How far x is from a reference r, over all data together: mean of (x - r)^2, mean of |x - r|,
/// 1 - the cosine of their angle, or the symmetric divergence divided by the number of cells.
[[nodiscard]] Regularizer consistency(ConsistencyOptions options = ConsistencyOptions());

struct OrthogonalityOptions {
    enum class Mode : std::uint8_t { soft, hard, spectral };
    Mode mode{Mode::soft};
    double lambda{1};
};
/// How far rows are from being orthogonal, by the Gram matrix G of the rows after each was divided
/// by its norm (at least 1e-8). Soft: the sum of squares beside the diagonal; hard: of G - I;
/// spectral: (trace - n)^2 and the soft one. The rows are those of each datum's matrix or, if all
/// data are lists, which must then be equally long, the data themselves.
[[nodiscard]] Regularizer orthogonality(OrthogonalityOptions options = OrthogonalityOptions());

struct GradientPenaltyOptions {
    double lambda{1};
    /// Looks at a point between x and the loss input of this name, at a place drawn from `seed`.
    /// Empty: at x.
    std::string reference{};
    std::uint64_t seed{0};
    /// How far x is moved to see how the gradient of `loss` changes.
    double step{1e-3};
};
/// (norm of the gradient of `loss` - 1)^2. The second derivatives that its own gradient needs are
/// differences of the gradients that `loss` gives.
[[nodiscard]] Regularizer gradient_penalty(
    CustomLoss loss, GradientPenaltyOptions options = GradientPenaltyOptions());

}  // namespace regularizers
}  // namespace tinkxx
