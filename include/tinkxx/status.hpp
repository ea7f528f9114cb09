#pragma once

#include <tinkxx/types/queue_state.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx {

/// The stage that a pending operation is in.
enum class Stage : std::uint8_t {
    waiting_for_place,  ///< `ClientOptions::max_pending` samples are pending; the caller is blocked
    starting,           ///< the client fetches its configuration or creates its session
    waiting_for_credential,  ///< a token, or what the credential command prints
    creating_sampler,        ///< the sampling session is being created
    waiting_for_slot,        ///< `RetryConfig::max_connections` are under way
    waiting_for_count,       ///< `DispatchLimits::count` are being submitted
    throttled,               ///< only a few are submitted at a time after a recent 429
    waiting_for_bytes,       ///< `DispatchLimits::bytes` are being submitted
    encoding,                ///< a long prompt is being written
    backing_off,             ///< waits after a refusal for load (429)
    billing_pause,           ///< waits after a refusal for billing reasons (402)
    submitting,              ///< the request is on its way
    waiting_to_submit,       ///< waits before the request is sent again after a failure
    waiting_for_completion,  ///< accepted; waits for the completion poll
    waiting_for_download,    ///< done; waits for its share of the download budget
    polling,                 ///< accepted; its result is being requested
    waiting_to_poll,         ///< waits before its result is requested again
    decoding,                ///< a long result is being read
    waiting_to_retry,        ///< waits before the whole attempt is repeated
    streaming,               ///< its pieces are arriving
    waiting_for_turn,        ///< an earlier request of the same model has not been submitted
    computing_loss,          ///< the caller's loss function runs, or is queued to run
    closing,                 ///< the client ends its session and sends what is queued
};

[[nodiscard]] std::string_view to_string(Stage stage) noexcept;

/// One pending operation. Times are relative to the moment of the report.
struct OperationStatus {
    /// Unique within one client.
    std::uint64_t id{0};
    /// E.g. `sample`.
    std::string operation{};
    Stage stage{Stage::starting};
    /// Time in this stage, and time since the call.
    std::chrono::nanoseconds in_stage{0};
    std::chrono::nanoseconds age{0};
    /// What it waits for, in words, with the last failure if there was one. Never empty in a
    /// report.
    std::string why{};
    /// Time until the wait ends by itself; empty if another event has to end it.
    std::optional<std::chrono::nanoseconds> ends_in{};
    /// Time until the deadline; empty if there is none.
    std::optional<std::chrono::nanoseconds> deadline_in{};
    /// The attempt, counted from 1.
    std::int64_t attempt{0};
    /// How often its result was requested.
    std::int64_t polls{0};
    /// The service's id of the request; empty before it was accepted.
    std::string request_id{};
    /// What the service last reported about its queue.
    std::optional<QueueState> queue_state{};
    std::string queue_reason{};
    /// How long it has made no progress, because its requests fail or are refused, or because the
    /// current request has no answer. Empty while it is merely queued, accepted, or waiting for
    /// others.
    std::optional<std::chrono::nanoseconds> stalled{};
    /// Time until it stops retrying, if nothing changes; empty if there is no such limit, or if the
    /// limit is `deadline_in`.
    std::optional<std::chrono::nanoseconds> gives_up_in{};
};

/// `sample #12: backing off for 1.2 s, 3.8 s left (429 too many requests), attempt 2, 14 s old`.
[[nodiscard]] std::string to_string(OperationStatus const& status);

struct LimitStatus {
    /// Empty: no limit.
    std::optional<std::int64_t> free{};
    std::int64_t waiting{0};
};

struct BackoffStatus {
    /// Whether requests are held back, and for how much longer.
    bool active{false};
    std::optional<std::chrono::nanoseconds> ends_in{};
    /// Whether there was a refusal within the last ten seconds.
    bool recent{false};
};

/// Counters of a sampler's retries.
struct SamplerStats {
    std::int64_t waiting{0};
    std::int64_t in_progress{0};
    std::int64_t processed{0};
    std::int64_t retries{0};
    /// How often each error occurred since the last progress line in the log.
    std::map<std::string, std::int64_t> errors{};
    /// Time since the last success.
    std::chrono::nanoseconds since_progress{0};
    /// The request number of the next attempt.
    std::int64_t next_sequence_id{0};
};

/// A snapshot of what a client is doing.
struct ServiceStatus {
    /// Empty until the session exists.
    std::string session_id{};
    /// Oldest first.
    std::vector<OperationStatus> pending{};
    LimitStatus count{};
    LimitStatus throttled{};
    LimitStatus bytes{};
    LimitStatus download{};
    /// Bytes of forward and backward passes that are being submitted.
    LimitStatus training_bytes{};
    BackoffStatus backoff{};
    /// How long requests have been refused for billing reasons; empty if they are not.
    std::optional<std::chrono::nanoseconds> billing_pause{};
    /// Telemetry events that are queued.
    std::size_t telemetry_queued{0};
};

}  // namespace tinkxx
