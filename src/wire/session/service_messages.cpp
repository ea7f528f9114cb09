#include "wire/session/service_messages.hpp"

#include "wire/json/json.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::wire {

namespace {

using std::chrono::seconds;

seconds duration_or(JsonIn const& in, std::string_view name, seconds otherwise) {
    constexpr seconds most = std::chrono::hours{24 * 365 * 10};
    return seconds{std::clamp<std::int64_t>(in.member_or<std::int64_t>(name, otherwise.count()), 0,
                                            most.count())};
}

}  // namespace

std::string encode_sdk_version(std::string_view sdk_version) {
    return json_object([&](JsonOut& json) { json.member("sdk_version", sdk_version); });
}

std::string encode_client_flags(ClientFlags const& flags) {
    return json_object([&](JsonOut& json) {
        json.member("pjwt_auth_enabled", flags.pjwt_auth_enabled);
        json.member("credential_default_source", flags.credential_default_source);
        json.member("sample_dispatch_bytes_semaphore_size",
                    flags.sample_dispatch_bytes_semaphore_size);
        json.member("inflight_response_bytes_semaphore_size",
                    flags.inflight_response_bytes_semaphore_size);
        json.member("parallel_fwdbwd_chunks", flags.parallel_fwdbwd_chunks);
        json.member("proto_compress_fwdbwd", flags.proto_compress_fwdbwd);
        json.member("fwdbwd_max_chunk_len", flags.fwdbwd_max_chunk_len);
        json.member("fwdbwd_max_chunk_bytes_count", flags.fwdbwd_max_chunk_bytes_count);
        json.member("fwdbwd_dispatch_bytes_semaphore_size",
                    flags.fwdbwd_dispatch_bytes_semaphore_size);
        json.member("billing_exception_max_pause_duration_sec",
                    flags.billing_exception_max_pause_duration_sec.count());
        json.member("sample_no_retries", flags.sample_no_retries);
        json.member("sample_enable_stuck_detection", flags.sample_enable_stuck_detection);
        json.member("sample_max_concurrent_requests", flags.sample_max_concurrent_requests);
        json.member("use_pyqwest_transport", flags.use_pyqwest_transport);
        json.member("create_model_via_load_weights", flags.create_model_via_load_weights);
        json.member("sample_use_retrieve_futures", flags.sample_use_retrieve_futures);
        json.member("sample_join_sampling_session", flags.sample_join_sampling_session);
        json.member("custom_loss_server_side", flags.custom_loss_server_side);
    });
}

static void read(JsonIn const& in, ClientFlags& out) {
    auto const flag = [&in](std::string_view name, auto& member) {
        member = in.member_or(name, member);
    };
    flag("pjwt_auth_enabled", out.pjwt_auth_enabled);
    flag("credential_default_source", out.credential_default_source);
    out.sample_dispatch_bytes_semaphore_size =
        in.optional<std::int64_t>("sample_dispatch_bytes_semaphore_size");
    flag("inflight_response_bytes_semaphore_size", out.inflight_response_bytes_semaphore_size);
    flag("parallel_fwdbwd_chunks", out.parallel_fwdbwd_chunks);
    flag("proto_compress_fwdbwd", out.proto_compress_fwdbwd);
    flag("fwdbwd_max_chunk_len", out.fwdbwd_max_chunk_len);
    flag("fwdbwd_max_chunk_bytes_count", out.fwdbwd_max_chunk_bytes_count);
    flag("fwdbwd_dispatch_bytes_semaphore_size", out.fwdbwd_dispatch_bytes_semaphore_size);
    out.billing_exception_max_pause_duration_sec =
        duration_or(in, "billing_exception_max_pause_duration_sec",
                    out.billing_exception_max_pause_duration_sec);
    flag("sample_no_retries", out.sample_no_retries);
    flag("sample_enable_stuck_detection", out.sample_enable_stuck_detection);
    out.sample_max_concurrent_requests =
        in.optional<std::int64_t>("sample_max_concurrent_requests");
    flag("use_pyqwest_transport", out.use_pyqwest_transport);
    flag("create_model_via_load_weights", out.create_model_via_load_weights);
    flag("sample_use_retrieve_futures", out.sample_use_retrieve_futures);
    flag("sample_join_sampling_session", out.sample_join_sampling_session);
    flag("custom_loss_server_side", out.custom_loss_server_side);
}

Result<ClientFlags> decode_client_flags(std::string_view json) {
    return decode_json<ClientFlags>("client config", json);
}

std::string encode_dynamic_flags(DynamicFlags const& flags) {
    return json_object([&](JsonOut& json) {
        json.member("refresh_interval_sec", flags.refresh_interval_sec.count());
        json.member("sample_cancel_enabled", flags.sample_cancel_enabled);
        json.member("sample_cancel_max_batch_size", flags.sample_cancel_max_batch_size);
    });
}

static void read(JsonIn const& in, DynamicFlags& out) {
    out.refresh_interval_sec = duration_or(in, "refresh_interval_sec", out.refresh_interval_sec);
    out.sample_cancel_enabled = in.member_or("sample_cancel_enabled", out.sample_cancel_enabled);
    out.sample_cancel_max_batch_size =
        in.member_or("sample_cancel_max_batch_size", out.sample_cancel_max_batch_size);
}

