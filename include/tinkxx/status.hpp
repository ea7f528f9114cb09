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

/// Where a pending operation stands.
enum class Stage : std::uint8_t {
    waiting_for_place,       ///< `ClientOptions::max_pending` are pending; its caller is blocked
    starting,                ///< the client fetches its configuration or creates its session
    waiting_for_credential,  ///< a token, or what the credential command prints
    creating_sampler,        ///< the sampling session is being created
    waiting_for_slot,        ///< `RetryConfig::max_connections` are under way
    waiting_for_count,       ///< `DispatchLimits::count` are being submitted
    throttled,               ///< after a recent refusal few are submitted at a time
    waiting_for_bytes,       ///< `DispatchLimits::bytes` are being submitted
    encoding,                ///< a long prompt is being written
    backing_off,             ///< the service refused a request for load (429)
    billing_pause,           ///< the service refused a request for payment (402)
    submitting,              ///< the request is on its way
    waiting_to_submit,       ///< until it is sent again after a failure
    waiting_for_completion,  ///< accepted; the completion poll will tell
    waiting_for_download,    ///< done; too many bytes of results are being fetched
    polling,                 ///< accepted; asked for its result
    waiting_to_poll,         ///< until it is asked for again
    decoding,                ///< a long result is being read
    waiting_to_retry,        ///< until the whole attempt is made again
    streaming,               ///< its pieces come in
    waiting_for_turn,        ///< an earlier request of the same model is not submitted yet
    computing_loss,          ///< the caller's loss function runs, or waits to
    closing,                 ///< the client ends its session and sends what is left
};

[[nodiscard]] std::string_view to_string(Stage stage) noexcept;

/// One pending operation. Times are relative to the moment of the report.
struct OperationStatus {
    /// Tells operations of one client apart.
    std::uint64_t id{0};
    /// E.g. `sample`.
    std::string operation{};
    Stage stage{Stage::starting};
    /// Since when it stands there, and since when it exists.
    std::chrono::nanoseconds in_stage{0};
    std::chrono::nanoseconds age{0};
    /// What it waits for, in words; the last failure if there was one. Never empty in a report.
    std::string why{};
    /// When the wait ends by itself; empty if another event ends it.
    std::optional<std::chrono::nanoseconds> ends_in{};
    /// When the operation fails at the latest; empty if it has no deadline.
    std::optional<std::chrono::nanoseconds> deadline_in{};
    /// 1 for the first.
    std::int64_t attempt{0};
    /// Times that its result was asked for.
    std::int64_t polls{0};
    /// Of the service; empty before it accepted the request.
    std::string request_id{};
    /// What the service last said about its queue.
    std::optional<QueueState> queue_state{};
    std::string queue_reason{};
    /// How long it has made no progress: its requests failed or were refused since, or the request
    /// under way has no answer yet. Empty while it is well: queued, accepted, or waiting for
    /// others.
    std::optional<std::chrono::nanoseconds> stalled{};
    /// When it stops to try again, if nothing changes; empty if it has no such limit, or the limit
    /// is `deadline_in`.
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
    /// Whether requests are being held back, and for how much longer.
    bool active{false};
    std::optional<std::chrono::nanoseconds> ends_in{};
    /// Whether there was one within the last ten seconds.
    bool recent{false};
};

/// What a sampler's retry engine did so far.
struct SamplerStats {
    std::int64_t waiting{0};
    std::int64_t in_progress{0};
    std::int64_t processed{0};
    std::int64_t retries{0};
    /// How often each error occurred since the last progress line of the log.
    std::map<std::string, std::int64_t> errors{};
    /// Since the last success.
    std::chrono::nanoseconds since_progress{0};
    /// The number that the next attempt is submitted with.
    std::int64_t next_sequence_id{0};
};

/// What a client is doing, at one moment.
struct ServiceStatus {
    /// Empty until there is one.
    std::string session_id{};
    /// Oldest first.
    std::vector<OperationStatus> pending{};
    LimitStatus count{};
    LimitStatus throttled{};
    LimitStatus bytes{};
    LimitStatus download{};
    /// Of forward and backward passes that are being submitted.
    LimitStatus training_bytes{};
    BackoffStatus backoff{};
    /// Since when requests are refused for payment; empty if they are not.
    std::optional<std::chrono::nanoseconds> billing_pause{};
    /// Telemetry events that wait to be sent.
    std::size_t telemetry_queued{0};
};

}  // namespace tinkxx
