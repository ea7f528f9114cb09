#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/service.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::wire {

// The small messages of start-up, sessions and lookups. Every `encode_` gives a body, every
// `decode_` reads one; errors are of kind validation, their field is the place in the body.
// Durations that a server gives are kept between 0 and ten years, so that adding them to a time
// cannot overflow.

/// The body of client/config and client/dynamic_config.
[[nodiscard]] std::string encode_sdk_version(std::string_view sdk_version);

/// What the server says about how to talk to it (R-CONF-21), by the names it uses.
struct ClientFlags {
    bool pjwt_auth_enabled{false};
    std::string credential_default_source{"api_key"};
    /// Empty: not told, and then the baseline is not the official SDK's (R-CONF-22).
    std::optional<std::int64_t> sample_dispatch_bytes_semaphore_size{};
    std::int64_t inflight_response_bytes_semaphore_size{52'428'800};
    bool parallel_fwdbwd_chunks{true};
    bool proto_compress_fwdbwd{false};
    std::int64_t fwdbwd_max_chunk_len{1024};
    std::int64_t fwdbwd_max_chunk_bytes_count{5'000'000};
    std::int64_t fwdbwd_dispatch_bytes_semaphore_size{50'000'000};
    std::chrono::seconds billing_exception_max_pause_duration_sec{3600};
    bool sample_no_retries{false};
    bool sample_enable_stuck_detection{true};
    /// Empty: not told (R-CONF-22).
    std::optional<std::int64_t> sample_max_concurrent_requests{};
    /// Passed on in sampler handles; means nothing here.
    bool use_pyqwest_transport{true};
    bool create_model_via_load_weights{false};
    bool sample_use_retrieve_futures{false};
    bool sample_join_sampling_session{false};
    bool custom_loss_server_side{false};

    bool operator==(ClientFlags const&) const = default;
};
[[nodiscard]] std::string encode_client_flags(ClientFlags const& flags);
[[nodiscard]] Result<ClientFlags> decode_client_flags(std::string_view json);

/// What the server may change while a client runs (R-CONF-32).
struct DynamicFlags {
    std::chrono::seconds refresh_interval_sec{300};
    bool sample_cancel_enabled{false};
    std::int64_t sample_cancel_max_batch_size{64};

    bool operator==(DynamicFlags const&) const = default;
};
[[nodiscard]] std::string encode_dynamic_flags(DynamicFlags const& flags);
[[nodiscard]] Result<DynamicFlags> decode_dynamic_flags(std::string_view json);

/// auth/token: the body, and the token in the answer.
[[nodiscard]] std::string encode_auth_token_request();
/// Errors show nothing of the answer, which may be a secret.
[[nodiscard]] Result<std::string> decode_auth_token(std::string_view json);

/// create_session (R-SESS-01, R-SESS-04).
struct CreateSession {
    std::vector<std::string> tags{};
    std::map<std::string, std::string> user_metadata{};
    std::string sdk_version{};
    std::optional<std::string> project_id{};
    std::optional<std::string> display_name{};
};
[[nodiscard]] std::string encode_create_session(CreateSession const& request);
struct SessionCreated {
    std::string session_id{};
    std::optional<std::string> info_message{};
    std::optional<std::string> warning_message{};
    std::optional<std::string> error_message{};
};
[[nodiscard]] Result<SessionCreated> decode_session_created(std::string_view json);

/// The body of session_heartbeat; its answer says nothing.
[[nodiscard]] std::string encode_session_heartbeat(std::string_view session_id);

/// sessions/{id}/finish (R-SESS-22); void.
[[nodiscard]] std::string encode_finish(CloseReason reason,
                                        std::optional<std::string> const& detail);

/// create_sampling_session (R-SAMP-02).
struct CreateSamplingSession {
    std::string session_id{};
    std::int64_t sampling_session_seq_id{0};
    std::optional<std::string> base_model{};
    std::optional<std::string> model_path{};
};
[[nodiscard]] std::string encode_create_sampling_session(CreateSamplingSession const& request);
/// The id of the sampling session.
[[nodiscard]] Result<std::string> decode_sampling_session_created(std::string_view json);

/// join_sampling_session (R-SESS-36).
[[nodiscard]] std::string encode_join_sampling_session(std::string_view sampling_session_id);
/// The client counter.
[[nodiscard]] Result<std::int64_t> decode_sampling_session_joined(std::string_view json);

/// The answer to GET get_server_capabilities.
[[nodiscard]] Result<ServerCapabilities> decode_server_capabilities(std::string_view json);

/// The status in the answer to GET healthz, such as `ok`.
[[nodiscard]] Result<std::string> decode_healthz(std::string_view json);

}  // namespace tinkxx::wire
