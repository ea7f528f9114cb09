#pragma once

#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/tensor_data.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx {

/// How forward and backward passes are written. Their results are read in either form.
enum class SubmitEncoding : std::uint8_t { protobuf, json };

// Losses ----------------------------------------------------------------------------------------

/// The losses that this release knows. Other losses can be given by name, see `Loss`.
enum class LossFn : std::uint8_t {
    cross_entropy,        ///< target_tokens, weights
    importance_sampling,  ///< target_tokens, logprobs, advantages
    ppo,                  ///< as importance_sampling
    cispo,                ///< as importance_sampling
    dro,                  ///< as importance_sampling
    gspo,                 ///< as importance_sampling, with sequence_ratio_mask where wanted
    stable_reinforce,     ///< as importance_sampling, with spans on every datum
    custom,               ///< an uploaded loss: config `loss_id`
};

/// The service's name of it, such as `cross_entropy`.
[[nodiscard]] std::string_view to_string(LossFn loss) noexcept;
/// The loss of that name, if this release knows it.
[[nodiscard]] std::optional<LossFn> parse_loss_fn(std::string_view name) noexcept;

/// A number or text.
using LossConfigValue = std::variant<double, std::string>;
using LossConfig = std::map<std::string, LossConfigValue, std::less<>>;

/// Bounds of the ratio of probabilities, not epsilons. Empty: chosen by the server.
struct PpoConfig {
    std::optional<double> clip_low_threshold{};
    std::optional<double> clip_high_threshold{};
};
/// As `PpoConfig`.
struct CispoConfig {
    std::optional<double> clip_low_threshold{};
    std::optional<double> clip_high_threshold{};
};
/// As `PpoConfig`.
struct GspoConfig {
    std::optional<double> clip_low_threshold{};
    std::optional<double> clip_high_threshold{};
};
struct DroConfig {
    std::optional<double> beta{};
};
struct StableReinforceConfig {
    std::optional<double> kl_coeff{};
};

/// A loss with its configuration.
///
///     trainer.forward_backward(batch, LossFn::cross_entropy);
///     trainer.forward_backward(batch, PpoConfig{.clip_high_threshold = 1.3});
///     trainer.forward_backward(batch, {"brand_new", {{"alpha", 0.5}}});  // sent unchecked
///
/// A loss given by its type is checked, together with its inputs, before anything is sent. A name
/// given as text is sent unchecked, even if this release knows it.
class Loss {
public:
    Loss(LossFn fn) : fn_{fn}, name_{to_string(fn)} {}
    Loss(LossFn fn, LossConfig config)
        : fn_{fn}, name_{to_string(fn)}, config_{std::move(config)} {}
    Loss(PpoConfig const& config);
    Loss(CispoConfig const& config);
    Loss(GspoConfig const& config);
    Loss(DroConfig const& config);
    Loss(StableReinforceConfig const& config);
    Loss(char const* name) : name_{name} {}
    Loss(std::string name) : name_{std::move(name)} {}
    Loss(std::string name, LossConfig config)
        : name_{std::move(name)}, config_{std::move(config)} {}

    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] LossConfig const& config() const noexcept { return config_; }
    /// The loss, if it was given by its type.
    [[nodiscard]] std::optional<LossFn> known() const noexcept { return fn_; }

    bool operator==(Loss const&) const = default;

private:
    std::optional<LossFn> fn_{};
    std::string name_{};
    LossConfig config_{};
};

/// Values by name and, where there is one, reduction, such as `loss:sum`.
using MetricValues = std::map<std::string, double, std::less<>>;

/// The result of a custom loss function.
struct CustomLossValue {
    double loss{0};
    /// For each datum, the derivatives of `loss` with respect to its log-probabilities.
    std::vector<std::vector<float>> gradient{};
    MetricValues metrics{};

    bool operator==(CustomLossValue const&) const = default;
};

/// A custom loss function. It receives the data and, for each datum, the log-probabilities of its
/// `target_tokens` as float32 in the same shape.
using CustomLoss = std::function<CustomLossValue(std::span<Datum const> data,
                                                 std::span<TensorData const> logprobs)>;

// Optimizers ------------------------------------------------------------------------------------

/// An optimizer family that this release does not know: its name, and its other members, each as
/// JSON text, such as `{"version", "2"}`.
struct OpenOptimizer {
    std::string type{};
    std::map<std::string, std::string> members{};

    bool operator==(OpenOptimizer const&) const = default;
};

struct AdamConfig {
    bool operator==(AdamConfig const&) const = default;
};
struct DimuonConfig {
    std::int64_t version{1};

    bool operator==(DimuonConfig const&) const = default;
};

/// The optimizer family that a model is created with. It cannot be changed later.
using OptimizerConfig = std::variant<AdamConfig, DimuonConfig, OpenOptimizer>;

