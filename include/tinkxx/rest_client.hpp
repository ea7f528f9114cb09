#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/listing.hpp>
#include <tinkxx/status.hpp>
#include <tinkxx/types/checkpoint.hpp>
#include <tinkxx/types/download.hpp>
#include <tinkxx/types/service.hpp>
#include <tinkxx/types/session.hpp>
#include <tinkxx/types/training.hpp>
#include <tinkxx/types/training_run.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx {

struct ClientOptions;

/// What an account has made: runs, checkpoints, sessions and samplers, to be listed, inspected,
/// published, expired and deleted.
///
///     RestClient rest;                                          // key from $TINKER_API_KEY
///     for (auto const& run : rest.training_runs()) std::cout << run.training_run_id << '\n';
///     rest.set_checkpoint_ttl("tinker://run/weights/step-10", std::chrono::hours{24}).get();
///
/// Needs no session. Where a run is asked for, its id will do as well as the path of one of its
/// checkpoints; a checkpoint is named in one of two ways, see `CheckpointRef`.
///
/// Calls return at once. Futures fail with `ValidationError` for arguments that cannot work, before
/// anything is sent, and for answers that cannot be read; `StatusError` if the service refuses the
/// request, `ConnectionError` if it cannot be reached for five minutes, and `ClosedError` after the
/// client was closed.
///
/// A cheap handle: copies share one client. Every member may be called from any thread, also in a
/// callback: none blocks, but for the iterators of a `Listing`. Calls under way need no handle.
class RestClient {
public:
    /// With options from the environment. Throws as below.
    RestClient();
    /// Throws `ValidationError`, naming field and value, for options that cannot work.
    explicit RestClient(ClientOptions options);

    /// This client, with calls that are made so: their deadline and metadata. What else there is in
    /// `CallOptions` is about samples and training.
    [[nodiscard]] RestClient with(CallOptions call) const;

    // Training runs

    /// One run, by its id or by the path of one of its checkpoints.
    [[nodiscard]] Future<TrainingRun> get_training_run(std::string run) const;
    [[nodiscard]] Future<TrainingRun> get_training_run(std::string run, AccessScope scope) const;
    /// One page of runs, 20 by default, the one used last first.
    [[nodiscard]] Future<TrainingRunPage> list_training_runs() const;
    [[nodiscard]] Future<TrainingRunPage> list_training_runs(TrainingRunQuery query) const;
    /// All runs, 100 at a time by default.
    [[nodiscard]] Listing<TrainingRun> training_runs() const;
    [[nodiscard]] Listing<TrainingRun> training_runs(TrainingRunQuery query) const;

    // Checkpoints

    /// The checkpoints of one run, all at once.
    [[nodiscard]] Future<CheckpointPage> list_checkpoints(std::string training_run_id) const;
    /// One page of the checkpoints of all runs, 100 by default, newest first.
    [[nodiscard]] Future<CheckpointPage> list_user_checkpoints() const;
    [[nodiscard]] Future<CheckpointPage> list_user_checkpoints(PageQuery query) const;
    /// The checkpoints of all runs, 100 at a time by default.
    [[nodiscard]] Listing<Checkpoint> user_checkpoints() const;
    [[nodiscard]] Listing<Checkpoint> user_checkpoints(PageQuery query) const;
    /// What a model has to be like to load these weights.
    [[nodiscard]] Future<WeightsInfo> get_weights_info(std::string path) const;

    /// Deletes a checkpoint for good.
    [[nodiscard]] Future<void> delete_checkpoint(CheckpointRef const& checkpoint) const;
    /// Lets everybody load a checkpoint, or nobody else again. Fails with `StatusError` 409 if that
    /// is so already.
    [[nodiscard]] Future<void> publish_checkpoint(CheckpointRef const& checkpoint) const;
    [[nodiscard]] Future<void> unpublish_checkpoint(CheckpointRef const& checkpoint) const;
    /// Has a checkpoint deleted after so long; empty: no more. The hosted service takes an hour to
    /// ten years.
    [[nodiscard]] Future<void> set_checkpoint_ttl(CheckpointRef const& checkpoint,
                                                  std::optional<std::chrono::seconds> ttl) const;
    /// As `ServiceClient::copy_weights`.
    [[nodiscard]] Future<std::string> copy_weights(std::string path) const;
    [[nodiscard]] Future<std::string> copy_weights(std::string path,
                                                   CopyWeightsOptions options) const;