Result<DynamicFlags> decode_dynamic_flags(std::string_view json) {
    return decode_json<DynamicFlags>("dynamic config", json);
}

std::string encode_auth_token_request() { return "{}"; }

namespace {
struct AuthToken {
    std::string jwt{};
};
void read(JsonIn const& in, AuthToken& out) { out.jwt = in.required<std::string>("jwt"); }
}  // namespace

Result<std::string> decode_auth_token(std::string_view json) {
    auto token = decode_json<AuthToken>("auth token", json);
    if (token) return std::move(token->jwt);
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.field = token.error().field();
    details.message =
        "auth token: the answer has no text member jwt; check that TINKER_BASE_URL or "
        "ClientOptions::base_url names a Tinker server";
    return details;
}

std::string encode_create_session(CreateSession const& request) {
    return json_object([&](JsonOut& json) {
        json.key("tags");
        json.list(request.tags);
        json.key("user_metadata");
        json.open_object();
        for (auto const& [name, text] : request.user_metadata) json.member(name, text);
        json.close_object();
        json.member("sdk_version", request.sdk_version);
        json.member("project_id", request.project_id);
        json.member("display_name", request.display_name);
        json.member("type", "create_session");
    });
}

static void read(JsonIn const& in, SessionCreated& out) {
    in.tag("type", "create_session");
    out.session_id = in.required<std::string>("session_id");
    out.info_message = in.optional<std::string>("info_message");
    out.warning_message = in.optional<std::string>("warning_message");
    out.error_message = in.optional<std::string>("error_message");
}

Result<SessionCreated> decode_session_created(std::string_view json) {
    return decode_json<SessionCreated>("create_session", json);
}

std::string encode_session_heartbeat(std::string_view session_id) {
    return json_object([&](JsonOut& json) {
        json.member("session_id", session_id);
        json.member("type", "session_heartbeat");
    });
}

static std::string_view to_string(CloseReason reason) noexcept {
    switch (reason) {
        case CloseReason::success:
            return "success";
        case CloseReason::errored:
            return "errored";
        case CloseReason::interrupted:
            return "interrupted";
    }
    return "errored";
}

std::string encode_finish(CloseReason reason, std::optional<std::string> const& detail) {
    return json_object([&](JsonOut& json) {
        json.key("reason");
        json.open_object();
        json.member("type", to_string(reason));
        json.close_object();
        json.key("detail");
        if (detail) {
            json.value(*detail);
        } else {
            json.null();
        }
    });
}

std::string encode_create_sampling_session(CreateSamplingSession const& request) {
    return json_object([&](JsonOut& json) {
        json.member("session_id", request.session_id);
        json.member("sampling_session_seq_id", request.sampling_session_seq_id);
        json.member("base_model", request.base_model);
        json.member("model_path", request.model_path);
        json.member("type", "create_sampling_session");
    });
}

namespace {
struct SamplingSessionCreated {
    std::string sampling_session_id{};
};
void read(JsonIn const& in, SamplingSessionCreated& out) {
    in.tag("type", "create_sampling_session");
    out.sampling_session_id = in.required<std::string>("sampling_session_id");
}
}  // namespace

Result<std::string> decode_sampling_session_created(std::string_view json) {
    auto answer = decode_json<SamplingSessionCreated>("create_sampling_session", json);
    if (!answer) return answer.error();
    return std::move(answer->sampling_session_id);
}

std::string encode_join_sampling_session(std::string_view sampling_session_id) {
    return json_object([&](JsonOut& json) {
        json.member("sampling_session_id", sampling_session_id);
        json.member("type", "join_sampling_session");
    });
}

namespace {
struct SamplingSessionJoined {
    std::int64_t client_counter{0};
};
void read(JsonIn const& in, SamplingSessionJoined& out) {
    in.tag("type", "join_sampling_session");
    out.client_counter = in.required<std::int64_t>("client_counter");
}
}  // namespace

Result<std::int64_t> decode_sampling_session_joined(std::string_view json) {
    auto const answer = decode_json<SamplingSessionJoined>("join_sampling_session", json);
    if (!answer) return answer.error();
    return answer->client_counter;
}

static void read(JsonIn const& in, SupportedModel& out) {
    out.model_name = in.optional<std::string>("model_name");
    out.max_context_length = in.optional<std::int64_t>("max_context_length");
    out.trainable = in.optional<bool>("trainable");
    out.sampleable = in.optional<bool>("sampleable");
}

static void read(JsonIn const& in, ServerCapabilities& out) {
    out.supported_models = in.required<std::vector<SupportedModel>>("supported_models");
}

Result<ServerCapabilities> decode_server_capabilities(std::string_view json) {
    return decode_json<ServerCapabilities>("get_server_capabilities", json);
}

namespace {
struct Health {
    std::string status{};
};
void read(JsonIn const& in, Health& out) { out.status = in.required<std::string>("status"); }
}  // namespace

Result<std::string> decode_healthz(std::string_view json) {
    auto answer = decode_json<Health>("healthz", json);
    if (!answer) return answer.error();
    return std::move(answer->status);
}

}  // namespace tinkxx::wire
