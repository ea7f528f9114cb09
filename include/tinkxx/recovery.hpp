#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/recovery_policy.hpp>
#include <tinkxx/service_client.hpp>
#include <tinkxx/training_client.hpp>

#include <memory>
#include <string>
#include <vector>

namespace tinkxx {

/// A lost run and the model that replaces it.
struct Recovery {
    /// The run that was lost.
    std::string run_id{};
    /// Its client; empty if the run was named by its id.
    TrainingClient old_client{};
    /// Continues from the checkpoint as a new run, which is not watched yet.
    TrainingClient client{};
    /// The checkpoint it was restored from.
    std::string checkpoint{};
    /// The number of attempts it took.
    int attempts{1};
};

/// A run to be recovered.
struct RecoveryRequest {
    /// Empty: the run of `client`.
    std::string run_id{};
    /// Passed to `RecoveryPolicy::on_recovery`.
    TrainingClient client{};
    /// Overrides the policy's checkpoint. Empty: as the policy says.
    std::string checkpoint{};
};

/// Recreates lost training runs from their checkpoints, in the order of the calls.
///
/// A cheap handle: copies share one queue. Every member may be called from any thread. Recoveries
/// in progress are shown by `ServiceClient::status`, and fail with `CancelledError` when the last
/// handle goes away or the service client is closed. Calls of an empty handle fail with
/// `UsageError`.
class RecoveryExecutor {
public:
    RecoveryExecutor() noexcept = default;
    RecoveryExecutor(ServiceClient service, RecoveryPolicy const& policy);

    /// Creates a model that replaces a run, in as many attempts as the policy allows. The requests
    /// of each attempt have their usual deadlines and retries.
    ///
    /// Fails with `UsageError` if the policy is not enabled or the run is being recovered already,
    /// with `ValidationError` if its strategy is not supported, and otherwise with the error of the
    /// last attempt.
    [[nodiscard]] Future<Recovery> recover(std::string run_id) const;
    [[nodiscard]] Future<Recovery> recover(TrainingClient const& client) const;
    [[nodiscard]] Future<Recovery> recover(RecoveryRequest request) const;

    /// The effective policy, after validation; the default policy for an empty handle.
    [[nodiscard]] RecoveryPolicy policy() const;

private:
    friend class RecoveryMonitor;
    class Impl;
    std::shared_ptr<Impl> impl_{};
};

/// Watches training runs and recovers those whose state the server has lost.
///
///     RecoveryMonitor monitor{service, {.enabled = true, .on_recovery = [](Recovery const& r) {
///         std::cerr << r.run_id << " goes on as " << r.client.model_id() << '\n';
///     }}};
///     auto recovered = monitor.watch(trainer);
///
/// A cheap handle: copies share the watched runs. Every member may be called from any thread.
/// Watches are shown by `ServiceClient::status`, and fail with `CancelledError` when the last
/// handle goes away or the service client is closed. An empty handle has no executor.
class RecoveryMonitor {
public:
    RecoveryMonitor() noexcept = default;
    /// Creates an executor of its own.
    RecoveryMonitor(ServiceClient service, RecoveryPolicy const& policy);
    /// Uses an existing executor and its policy.
    explicit RecoveryMonitor(RecoveryExecutor executor);

    /// Polls the state of a run. When the server reports that the run is corrupted, watching ends
    /// and the run is recovered; the future then yields the new model. A failed poll is reported to
    /// observers and shown in the status, but changes nothing. Cancelling the future ends the
    /// watch.
    ///
    /// Fails with `UsageError` if the policy is not enabled, if there is no executor, or if the run
    /// is watched already, and otherwise as `RecoveryExecutor::recover`.
    [[nodiscard]] Future<Recovery> watch(std::string run_id) const;
    [[nodiscard]] Future<Recovery> watch(TrainingClient const& client) const;
    /// Stops watching a run. Does nothing if it is not watched.
    void forget(std::string const& run_id) const;
    /// The runs that are watched, sorted.
    [[nodiscard]] Future<std::vector<std::string>> watched() const;

private:
    class Impl;
    [[nodiscard]] Future<Recovery> watch(std::string run_id, TrainingClient client) const;
    std::shared_ptr<Impl> impl_{};
};

}  // namespace tinkxx
