#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/model_options.hpp>
#include <tinkxx/retry_config.hpp>
#include <tinkxx/sampling_client.hpp>
#include <tinkxx/tokenizer.hpp>
#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/training.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx {

/// How a checkpoint is kept.
struct SaveOptions {
    /// Until it is deleted. Empty: for ever. The service has limits of its own.
    std::optional<std::chrono::seconds> ttl{};
    /// Replaces a checkpoint of the same name, and its metadata. Of `save_state` only.
    bool overwrite{false};
    /// Kept with the checkpoint.
    UserMetadata user_metadata{};
};

/// How weights are saved in a format that others can read.
struct ExternalSaveOptions {
    std::optional<std::chrono::seconds> ttl{};
    /// Age or SSH public keys for which the files are encrypted, at most ten. Empty: they are not.
    std::vector<std::string> age_recipients{};
};

/// Trains one model.
///
///     auto trainer = service.create_lora_training_client("Qwen/Qwen3-8B").get();
///     for (auto const& batch : batches) {
///         auto grads = trainer.forward_backward(batch, LossFn::cross_entropy);
///         auto step = trainer.optim_step({.learning_rate = 1e-4});  // no need to wait in between
///         std::cout << grads.get().metrics.at("loss:sum") << '\n';
///         step.get();
///     }
///
/// Requests reach the service in the order of the calls, whatever the network does: each is
/// submitted once those before it were. Data are looked at and written before a call returns, on
/// the thread that makes it; everything else happens elsewhere. A call that fails or is cancelled
/// does not hold up those behind it; what it had asked for may or may not be applied.
///
/// Futures fail with `ValidationError` for arguments that cannot work, before anything is sent,
/// `StatusError` if the service refuses a request, `RequestFailedError` if it accepts one and then
/// fails, `ConnectionError` if it cannot be reached for five minutes, and `ClosedError` after
/// `ServiceClient::close`.
///
/// A cheap handle: copies share one model. Every member may be called from any thread, also in a
/// callback: none blocks. An empty handle has no model; its calls fail with `UsageError`.
class TrainingClient {
public:
    TrainingClient() noexcept = default;

    /// As the service knows it; empty for an empty handle.
    [[nodiscard]] std::string model_id() const;
    /// A handle of the same model whose calls are made so: with a deadline or a circuit breaker,
    /// for example. `CallOptions::retry` is for samples and has no effect.
    [[nodiscard]] TrainingClient with(CallOptions call) const;

    /// The loss of a batch and its outputs for each datum, without gradients. Here and below data
    /// may also be a `std::span`, such as `data::batches` gives.
    [[nodiscard]] Future<ForwardBackwardOutput> forward(std::vector<Datum> const& data,
                                                        Loss const& loss) const;
    /// As `forward`, and adds the gradients to those that the next `optim_step` applies.
    [[nodiscard]] Future<ForwardBackwardOutput> forward_backward(std::vector<Datum> const& data,
                                                                 Loss const& loss) const;
    /// As `forward_backward`, with a loss of one's own: `loss` is called once, on the callback
    /// executor, with the log-probabilities of each datum's `target_tokens`. What it throws is the
    /// call's `CallbackError`. Calls made later are submitted once its gradient was.
    ///
    /// Only `target_tokens` and `weights` are sent; other inputs are for the function. The result
    /// has its value as `loss:sum`, and its metrics.
    [[nodiscard]] Future<ForwardBackwardOutput> forward_backward_custom(
        std::vector<Datum> const& data, CustomLoss loss) const;

    // Templates, so that braces always stand for a vector.
    template <std::same_as<std::span<Datum const>> Data>
    [[nodiscard]] Future<ForwardBackwardOutput> forward(Data data, Loss const& loss) const {
        return forward_span(data, loss);
    }
    template <std::same_as<std::span<Datum const>> Data>
    [[nodiscard]] Future<ForwardBackwardOutput> forward_backward(Data data,
                                                                 Loss const& loss) const {
        return forward_backward_span(data, loss);
    }
    template <std::same_as<std::span<Datum const>> Data>
    [[nodiscard]] Future<ForwardBackwardOutput> forward_backward_custom(
        // The check does not see that a template moves it.
        // NOLINTNEXTLINE(performance-unnecessary-value-param)
        Data data, CustomLoss loss) const {
        return forward_backward_custom_span(data, std::move(loss));
    }

