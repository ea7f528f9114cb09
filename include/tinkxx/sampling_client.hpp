#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/status.hpp>
#include <tinkxx/types/model_input.hpp>
#include <tinkxx/types/sampling.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx {

struct ClientOptions;

/// Draws completions from one set of weights.
///
///     auto pending = sampler.sample(ModelInput::from_tokens({9707, 11, 1879}),
///                                   {.max_tokens = 16, .temperature = 0.7});
///     for (auto token : pending.get().sequences.at(0).tokens) std::cout << token << ' ';
///
/// A cheap handle: copies share one sampling session. Every member may be called from any thread,
/// also in a callback: none blocks. Thousands of calls may be under way; they wait for their turn
/// by the limits of the client and of the server, and `ServiceClient::status` says where each
/// stands. Calls under way need no handle: they keep what they need, the runtime included, and go
/// on until they are done, cancelled by their futures, or ended by `ServiceClient::close`,
/// `Runtime::shutdown` or the end of the process. (A runtime without threads is not kept.)
class SamplingClient {
public:
    /// Starts drawing completions of `prompt` and returns at once.
    ///
    /// Fails with `ValidationError` for arguments that cannot work, `StatusError` if the service
    /// refuses the request, `RequestFailedError` if it accepts the request and then fails,
    /// `ConnectionError` once the sampler's `RetryConfig` gives up, and `ClosedError` after
    /// `ServiceClient::close`.
    [[nodiscard]] Future<SampleResponse> sample(ModelInput prompt, SamplingParams params,
                                                std::int64_t num_samples = 1) const;
    [[nodiscard]] Future<SampleResponse> sample(ModelInput prompt, SamplingParams params,
                                                SampleOptions options) const;
    [[nodiscard]] Future<SampleResponse> sample(ModelInput prompt, SamplingParams params,
                                                SampleOptions options, CallOptions call) const;
    /// As `sample`; the name that users of the Python SDK look for. Futures can be awaited.
    [[nodiscard]] Future<SampleResponse> sample_async(ModelInput prompt, SamplingParams params,
                                                      std::int64_t num_samples = 1) const;
    /// As `sample`, and calls `done` on the callback executor.
    void sample_async(ModelInput prompt, SamplingParams params, SampleOptions options,
                      std::function<void(Result<SampleResponse>)> done) const;

    /// The log-probability of each token of `prompt`; none for the first.
    [[nodiscard]] Future<std::vector<std::optional<float>>> compute_logprobs(
        ModelInput prompt) const;
    /// As above, for the last `last_n` tokens only.
    [[nodiscard]] Future<std::vector<std::optional<float>>> compute_logprobs(
        ModelInput prompt, std::int64_t last_n, CallOptions call) const;

    /// Draws one sample from a server that can stream, and gives its pieces to `on_chunk` as they
    /// come, one at a time, on the callback executor. No retries. Fails with `StatusError` that
    /// names the feature if the server has no such endpoint.
    [[nodiscard]] Future<void> sample_stream(
        ModelInput prompt, SamplingParams params,
        std::function<void(SampleChunk const&)> on_chunk) const;

    /// Asks the service which model these weights grew from, e.g. "Qwen/Qwen3-8B".
    [[nodiscard]] Future<std::string> get_base_model() const;

    /// Completes once the sampling session exists, with its id; fails if it cannot be created.
    /// There is no need to wait for it: samples do.
    [[nodiscard]] Future<std::string> sampling_session_id() const;
    /// A text by which another process can draw from the same weights; holds no credential.
    [[nodiscard]] Future<std::string> get_sampler_handle() const;
    /// As above with the credential of this process: a secret. For processes that have none.
    [[nodiscard]] Future<std::string> export_sampler() const;
    /// What the retry engine of this sampler did so far.
    [[nodiscard]] Future<SamplerStats> stats() const;

private:
    friend class ServiceClient;
    friend class TrainingClient;
    friend SamplingClient from_sampler_handle(std::string const& handle, RetryConfig retry,
                                              ClientOptions options);
    class Impl;
    explicit SamplingClient(std::shared_ptr<Impl> impl) noexcept;

    std::shared_ptr<Impl> impl_;
};

}  // namespace tinkxx