/// One step of AdamW.
struct AdamParams {
    double learning_rate{1e-4};
    double beta1{0.9};
    double beta2{0.95};
    double eps{1e-12};
    /// Decoupled from the gradient.
    double weight_decay{0};
    /// Clips the norm of all gradients together to this value; 0: no clipping.
    double grad_clip_norm{0};

    /// Throws `ValidationError`: all must be finite, betas in [0, 1), eps > 0, the others >= 0.
    void validate() const;
    bool operator==(AdamParams const&) const = default;
};

/// One step of Dimuon.
struct DimuonParams {
    /// Must be set.
    std::optional<double> learning_rate{};
    double beta1{0.9};
    /// Clips the norm of all gradients together to this value; 0 or less: no clipping.
    double grad_clip_norm{0};

    /// Throws `ValidationError`: all must be finite, learning_rate >= 0, beta1 in [0, 1).
    void validate() const;
    bool operator==(DimuonParams const&) const = default;
};

using OptimizerParams = std::variant<AdamParams, DimuonParams, OpenOptimizer>;

/// `adamw`, `dimuon`, or the name of the open family.
[[nodiscard]] std::string_view optimizer_family(OptimizerConfig const& config) noexcept;
[[nodiscard]] std::string_view optimizer_family(OptimizerParams const& params) noexcept;

// Models ----------------------------------------------------------------------------------------

/// The adapter that a model is trained with.
struct LoraConfig {
    std::int64_t rank{32};
    /// The same seed starts from the same weights. Empty: chosen by the server.
    std::optional<std::int64_t> seed{};
    /// Which parts are trained; at least one.
    bool train_unembed{true};
    bool train_mlp{true};
    bool train_attn{true};

    /// Throws `ValidationError` if nothing would be trained or the rank is negative.
    void validate() const;
    bool operator==(LoraConfig const&) const = default;
};

using UserMetadata = std::map<std::string, std::string>;

/// What the service knows about the model of a training client.
struct ModelInfo {
    struct Data {
        std::optional<std::string> arch{};
        std::optional<std::string> model_name{};
        /// Without a `:revision`.
        std::optional<std::string> tokenizer_id{};

        bool operator==(Data const&) const = default;
    };
    std::string model_id{};
    Data model_data{};
    std::optional<bool> is_lora{};
    std::optional<std::int64_t> lora_rank{};
    std::optional<std::string> model_name{};
    OptimizerConfig optimizer_config{};

    bool operator==(ModelInfo const&) const = default;
};

/// What the service knows about a checkpoint.
struct WeightsInfo {
    std::string base_model{};
    bool is_lora{false};
    std::optional<std::int64_t> lora_rank{};
    /// Empty: true.
    std::optional<bool> train_unembed{};
    std::optional<bool> train_mlp{};
    std::optional<bool> train_attn{};
    OptimizerConfig optimizer_config{};

    bool operator==(WeightsInfo const&) const = default;
};

// Results ---------------------------------------------------------------------------------------

/// The outputs of a loss for one datum, by name: `logprobs`, often `elementwise_loss`.
using LossFnOutput = std::map<std::string, TensorData, std::less<>>;

/// The answer to `forward` and `forward_backward`.
struct ForwardBackwardOutput {
    std::string loss_fn_output_type{};
    /// One for each datum, in their order.
    std::vector<LossFnOutput> loss_fn_outputs{};
    MetricValues metrics{};

    bool operator==(ForwardBackwardOutput const&) const = default;
};

/// The answer to `optim_step`. Metrics are empty if the server sends none.
struct OptimStepResult {
    std::optional<MetricValues> metrics{};

    bool operator==(OptimStepResult const&) const = default;
};

/// The answer to a save: where the checkpoint is.
struct SaveResult {
    /// For example `tinker://run/weights/name`.
    std::string path{};
    std::optional<std::int64_t> size_bytes{};

    bool operator==(SaveResult const&) const = default;
};

/// The answer to a load.
struct LoadResult {
    std::optional<std::string> path{};
    std::optional<std::string> model_id{};

    bool operator==(LoadResult const&) const = default;
};

// Tokenizers ------------------------------------------------------------------------------------

/// Which tokenizer belongs to a model: a Hugging Face repository and, where one is pinned, its
/// revision.
struct TokenizerId {
    std::string repository{};
    std::optional<std::string> revision{};

    bool operator==(TokenizerId const&) const = default;
};

/// The tokenizer of a model, from its name and, if the service gave one, its tokenizer id. Throws
/// `ValidationError` for models without a tokenizer on Hugging Face.
[[nodiscard]] TokenizerId tokenizer_id(std::string_view model_name,
                                       std::optional<std::string_view> explicit_id = std::nullopt);

}  // namespace tinkxx
