#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/detail/count.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/status.hpp>
#include <tinkxx/tokenizer.hpp>
#include <tinkxx/types/model_input.hpp>
#include <tinkxx/types/sampling.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx {

struct ClientOptions;

/// Samples completions from one set of weights.
///
///     auto pending = sampler.sample(ModelInput::from_tokens({9707, 11, 1879}),
///                                   {.max_tokens = 16, .temperature = 0.7});
///     for (auto token : pending.get().sequences.at(0).tokens) std::cout << token << ' ';
///
/// A cheap handle: copies share one sampling session. Every member may be called from any thread,
/// also in a callback, and none blocks. Thousands of calls may be pending: they are dispatched
/// within the limits of the client and of the server, and `ServiceClient::status` shows the stage
/// of each. Pending calls need no handle: they continue until they are done, cancelled through
/// their futures, or ended by `ServiceClient::close`, `Runtime::shutdown` or the end of the
/// process. (They do not keep a runtime without threads alive.)
class SamplingClient {
public:
    /// Starts sampling completions of `prompt` and returns at once.
    ///
    /// Fails with `ValidationError` for invalid arguments, `StatusError` if the service refuses the
    /// request, `RequestFailedError` if it accepts the request and then fails, `ConnectionError`
    /// once the sampler's `RetryConfig` gives up, and `ClosedError` after `ServiceClient::close`.
    [[nodiscard]] Future<SampleResponse> sample(ModelInput prompt, SamplingParams params,
                                                detail::Count num_samples = 1) const;
    [[nodiscard]] Future<SampleResponse> sample(ModelInput prompt, SamplingParams params,
                                                SampleOptions options) const;
    [[nodiscard]] Future<SampleResponse> sample(ModelInput prompt, SamplingParams params,
                                                SampleOptions options, CallOptions call) const;
    /// As above, for a prompt given as text: encodes it with the model's tokenizer, so that
    /// `SampleResponse::text` has the answer as text.
    ///
    ///     auto pending = sampler.sample("The capital of France is", {.max_tokens = 16});
    ///     std::cout << pending.get().text();
    ///
    /// Fails also as `get_tokenizer`. (Templates, so that braces always mean a `ModelInput`.)
    template <class Text>
        requires std::convertible_to<Text const&, std::string_view>
    [[nodiscard]] Future<SampleResponse> sample(Text const& prompt, SamplingParams params,
                                                detail::Count num_samples = 1) const {
        return sample_text(std::string{std::string_view{prompt}}, std::move(params),
                           SampleOptions{.num_samples = num_samples.value()}, CallOptions());
    }
    template <class Text>
        requires std::convertible_to<Text const&, std::string_view>
    [[nodiscard]] Future<SampleResponse> sample(Text const& prompt, SamplingParams params,
                                                SampleOptions options,
                                                CallOptions call = CallOptions()) const {
        return sample_text(std::string{std::string_view{prompt}}, std::move(params),
                           std::move(options), std::move(call));
    }
    /// As `sample`, under the name that the Python SDK uses.
    [[nodiscard]] Future<SampleResponse> sample_async(ModelInput prompt, SamplingParams params,
                                                      detail::Count num_samples = 1) const;
    /// As `sample`, and calls `done` on the callback executor.
    void sample_async(ModelInput prompt, SamplingParams params, SampleOptions options,
                      std::function<void(Result<SampleResponse>)> done) const;

    /// The log-probability of each token of `prompt`; empty for the first token.
    [[nodiscard]] Future<std::vector<std::optional<float>>> compute_logprobs(
        ModelInput prompt) const;
    /// As above, for the last `last_n` tokens only.
    [[nodiscard]] Future<std::vector<std::optional<float>>> compute_logprobs(
        ModelInput prompt, std::int64_t last_n, CallOptions call) const;

    /// Streams one sample from a server that supports it: passes its pieces to `on_chunk` as they
    /// arrive, one at a time, on the callback executor. Not retried. Fails with a `StatusError`
    /// that names the feature if the server does not support streaming.
    [[nodiscard]] Future<void> sample_stream(
        ModelInput prompt, SamplingParams params,
        std::function<void(SampleChunk const&)> on_chunk) const;

    /// The tokenizer of these weights' base model, from `ClientOptions::tokenizers`. Loaded on the
    /// callback executor on first use. Fails with `ValidationError` if there is none, naming the
    /// file wanted and every place looked at, and with `CallbackError` for what a loader throws.
    [[nodiscard]] Future<std::shared_ptr<Tokenizer const>> get_tokenizer() const;
    /// Asks the service for the base model of these weights, e.g. "Qwen/Qwen3-8B".
    [[nodiscard]] Future<std::string> get_base_model() const;

    /// The id of the sampling session, once it exists; fails if it cannot be created. There is no
    /// need to wait for it, since samples do.
    [[nodiscard]] Future<std::string> sampling_session_id() const;
    /// A text with which another process can sample from the same weights. Contains no credential.
    [[nodiscard]] Future<std::string> get_sampler_handle() const;
    /// As above, including the credential of this process, for processes that have none. A secret.
    [[nodiscard]] Future<std::string> export_sampler() const;
    /// Counters of this sampler's retries.
    [[nodiscard]] Future<SamplerStats> stats() const;

private:
    friend class ServiceClient;
    friend class TrainingClient;
    friend SamplingClient from_sampler_handle(std::string const& handle, RetryConfig retry,
                                              ClientOptions options);
    class Impl;
    explicit SamplingClient(std::shared_ptr<Impl> impl) noexcept;
    [[nodiscard]] Future<SampleResponse> sample_text(std::string prompt, SamplingParams params,
                                                     SampleOptions options, CallOptions call) const;

    std::shared_ptr<Impl> impl_;
};

}  // namespace tinkxx
