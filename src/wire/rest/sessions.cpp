#include "wire/rest/sessions.hpp"

#include "wire/json/json.hpp"
#include "wire/rest/values.hpp"

#include <vector>

namespace tinkxx::wire {

static void read(JsonIn const& in, SamplerInfo& out) {
    out.sampler_id = in.required<std::string>("sampler_id");
    out.base_model = in.required<std::string>("base_model");
    out.model_path = in.optional<std::string>("model_path");
}

Result<SamplerInfo> decode_sampler_info(std::string_view json) {
    return decode_json<SamplerInfo>("get_sampler", json);
}

static void read(JsonIn const& in, SessionPage& out) {
    out.sessions = in.required<std::vector<std::string>>("sessions");
}

Result<SessionPage> decode_sessions(std::string_view json) {
    return decode_json<SessionPage>("list_sessions", json);
}

static void read(JsonIn const& in, SessionInfo& out) {
    out.training_run_ids = in.required<std::vector<std::string>>("training_run_ids");
    out.sampler_ids = in.required<std::vector<std::string>>("sampler_ids");
    out.user_metadata = in.optional<UserMetadata>("user_metadata");
    out.display_name = in.optional<std::string>("display_name");
}

Result<SessionInfo> decode_session(std::string_view json) {
    return decode_json<SessionInfo>("get_session", json);
}

std::string encode_project(std::string_view project_id) {
    std::string out;
    JsonOut json{out};
    json.open_object();
    json.member("project_id", project_id);
    json.close_object();
    return out;
}

// Search ----------------------------------------------------------------------------------------

namespace {

std::string_view reason_name(CloseReason reason) noexcept {
    switch (reason) {
        case CloseReason::errored:
            return "errored";
        case CloseReason::interrupted:
            return "interrupted";
        case CloseReason::success:
            break;
    }
    return "success";
}

void write(JsonOut& json, SessionOwner const& owner) {
    json.open_object();
    if (auto const* users = std::get_if<SessionsOfUsers>(&owner)) {
        json.member("type", "user");
        json.key("owner_urns");
        json.list(users->owner_urns);
    } else {
        json.member("type",
                    std::holds_alternative<AccessibleSessions>(owner) ? "accessible" : "own");
    }
    json.close_object();
}

void write(JsonOut& json, std::vector<SessionStateFilter> const& filters) {
    json.open_array();
    for (auto const& filter : filters) {
        json.open_object();
        json.member("type", to_string(filter.state));
        if (!filter.reasons.empty()) {
            json.key("reasons");
            json.open_array();
            for (auto const reason : filter.reasons) json.value(reason_name(reason));
            json.close_array();
        }
        json.close_object();
    }
    json.close_array();
}

}  // namespace

std::string encode_session_search(SessionSearch const& search) {
    std::string out;
    JsonOut json{out};
    json.open_object();
    json.member("session_id", search.session_id);
    if (!search.project_ids.empty()) {
        json.key("project_ids");
        json.list(search.project_ids);
    }
    json.key("user_metadata");
    json.open_object();
    for (auto const& [name, text] : search.user_metadata) json.member(name, text);
    json.close_object();
    json.member("display_name", search.display_name);
    json.key("owner");
    write(json, search.owner);
    if (!search.statuses.empty()) {
        json.key("statuses");
        write(json, search.statuses);
    }
    json.member("limit", search.limit);
    if (search.cursor) {
        json.key("cursor");
        json.open_object();
        json.member("last_created_at", search.cursor->last_created_at);
        json.member("last_session_id", search.cursor->last_session_id);
        json.close_object();
    }
    json.close_object();
    return out;
}

namespace {

/// Why a session ended: of which kind, and what failed.
struct EndReason {
    std::string type{};
    std::optional<std::string> request_id{};
    std::optional<std::string> request_type{};
    std::optional<std::string> training_run_id{};
    std::optional<std::string> sampling_session_id{};
};

void read(JsonIn const& in, EndReason& out) {
    out.type = in.required<std::string>("type");
    out.request_id = in.optional<std::string>("request_id");
    out.request_type = in.optional<std::string>("request_type");
    out.training_run_id = in.optional<std::string>("training_run_id");
    out.sampling_session_id = in.optional<std::string>("sampling_session_id");
}

}  // namespace

static void read(JsonIn const& in, SessionStatus& out) {
    out.type = in.required<std::string>("type");
    // What a state that nobody here knows says otherwise may be of any form (R-REST-05).
    bool const finished = out.type == to_string(SessionState::client_finished);
    bool const failed = out.type == to_string(SessionState::failed);
    if (finished || out.type == to_string(SessionState::cancelled)) {
        out.detail = in.optional<std::string>("detail");
    }
    if (failed) {
        out.category = in.optional<std::string>("category");
        out.message = in.optional<std::string>("message");
    }
    if (!finished && !failed) return;
    if (auto reason = in.optional<EndReason>("reason")) {
        out.reason = std::move(reason->type);
        out.request_id = std::move(reason->request_id);
        out.request_type = std::move(reason->request_type);
        out.training_run_id = std::move(reason->training_run_id);
        out.sampling_session_id = std::move(reason->sampling_session_id);
    }
}

static void read(JsonIn const& in, SessionSummary& out) {
    out.session_id = in.required<std::string>("session_id");
    out.owner = in.required<std::string>("owner");
    out.project_id = in.required<std::string>("project_id");
    out.created_at = in.required<Timestamp>("created_at");
    out.checkpoints_count = in.required<std::int64_t>("checkpoints_count");
    out.display_name = in.optional<std::string>("display_name");
    out.user_metadata = in.optional<UserMetadata>("user_metadata");
    out.checkpoint_storage_bytes = in.optional<std::int64_t>("checkpoint_storage_bytes");
    out.status = in.optional<SessionStatus>("status");
}

static void read(JsonIn const& in, SessionCursor& out) {
    out.last_created_at = in.required<std::string>("last_created_at");
    out.last_session_id = in.required<std::string>("last_session_id");
}

static void read(JsonIn const& in, SessionSearchPage& out) {
    out.sessions = in.required<std::vector<SessionSummary>>("sessions");
    out.next_cursor = in.optional<SessionCursor>("next_cursor");
}

Result<SessionSearchPage> decode_session_search(std::string_view json) {
    return decode_json<SessionSearchPage>("search_sessions", json);
}

// Traces ----------------------------------------------------------------------------------------

static void read(JsonIn const& in, TraceExport& out) {
    using State = TraceExport::State;
    auto const status = in.required<std::string>("status");
    if (status == "ready") {
        out.state = State::ready;
        out.url = in.required<std::string>("url");
    } else if (status == "failed") {
        out.state = State::failed;
        out.error = in.optional<std::string>("error").value_or("");
    } else if (status != "pending") {
        in.fail("an export that is pending, ready or failed");
    }
}

Result<TraceExport> decode_trace_export(std::string_view json) {
    return decode_json<TraceExport>("export_session_trace", json);
}

}  // namespace tinkxx::wire