    /// Applies the gradients and clears them. The family must be the one that the model was
    /// created with.
    [[nodiscard]] Future<OptimStepResult> optim_step(AdamParams params) const;
    /// As above, for `DimuonParams`, `OpenOptimizer`, or one of all of them.
    template <class Params>
        requires(!std::same_as<Params, AdamParams> && std::convertible_to<Params, OptimizerParams>)
    [[nodiscard]] Future<OptimStepResult> optim_step(Params params) const {
        return step(std::move(params));
    }

    /// Saves weights and optimizer under a name, to train on from later:
    /// `tinker://<run>/weights/<name>`.
    [[nodiscard]] Future<SaveResult> save_state(std::string name) const;
    [[nodiscard]] Future<SaveResult> save_state(std::string name, SaveOptions options) const;
    /// Loads weights into this model.
    [[deprecated(
        "use ServiceClient::create_training_client_from_state")]] [[nodiscard]] Future<LoadResult>
    load_state(std::string path, std::string weights_access_token = std::string()) const;
    /// As above, with the state of the optimizer.
    [[deprecated(
        "use "
        "ServiceClient::create_training_client_from_state_with_optimizer")]] [[nodiscard]] Future<LoadResult>
    load_state_with_optimizer(std::string path,
                              std::string weights_access_token = std::string()) const;

    /// Saves weights under a name, to draw from: `tinker://<run>/sampler_weights/<name>`.
    [[nodiscard]] Future<SaveResult> save_weights_for_sampler(std::string name) const;
    [[nodiscard]] Future<SaveResult> save_weights_for_sampler(std::string name,
                                                              SaveOptions options) const;
    /// Saves weights in a format that others can read: `tinker://<run>/external_weights/<name>`.
    [[nodiscard]] Future<SaveResult> save_weights_external(std::string name) const;
    [[nodiscard]] Future<SaveResult> save_weights_external(std::string name,
                                                           ExternalSaveOptions options) const;
    /// A sampler of the weights as they are now, which are saved under no name.
    [[nodiscard]] Future<SamplingClient> save_weights_and_get_sampling_client() const;
    [[nodiscard]] Future<SamplingClient> save_weights_and_get_sampling_client(
        TrainedSamplerOptions options) const;
    /// The name has no effect.
    [[deprecated("leave the name out")]] [[nodiscard]] Future<SamplingClient>
    save_weights_and_get_sampling_client(std::string const& name) const;
    /// A sampler of saved weights, `tinker://…`. Throws `ValidationError` for another path.
    [[nodiscard]] SamplingClient create_sampling_client(std::string model_path) const;
    [[nodiscard]] SamplingClient create_sampling_client(std::string model_path,
                                                        TrainedSamplerOptions options) const;

    /// What the service knows about the model.
    [[nodiscard]] Future<ModelInfo> get_info() const;
    /// The tokenizer of the model, which `get_info` names: asked for once, and then known to all
    /// copies. It is loaded on the callback executor. Fails with `ValidationError` if the model has
    /// none, and with `CallbackError` for what the loader throws.
    [[nodiscard]] Future<std::shared_ptr<Tokenizer const>> get_tokenizer(
        Tokenizers tokenizers) const;
    /// As above, from `ClientOptions::tokenizers`.
    [[nodiscard]] Future<std::shared_ptr<Tokenizer const>> get_tokenizer() const;
    /// Text to tokens and back, by `get_tokenizer`.
    [[nodiscard]] Future<std::vector<Token>> encode(std::string text, Tokenizers tokenizers) const;
    [[nodiscard]] Future<std::string> decode(std::vector<Token> tokens,
                                             Tokenizers tokenizers) const;
    /// Ends the model on the server, once what was asked for before is submitted. Not every server
    /// can.
    [[nodiscard]] Future<void> unload() const;

private:
    friend class ServiceClient;
    class Impl;
    explicit TrainingClient(std::shared_ptr<Impl const> impl) noexcept;
    [[nodiscard]] Future<ForwardBackwardOutput> forward_span(std::span<Datum const> data,
                                                             Loss const& loss) const;
    [[nodiscard]] Future<ForwardBackwardOutput> forward_backward_span(std::span<Datum const> data,
                                                                      Loss const& loss) const;
    [[nodiscard]] Future<ForwardBackwardOutput> forward_backward_custom_span(
        std::span<Datum const> data, CustomLoss loss) const;
    [[nodiscard]] Future<OptimStepResult> step(OptimizerParams params) const;

    std::shared_ptr<Impl const> impl_{};
};

}  // namespace tinkxx
