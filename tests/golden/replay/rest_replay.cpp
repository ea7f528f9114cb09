// Calls of REST and admin clients as the official SDK names them.
#include "golden/replay/rest_replay.hpp"

#include <tinkxx/admin_client.hpp>
#include <tinkxx/rest_client.hpp>

#include "golden/recordings/recorded_call.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tinkxx::golden {
namespace {

/// What a call is made with.
struct RestCall {
    StubService& stub;
    ServiceClient const& service;
    RestClient rest;
    AdminClient admin;
    value const& args;
    std::string const& version;
};

// Values ------------------------------------------------------------------------------------------

/// As Python writes it.
value python_time(Timestamp const& time) {
    auto text = to_string(time);
    if (text.ends_with('Z')) text.replace(text.size() - 1, 1, "+00:00");
    return value(text);
}

template <class T>
value given(std::optional<T> const& content) {
    return content ? boost::json::value_from(*content) : value(nullptr);
}

value given_time(std::optional<Timestamp> const& time) {
    return time ? python_time(*time) : value(nullptr);
}

value listed(BillingUsageEvent const& event);
value listed(CheckpointStorage const& storage);
value listed(AuditLogEntry const& entry);
value listed(Checkpoint const& checkpoint);
value listed(TrainingRun const& run);

template <class T>
value list_of(std::vector<T> const& all) {
    boost::json::array out;
    for (auto const& each : all) out.push_back(listed(each));
    return out;
}

value listed(Checkpoint const& checkpoint) {
    return {{"checkpoint_id", checkpoint.checkpoint_id},
            {"checkpoint_type", checkpoint.checkpoint_type},
            {"time", python_time(checkpoint.time)},
            {"tinker_path", checkpoint.tinker_path},
            {"size_bytes", given(checkpoint.size_bytes)},
            {"public", checkpoint.is_public},
            {"user_metadata", given(checkpoint.user_metadata)},
            {"expires_at", given_time(checkpoint.expires_at)}};
}

value listed(TrainingRun const& run) {
    auto const last = [](std::optional<Checkpoint> const& checkpoint) {
        return checkpoint ? listed(*checkpoint) : value(nullptr);
    };
    return {{"training_run_id", run.training_run_id},
            {"base_model", run.base_model},
            {"model_owner", run.model_owner},
            {"is_lora", run.is_lora},
            {"corrupted", run.corrupted},
            {"lora_rank", given(run.lora_rank)},
            {"last_request_time", python_time(run.last_request_time)},
            {"last_checkpoint", last(run.last_checkpoint)},
            {"last_sampler_checkpoint", last(run.last_sampler_checkpoint)},
            {"user_metadata", given(run.user_metadata)}};
}

value listed(Cursor const& cursor) {
    return {
        {"offset", cursor.offset}, {"limit", cursor.limit}, {"total_count", cursor.total_count}};
}

value listed(TrainingRunPage const& page) {
    return {{"training_runs", list_of(page.training_runs)}, {"cursor", listed(page.cursor)}};
}

value listed(CheckpointPage const& page) {
    return {{"checkpoints", list_of(page.checkpoints)},
            {"cursor", page.cursor ? listed(*page.cursor) : value(nullptr)}};
}

value listed(SessionPage const& page) {
    return {{"sessions", boost::json::value_from(page.sessions)}};
}

value listed(SessionInfo const& session) {
    return {{"training_run_ids", boost::json::value_from(session.training_run_ids)},
            {"sampler_ids", boost::json::value_from(session.sampler_ids)},
            {"user_metadata", given(session.user_metadata)},
            {"display_name", given(session.display_name)}};
}

value listed(SamplerInfo const& sampler) {
    return {{"sampler_id", sampler.sampler_id},
            {"base_model", sampler.base_model},
            {"model_path", given(sampler.model_path)}};
}

value listed(SessionSearchPage const& page) {
    EXPECT_TRUE(page.sessions.empty()) << "nobody here compares them";
    EXPECT_FALSE(page.next_cursor);
    return {{"sessions", boost::json::array{}}, {"next_cursor", nullptr}};
}

value listed(WeightsInfo const& info) {
    return {{"base_model", info.base_model},
            {"is_lora", info.is_lora},
            {"lora_rank", given(info.lora_rank)},
            {"train_unembed", given(info.train_unembed)},
            {"train_mlp", given(info.train_mlp)},
            {"train_attn", given(info.train_attn)},
            {"optimizer_config", {{"type", std::string{optimizer_family(info.optimizer_config)}}}}};
}

value listed(ExternalWeightsUrls const& links) {
    return {{"urls", boost::json::value_from(links.urls)}, {"expires", python_time(links.expires)}};
}

value listed(BillingUsageEvent const& event) {
    auto const& info = event.event_info;
    boost::json::object kind{{"type", info.type}};
    if (info.token_count) kind["token_count"] = *info.token_count;
    if (info.cached) kind["cached"] = *info.cached;
    if (info.count) kind["count"] = *info.count;
    if (info.gigabyte_hours) kind["gigabyte_hours"] = *info.gigabyte_hours;
    return {{"bucket_start", python_time(event.bucket_start)},
            {"bucket_end", python_time(event.bucket_end)},
            {"base_model", given(event.base_model)},
            {"user_id", given(event.user_id)},
            {"user_name", given(event.user_name)},
            {"session_id", given(event.session_id)},
            {"project_id", given(event.project_id)},
            {"estimated_cost_usd", given(event.estimated_cost_usd)},
            {"effective_rate_usd_per_million_tokens",
             given(event.effective_rate_usd_per_million_tokens)},
            {"effective_rate_usd_per_gigabyte_month",
             given(event.effective_rate_usd_per_gigabyte_month)},
            {"event_info", kind}};
}

value listed(BillingUsage const& usage) {
    boost::json::object sessions;
    for (auto const& [id, session] : usage.sessions) {
        sessions[id] = {{"user_metadata", given(session.user_metadata)}};
    }
    return {{"data", list_of(usage.data)},
            {"sessions", sessions},
            {"cost_data_through", given_time(usage.cost_data_through)}};
}

value listed(CheckpointStorage const& storage) {
    return {{"project_id", given(storage.project_id)},
            {"org_user_urn", given(storage.org_user_urn)},
            {"user_email", given(storage.user_email)},
            {"user_name", given(storage.user_name)},
            {"checkpoint_count", storage.checkpoint_count},
            {"size_bytes", storage.size_bytes},
            {"size_gigabytes", storage.size_gigabytes},
            {"estimated_monthly_cost_usd", given(storage.estimated_monthly_cost_usd)}};
}

value listed(CheckpointStorageUsage const& usage) {
    return {{"effective_rate_usd_per_gigabyte_month",
             given(usage.effective_rate_usd_per_gigabyte_month)},
            {"data", list_of(usage.data)}};
}

value listed(AuditLogEntry const& entry) {
    boost::json::object details;
    for (auto const& [name, text] : entry.event_details) details[name] = boost::json::parse(text);
    return {{"timestamp", python_time(entry.timestamp)},
            {"event", entry.event},
            {"event_details", details},
            {"model_id", given(entry.model_id)},
            {"tinker_path", given(entry.tinker_path)},
            {"purpose", given(entry.purpose)}};
}

value listed(AuditLog const& log) { return {{"entries", list_of(log.entries)}}; }

value listed(std::string const& text) { return value(text); }

// Calls -------------------------------------------------------------------------------------------

template <class T>
Result<value> made(RestCall& call, Future<T> future) {
    auto const result = call.stub.await(std::move(future));
    if (!result) return result.error();
    if constexpr (std::is_void_v<T>) {
        return value(nullptr);
    } else {
        return listed(*result);
    }
}

AccessScope scope_of(value const& args) {
    return member<std::string>(args, "access_scope") == "accessible" ? AccessScope::accessible
                                                                     : AccessScope::owned;
}

/// A checkpoint by its path, or by run and id.
CheckpointRef checkpoint_of(value const& args) {
    if (auto const path = member<std::string>(args, "tinker_path")) return *path;
    return {text(args, "training_run_id"), text(args, "checkpoint_id")};
}

Result<value> list_runs(RestCall& call) {
    TrainingRunQuery query;
    query.limit = member<std::int64_t>(call.args, "limit");
    query.offset = member<std::int64_t>(call.args, "offset").value_or(0);
    query.access_scope = scope_of(call.args);
    query.project_id = member<std::string>(call.args, "project_id").value_or("");
    return made(call, call.rest.list_training_runs(std::move(query)));
}

Result<value> list_user_checkpoints(RestCall& call) {
    PageQuery query;
    query.limit = member<std::int64_t>(call.args, "limit");
    query.offset = member<std::int64_t>(call.args, "offset").value_or(0);
    return made(call, call.rest.list_user_checkpoints(query));
}

Result<value> list_sessions(RestCall& call) {
    SessionQuery query;
    query.limit = member<std::int64_t>(call.args, "limit");
    query.offset = member<std::int64_t>(call.args, "offset").value_or(0);
    query.access_scope = scope_of(call.args);
    return made(call, call.rest.list_sessions(query));
}

Result<value> get_run(RestCall& call) {
    auto const path = member<std::string>(call.args, "tinker_path");
    auto const id = member<std::string>(call.args, "training_run_id");
    return made(call, call.rest.get_training_run(path ? *path : *id, scope_of(call.args)));
}

Result<value> archive_url(RestCall& call) {
    auto const got =
        call.stub.await(call.rest.get_checkpoint_archive_url(checkpoint_of(call.args)));
    if (!got) return got.error();
    auto expires = got->expires;
    // 0.7.0 forgot what zone it was in.
    if (call.version == "0.7.0") expires.offset.reset();
    return value{{"url", got->url}, {"expires", python_time(expires)}};
}

Result<value> set_ttl(RestCall& call) {
    std::optional<std::chrono::seconds> ttl;
    if (auto const seconds = member<std::int64_t>(call.args, "ttl_seconds")) {
        ttl = std::chrono::seconds{*seconds};
    }
    return made(call, call.rest.set_checkpoint_ttl(checkpoint_of(call.args), ttl));
}

Result<value> copy(RestCall& call) {
    CopyWeightsOptions options;
    options.destination_project =
        member<std::string>(call.args, "destination_project_id").value_or("");
    if (auto const seconds = member<std::int64_t>(call.args, "ttl_seconds")) {
        options.ttl = std::chrono::seconds{*seconds};
    }
    options.weights_access_token =
        member<std::string>(call.args, "weights_access_token").value_or("");
    return made(call, call.rest.copy_weights(text(call.args, "path"), std::move(options)));
}

SessionStateFilter filter_of(value const& json) {
    SessionStateFilter filter;
    auto const name = text(json, "type");
    for (auto const state :
         {SessionState::cancelled, SessionState::failed, SessionState::client_finished}) {
        if (name == to_string(state)) filter.state = state;
    }
    auto const reasons = member<std::vector<std::string>>(json, "reasons");
    for (auto const& reason : reasons.value_or(std::vector<std::string>{})) {
        filter.reasons.push_back(reason == "success"   ? CloseReason::success
                                 : reason == "errored" ? CloseReason::errored
                                                       : CloseReason::interrupted);
    }
    return filter;
}

Result<value> search(RestCall& call) {
    auto const& json = call.args.at("request");
    using Strings = std::vector<std::string>;
    SessionSearch wanted;
    wanted.session_id = member<std::string>(json, "session_id");
    wanted.project_ids = member<Strings>(json, "project_ids").value_or(Strings{});
    wanted.user_metadata = member<UserMetadata>(json, "user_metadata").value_or(UserMetadata{});
    wanted.display_name = member<std::string>(json, "display_name");
    if (auto const* owner = find(json, "owner")) {
        if (text(*owner, "type") == "user") {
            wanted.owner = SessionsOfUsers{value_to<Strings>(owner->at("owner_urns"))};
        } else if (text(*owner, "type") == "accessible") {
            wanted.owner = AccessibleSessions{};
        }
    }
    if (auto const* statuses = find(json, "statuses")) {
        for (auto const& each : statuses->as_array()) wanted.statuses.push_back(filter_of(each));
    }
    wanted.limit = member<std::int64_t>(json, "limit").value_or(wanted.limit);
    if (auto const* cursor = find(json, "cursor")) {
        wanted.cursor = {text(*cursor, "last_created_at"), text(*cursor, "last_session_id")};
    }
    return made(call, call.rest.search_sessions(std::move(wanted)));
}

Result<value> audit(RestCall& call) {
    AuditQuery query;
    auto const name = member<std::string>(call.args, "event_type");
    for (auto const events : {AuditEvents::checkpoints, AuditEvents::projects, AuditEvents::teams,
                              AuditEvents::organizations}) {
        if (name == to_string(events)) query.events = events;
    }
    if (auto const day = member<std::string>(call.args, "day")) {
        query.day = std::chrono::floor<std::chrono::days>(parse_timestamp(*day)->time);
    }
    return made(call, call.admin.get_audit_log(query));
}

Result<value> billing(RestCall& call) {
    return made(call,
                call.admin.get_billing_usage(*parse_timestamp(text(call.args, "starting_on")),
                                             *parse_timestamp(text(call.args, "ending_before"))));
}

Result<value> storage(RestCall& call) {
    return made(call, call.admin.get_current_checkpoint_storage_usage(
                          member<std::string>(call.args, "project_id").value_or("")));
}

using KnownRest = std::map<std::string, std::function<Result<value>(RestCall&)>>;

KnownRest const& known_rest() {
    static KnownRest const known{
        {"list_training_runs", list_runs},
        {"get_training_run", get_run},
        {"get_training_run_by_tinker_path", get_run},
        {"list_checkpoints",
         [](RestCall& call) {
             return made(call, call.rest.list_checkpoints(text(call.args, "training_run_id")));
         }},
        {"list_user_checkpoints", list_user_checkpoints},
        {"get_weights_info_by_tinker_path",
         [](RestCall& call) {
             return made(call, call.rest.get_weights_info(text(call.args, "tinker_path")));
         }},
        {"delete_checkpoint",
         [](RestCall& call) {
             return made(call, call.rest.delete_checkpoint(checkpoint_of(call.args)));
         }},
        {"delete_checkpoint_from_tinker_path",
         [](RestCall& call) {
             return made(call, call.rest.delete_checkpoint(checkpoint_of(call.args)));
         }},
        {"publish_checkpoint_from_tinker_path",
         [](RestCall& call) {
             return made(call, call.rest.publish_checkpoint(checkpoint_of(call.args)));
         }},
        {"unpublish_checkpoint_from_tinker_path",
         [](RestCall& call) {
             return made(call, call.rest.unpublish_checkpoint(checkpoint_of(call.args)));
         }},
        {"set_checkpoint_ttl_from_tinker_path", set_ttl},
        {"get_checkpoint_archive_url", archive_url},
        {"get_checkpoint_archive_url_from_tinker_path", archive_url},
        {"get_external_weights_urls",
         [](RestCall& call) {
             return made(call, call.rest.get_external_weights_urls(checkpoint_of(call.args)));
         }},
        {"copy_weights", copy},
        {"list_sessions", list_sessions},
        {"get_session",
         [](RestCall& call) {
             return made(call,
                         call.rest.get_session(text(call.args, "session_id"), scope_of(call.args)));
         }},
        {"search_sessions", search},
        {"assign_session_project",
         [](RestCall& call) {
             return made(call, call.rest.assign_session_project(text(call.args, "session_id"),
                                                                text(call.args, "project_id")));
         }},
        {"export_session_trace",
         [](RestCall& call) {
             return made(call, call.rest.export_session_trace(text(call.args, "session_id")));
         }},
        {"get_sampler",
         [](RestCall& call) {
             return made(call, call.rest.get_sampler(text(call.args, "sampler_id")));
         }},
        {"get_audit_log", audit},
        {"get_billing_usage", billing},
        {"get_current_checkpoint_storage_usage", storage},
    };
    return known;
}

void replay_rest_call(RecordedCall& call) {
    auto const method = text(call.recording(), "call").substr(std::string{"RestClient."}.size());
    auto const result = call_rest(call.stub, *call.service, method, call.args(), call.version());
    call.expect_outcome(result, [](value const& got) { return got; });
    if (call.has_form("an archive that is being built")) {
        // R-REST-10: it is asked for every half minute, and not in between.
        auto const sent = call.stub.transport->sent();
        auto const& recorded = call.recording().at("requests").as_array();
        auto const path = text(recorded.front(), "path");
        std::vector<TimePoint> times;
        for (auto const& request : sent) {
            if (request.path == path) times.push_back(request.at);
        }
        ASSERT_EQ(times.size(), recorded.size());
        EXPECT_EQ(times.back() - times.front(),
                  std::chrono::seconds{30} * static_cast<int>(recorded.size() - 1));
        return call.differs();
    }
    call.expect_requests();
    call.expect_waits();
}

}  // namespace

Result<value> call_rest(StubService& stub, ServiceClient const& service, std::string const& method,
                        value const& args, std::string const& version) {
    RestCall call{.stub = stub,
                  .service = service,
                  .rest = service.create_rest_client(),
                  .admin = service.create_admin_client(),
                  .args = args,
                  .version = version};
    return known_rest().at(method)(call);
}

bool knows_rest(std::string const& method) { return known_rest().contains(method); }

void add_rest_calls(KnownCalls& known) {
    for (auto const& [method, call] : known_rest()) {
        known["RestClient." + method] = replay_rest_call;
    }
}

}  // namespace tinkxx::golden
