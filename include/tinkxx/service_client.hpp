#pragma once

#include <tinkxx/admin_client.hpp>
#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/detail/count.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/model_options.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/rest_client.hpp>
#include <tinkxx/retry_config.hpp>
#include <tinkxx/sampling_client.hpp>
#include <tinkxx/status.hpp>
#include <tinkxx/training_client.hpp>
#include <tinkxx/types/checkpoint.hpp>
#include <tinkxx/types/service.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tinkxx {

namespace client {
class RestCalls;
}

/// The way to the service: one account, one session, and the clients made from it.
///
///     ServiceClient service;                                   // key from $TINKER_API_KEY
///     auto sampler = service.create_sampling_client("Qwen/Qwen3-8B");
///     auto pending = sampler.sample(prompt, {.max_tokens = 16});
///     …
///     service.close().get();
///
/// Constructing it contacts nobody; the first call that needs the service fetches its
/// configuration, exchanges the credential if the server wants that, and creates the session.
/// Calls made meanwhile wait.
///
/// A cheap handle: copies share one client. Every member may be called from any thread, also in a
/// callback: none blocks. What was made from it stays usable when the last handle goes away; the
/// session's heartbeat ends with the last of all of these and of the calls under way.
///
/// Make as many as you need: clients of one runtime that reach the same service with the same
/// credential and equal `NetOptions` share their connections.
class ServiceClient {
public:
    /// With options from the environment. Throws as below.
    ServiceClient();
    /// Throws `ValidationError`, naming field and value, for options that cannot work.
    explicit ServiceClient(ClientOptions options);

    /// A sampler of a base model, or of saved weights if `model` begins with `tinker://`. Throws
    /// `ValidationError` for arguments that cannot work. Returns at once: the sampling session is
    /// created with the first sample, and a failure to do so surfaces there.
    template <std::convertible_to<std::string> Model>
    [[nodiscard]] SamplingClient create_sampling_client(Model model) const {
        return create_sampling_client(std::string{std::move(model)}, RetryConfig());
    }
    [[nodiscard]] SamplingClient create_sampling_client(std::string model, RetryConfig retry) const;
    [[nodiscard]] SamplingClient create_sampling_client(SamplerOptions options) const;

    /// Creates a model with a LoRA adapter of `base_model`, e.g. "Qwen/Qwen3-8B", and gives its
    /// client once the service has it. May wait in the service's queue.
    [[nodiscard]] Future<TrainingClient> create_lora_training_client(std::string base_model) const;
    [[nodiscard]] Future<TrainingClient> create_lora_training_client(std::string base_model,
                                                                     detail::Count rank) const;
    [[nodiscard]] Future<TrainingClient> create_lora_training_client(std::string base_model,
                                                                     TrainingOptions options) const;
    /// Creates a model from the weights of a checkpoint, `tinker://<run>/weights/<name>`. Each of
    /// the requests that this takes has the client's deadline.
    [[nodiscard]] Future<TrainingClient> create_training_client_from_state(std::string path) const;
    [[nodiscard]] Future<TrainingClient> create_training_client_from_state(
        std::string path, FromStateOptions options) const;
    /// As above, with the state of the optimizer: training goes on as if it had not stopped.
    [[nodiscard]] Future<TrainingClient> create_training_client_from_state_with_optimizer(
        std::string path) const;
    [[nodiscard]] Future<TrainingClient> create_training_client_from_state_with_optimizer(
        std::string path, FromStateOptions options) const;
    /// Copies a checkpoint to a project, and gives the path of the copy. Needs no session. Safe
    /// however often a request is lost: a call makes one copy.
    [[nodiscard]] Future<std::string> copy_weights(std::string path) const;
    [[nodiscard]] Future<std::string> copy_weights(std::string path,
                                                   CopyWeightsOptions options) const;

    /// Clients that list, inspect and change what was made, and that tell what was used. They need
    /// no session. Closed with this client.
    [[nodiscard]] RestClient create_rest_client() const;
    [[nodiscard]] AdminClient create_admin_client() const;

    /// Which models the server offers. Needs no session.
    [[nodiscard]] Future<ServerCapabilities> get_server_capabilities() const;
    /// The server's word for its health, e.g. `ok`. Needs no session.
    [[nodiscard]] Future<std::string> health() const;
    /// Completes if the account can use the service; fails with `BillingError` if it is blocked,
    /// and with `StatusError` if the credential is refused. Needs no session.
    [[nodiscard]] Future<void> check_access() const;
    /// Whom the credential stands for. Asks the server for no more than a token, if it uses them;
    /// fails with `ValidationError` for a plain key.
    [[nodiscard]] Future<Identity> whoami() const;

    /// What this client is doing: every pending operation with where it stands, since when, why,
    /// and until when.
    [[nodiscard]] Future<ServiceStatus> status() const;
    /// Of the session; creates it if there is none.
    [[nodiscard]] Future<std::string> session_id() const;

    /// Ends the calls under way with `CancelledError`, stops the heartbeat and sends what
    /// telemetry is left, for five seconds at most. Later calls fail with `ClosedError`. The
    /// session is left to expire. Closing again does nothing.
    Future<void> close() const;
    /// As above, but first tells the server how the session ended. Fails if that failed, after
    /// everything else was done.
    Future<void> close(CloseReason reason) const;
    Future<void> close(CloseReason reason, std::string detail) const;

    [[nodiscard]] Runtime const& runtime() const noexcept;

private:
    friend class RecoveryExecutor;
    friend class client::RestCalls;
    class Impl;
    [[nodiscard]] Future<TrainingClient> from_state(std::string path, FromStateOptions options,
                                                    bool with_optimizer) const;
    std::shared_ptr<Impl> impl_;
};

/// Finishes a client's session at the end of a scope: as a success, or as errored if an exception
/// is on its way. Waits for it; on a thread of the runtime it does not.
class SessionScope {
public:
    explicit SessionScope(ServiceClient service);
    ~SessionScope();
    SessionScope(SessionScope const&) = delete;
    SessionScope& operator=(SessionScope const&) = delete;

private:
    ServiceClient service_;
    int exceptions_;
};

/// A sampler of another process, by the text that its `SamplingClient::get_sampler_handle` gave.
/// The credential is this process's own. Throws `ValidationError` for a text that is no handle, and
/// for retry settings that cannot work.
[[nodiscard]] SamplingClient from_sampler_handle(std::string const& handle);
[[nodiscard]] SamplingClient from_sampler_handle(std::string const& handle, ClientOptions options);
[[nodiscard]] SamplingClient from_sampler_handle(std::string const& handle, RetryConfig retry,
                                                 ClientOptions options);

}  // namespace tinkxx
