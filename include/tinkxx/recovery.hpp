#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/service_client.hpp>
#include <tinkxx/training_client.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tinkxx {

/// The last checkpoint of a run, as the service knows it.
struct LatestCheckpoint {
    bool operator==(LatestCheckpoint const&) const = default;
};
/// One that the caller knows, `tinker://…`.
struct SpecificCheckpoint {
    std::string path{};

    bool operator==(SpecificCheckpoint const&) const = default;
};
/// Not supported, since nothing tells which one that is: recovery is refused.
struct BestCheckpoint {
    bool operator==(BestCheckpoint const&) const = default;
};
/// What a run is restored from.
using CheckpointStrategy = std::variant<LatestCheckpoint, SpecificCheckpoint, BestCheckpoint>;

/// A run that was lost, and the model that goes on in its place.
struct Recovery {
    /// Of the run that was lost.
    std::string run_id{};
    /// Its client; empty if the run was named by its id.
    TrainingClient old_client{};
    /// Trains on from the checkpoint, as a run of its own, which nobody watches yet.
    TrainingClient client{};
    /// What it was restored from.
    std::string checkpoint{};
    /// How many it took.
    int attempts{1};
};

/// How training runs are recovered. Values that cannot work, such as a negative time, stand for
/// their defaults.
struct RecoveryPolicy {
    /// Nothing is recovered otherwise.
    bool enabled{false};
    int max_attempts{3};
    /// Before the second attempt; twice as long before each further one, up to `max_backoff`.
    std::chrono::milliseconds backoff{std::chrono::seconds{5}};
    std::chrono::milliseconds max_backoff{std::chrono::seconds{60}};
    /// Between two looks at a watched run.
    std::chrono::milliseconds poll_interval{std::chrono::seconds{30}};
    /// An empty path stands for the latest.
    CheckpointStrategy checkpoint{};
    /// Whether the state of the optimizer is restored too.
    bool restore_optimizer{true};
    /// Called on the callback executor; what they throw is logged and otherwise ignored.
    std::function<void(Recovery const& recovery)> on_recovery{};
    std::function<void(std::string const& run_id, Error const& reason)> on_failure{};
    /// Runs that are being recovered at a time.
    int max_concurrent{1};

    /// With defaults in place of what cannot work.
    [[nodiscard]] RecoveryPolicy checked() const;
};

/// A run to be recovered.
struct RecoveryRequest {
    /// Empty: that of `client`.
    std::string run_id{};
    /// Given to `RecoveryPolicy::on_recovery`.
    TrainingClient client{};
    /// Restored whatever the policy says. Empty: as the policy says.
    std::string checkpoint{};
};

/// Makes models from the checkpoints of lost runs, in the order of the calls.
///
/// A cheap handle: copies share one queue. Every member may be called from any thread. What is
/// under way ends with `CancelledError` when the last handle goes away, and when the service
/// client is closed; `ServiceClient::status` shows it. An empty handle refuses with `UsageError`.
class RecoveryExecutor {
public:
    RecoveryExecutor() noexcept = default;
    RecoveryExecutor(ServiceClient service, RecoveryPolicy const& policy);

    /// Makes a model in place of a run, in as many attempts as the policy allows. Each has the
    /// deadlines and repetitions of the requests that it takes.
    ///
    /// Fails with `UsageError` if the policy is not enabled or the run is being recovered already,
    /// with `ValidationError` if its strategy is not supported, and else with the error of the last
    /// attempt.
    [[nodiscard]] Future<Recovery> recover(std::string run_id) const;
    [[nodiscard]] Future<Recovery> recover(TrainingClient const& client) const;
    [[nodiscard]] Future<Recovery> recover(RecoveryRequest request) const;

    /// As it counts; the default for an empty handle.
    [[nodiscard]] RecoveryPolicy policy() const;

private:
    friend class RecoveryMonitor;
    class Impl;
    std::shared_ptr<Impl> impl_{};
};

/// Looks after training runs, and has those recovered whose state the server has lost.
///
///     RecoveryMonitor monitor{service, {.enabled = true, .on_recovery = [](Recovery const& r) {
///         std::cerr << r.run_id << " goes on as " << r.client.model_id() << '\n';
///     }}};
///     auto recovered = monitor.watch(trainer);
///
/// A cheap handle: copies share what is watched. Every member may be called from any thread.
/// Watching ends with `CancelledError` when the last handle goes away, and when the service client
/// is closed; `ServiceClient::status` shows it. An empty handle has no executor.
class RecoveryMonitor {
public:
    RecoveryMonitor() noexcept = default;
    /// With an executor of its own.
    RecoveryMonitor(ServiceClient service, RecoveryPolicy const& policy);
    /// With one that others use too, and its policy.
    explicit RecoveryMonitor(RecoveryExecutor executor);

    /// Asks for the run's state now and again. Once the server says that the run is corrupted it is
    /// no longer watched, but recovered; the future then gives the new model. A failure to ask is
    /// told to observers, and shown, but changes nothing. Cancelling the future ends the watch.
    ///
    /// Fails with `UsageError` if the policy is not enabled, if there is no executor, or if the run
    /// is watched already, and else as `RecoveryExecutor::recover`.
    [[nodiscard]] Future<Recovery> watch(std::string run_id) const;
    [[nodiscard]] Future<Recovery> watch(TrainingClient const& client) const;
    /// Watches a run no longer. Harmless if it is not watched.
    void forget(std::string const& run_id) const;
    /// The runs that are watched, sorted.
    [[nodiscard]] Future<std::vector<std::string>> watched() const;

private:
    class Impl;
    [[nodiscard]] Future<Recovery> watch(std::string run_id, TrainingClient client) const;
    std::shared_ptr<Impl> impl_{};
};

}  // namespace tinkxx