    /// Where a checkpoint can be fetched as a tar file. Waits while the server builds it, for two
    /// and a half minutes at most. Newer servers make no such files and refuse with `StatusError`.
    [[nodiscard]] Future<ArchiveUrl> get_checkpoint_archive_url(
        CheckpointRef const& checkpoint) const;
    /// Where the files of external weights can be fetched,
    /// `tinker://<run>/external_weights/<name>`.
    [[nodiscard]] Future<ExternalWeightsUrls> get_external_weights_urls(
        CheckpointRef const& checkpoint) const;

    /// Fetches the files of a checkpoint into a folder of their own: those of external weights, or
    /// of an archive, which is taken apart. Several parts at once, with little memory.
    ///
    /// What a download that failed, was cancelled or killed has fetched is kept in
    /// `<target>.partial`, and the next download of the same checkpoint to there goes on with it if
    /// the server tells versions of a file apart. The target appears once everything is there.
    /// Nothing that is there is replaced. Checksums are compared where the server gives some; an
    /// archive with links, devices, or names that lead elsewhere is refused, and removed.
    ///
    /// Fails with `ValidationError` for a target that is there, and for what cannot be written.
    [[nodiscard]] Future<DownloadedCheckpoint> download_checkpoint(
        CheckpointRef const& checkpoint) const;
    [[nodiscard]] Future<DownloadedCheckpoint> download_checkpoint(CheckpointRef const& checkpoint,
                                                                   DownloadOptions options) const;

    // Sessions and samplers

    /// One page of ids of sessions, 20 by default, newest first.
    [[nodiscard]] Future<SessionPage> list_sessions() const;
    [[nodiscard]] Future<SessionPage> list_sessions(SessionQuery query) const;
    /// The ids of all sessions, 100 at a time by default.
    [[nodiscard]] Listing<std::string> sessions() const;
    [[nodiscard]] Listing<std::string> sessions(SessionQuery query) const;
    [[nodiscard]] Future<SessionInfo> get_session(std::string session_id) const;
    [[nodiscard]] Future<SessionInfo> get_session(std::string session_id, AccessScope scope) const;
    /// One page of the sessions that fit, newest first. The service calls this experimental.
    [[nodiscard]] Future<SessionSearchPage> search_sessions(SessionSearch search) const;
    /// All sessions that fit.
    [[nodiscard]] Listing<SessionSummary> found_sessions(SessionSearch search) const;
    [[nodiscard]] Future<void> assign_session_project(std::string session_id,
                                                      std::string project_id) const;
    /// Where the trace of a session can be fetched, for about an hour, once the server has
    /// collected it. Fails with `RequestFailedError` if the server could not.
    [[nodiscard]] Future<std::string> export_session_trace(std::string session_id) const;
    [[nodiscard]] Future<SamplerInfo> get_sampler(std::string sampler_id) const;

    // The service

    /// These are as those of `ServiceClient`.
    [[nodiscard]] Future<ServerCapabilities> get_server_capabilities() const;
    [[nodiscard]] Future<std::string> health() const;
    [[nodiscard]] Future<void> check_access() const;
    [[nodiscard]] Future<Identity> whoami() const;
    /// What this client is doing; with the service client that it was made from, if it was.
    [[nodiscard]] Future<ServiceStatus> status() const;

    /// Ends the calls under way with `CancelledError` and sends what telemetry is left; later calls
    /// fail with `ClosedError`. A client that was made from a `ServiceClient` is closed by that
    /// one, and this does nothing.
    Future<void> close() const;

    [[nodiscard]] Runtime const& runtime() const noexcept;

private:
    friend class ServiceClient;
    class Impl;
    explicit RestClient(std::shared_ptr<Impl const> impl) noexcept;

    std::shared_ptr<Impl const> impl_;
};

}  // namespace tinkxx
