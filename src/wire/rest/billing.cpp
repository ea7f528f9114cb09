#include "wire/rest/billing.hpp"

#include "wire/json/json.hpp"
#include "wire/rest/values.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace tinkxx::wire {

static void read(JsonIn const& in, BillingEventInfo& out) {
    static constexpr std::array<std::string_view, 5> names{"type", "token_count", "cached", "count",
                                                           "gigabyte_hours"};
    out.type = in.required<std::string>("type");
    if (out.type == "training" || out.type == "sampling_sample" || out.type == "sampling_prefill") {
        out.token_count = in.required<std::int64_t>("token_count");
        if (out.type == "sampling_prefill") out.cached = in.required<bool>("cached");
    } else if (out.type == "checkpoint") {
        out.count = in.required<std::int64_t>("count");
    } else if (out.type == "storage") {
        out.gigabyte_hours = in.required<double>("gigabyte_hours");
    }
    bool const known = out.token_count || out.count || out.gigabyte_hours;
    in.each_member([&](std::string_view name, JsonIn const& member) {
        if (name == "type" || (known && std::ranges::find(names, name) != names.end())) return;
        std::string text;
        JsonOut{text}.value(member.value());
        out.others.insert_or_assign(std::string{name}, std::move(text));
    });
}

static void read(JsonIn const& in, BillingUsageEvent& out) {
    out.bucket_start = in.required<Timestamp>("bucket_start");
    out.bucket_end = in.required<Timestamp>("bucket_end");
    out.base_model = in.optional<std::string>("base_model");
    out.user_id = in.optional<std::string>("user_id");
    out.user_name = in.optional<std::string>("user_name");
    out.session_id = in.optional<std::string>("session_id");
    out.project_id = in.optional<std::string>("project_id");
    out.estimated_cost_usd = in.optional<double>("estimated_cost_usd");
    out.effective_rate_usd_per_million_tokens =
        in.optional<double>("effective_rate_usd_per_million_tokens");
    out.effective_rate_usd_per_gigabyte_month =
        in.optional<double>("effective_rate_usd_per_gigabyte_month");
    out.event_info = in.required<BillingEventInfo>("event_info");
}

static void read(JsonIn const& in, BillingSession& out) {
    out.user_metadata = in.optional<UserMetadata>("user_metadata");
}

static void read(JsonIn const& in, BillingUsage& out) {
    out.data = in.required<std::vector<BillingUsageEvent>>("data");
    out.sessions = in.member_or("sessions", std::map<std::string, BillingSession>{});
    out.cost_data_through = in.optional<Timestamp>("cost_data_through");
}

Result<BillingUsage> decode_billing_usage(std::string_view json) {
    return decode_json<BillingUsage>("get_billing_usage", json);
}

static void read(JsonIn const& in, CheckpointStorage& out) {
    out.project_id = in.optional<std::string>("project_id");
    out.org_user_urn = in.optional<std::string>("org_user_urn");
    out.user_email = in.optional<std::string>("user_email");
    out.user_name = in.optional<std::string>("user_name");
    out.checkpoint_count = in.required<std::int64_t>("checkpoint_count");
    out.size_bytes = in.required<std::int64_t>("size_bytes");
    out.size_gigabytes = in.required<double>("size_gigabytes");
    out.estimated_monthly_cost_usd = in.optional<double>("estimated_monthly_cost_usd");
}

static void read(JsonIn const& in, CheckpointStorageUsage& out) {
    out.effective_rate_usd_per_gigabyte_month =
        in.optional<double>("effective_rate_usd_per_gigabyte_month");
    out.data = in.required<std::vector<CheckpointStorage>>("data");
}

Result<CheckpointStorageUsage> decode_checkpoint_storage(std::string_view json) {
    return decode_json<CheckpointStorageUsage>("get_current_checkpoint_storage_usage", json);
}

static void read(JsonIn const& in, AuditLogEntry& out) {
    out.timestamp = in.required<Timestamp>("timestamp");
    out.event = in.required<std::string>("event");
    out.event_details = json_texts(in, "event_details");
    out.model_id = in.optional<std::string>("model_id");
    out.tinker_path = in.optional<std::string>("tinker_path");
    out.purpose = in.optional<std::string>("purpose");
}

static void read(JsonIn const& in, AuditLog& out) {
    out.entries = in.required<std::vector<AuditLogEntry>>("entries");
}

Result<AuditLog> decode_audit_log(std::string_view json) {
    return decode_json<AuditLog>("get_audit_log", json);
}

}  // namespace tinkxx::wire
