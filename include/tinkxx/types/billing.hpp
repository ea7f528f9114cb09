#pragma once

#include <tinkxx/types/timestamp.hpp>
#include <tinkxx/types/training.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx {

// Usage -----------------------------------------------------------------------------------------

/// What was used. Which members are set depends on the type.
struct BillingEventInfo {
    /// `training`, `sampling_prefill`, `sampling_sample`, `checkpoint`, `storage`, or what a newer
    /// server says.
    std::string type{};
    /// Of training and sampling.
    std::optional<std::int64_t> token_count{};
    /// Of `sampling_prefill`: whether the tokens were found in a cache.
    std::optional<bool> cached{};
    /// Of `checkpoint`.
    std::optional<std::int64_t> count{};
    /// Of `storage`.
    std::optional<double> gigabyte_hours{};
    /// What else a newer server says, each as JSON text.
    std::map<std::string, std::string> others{};

    bool operator==(BillingEventInfo const&) const = default;
};

/// What was used of one thing in one hour. Costs are gross estimates, not amounts due; they are
/// empty where they do not apply or are not known yet.
struct BillingUsageEvent {
    Timestamp bucket_start{};
    Timestamp bucket_end{};
    std::optional<std::string> base_model{};
    std::optional<std::string> user_id{};
    std::optional<std::string> user_name{};
    std::optional<std::string> session_id{};
    std::optional<std::string> project_id{};
    std::optional<double> estimated_cost_usd{};
    std::optional<double> effective_rate_usd_per_million_tokens{};
    std::optional<double> effective_rate_usd_per_gigabyte_month{};
    BillingEventInfo event_info{};

    bool operator==(BillingUsageEvent const&) const = default;
};

/// A session that events belong to.
struct BillingSession {
    std::optional<UserMetadata> user_metadata{};

    bool operator==(BillingSession const&) const = default;
};

struct BillingUsage {
    std::vector<BillingUsageEvent> data{};
    /// By id.
    std::map<std::string, BillingSession> sessions{};
    /// Costs before this are made of invoiced rates, those after it of published ones.
    std::optional<Timestamp> cost_data_through{};

    bool operator==(BillingUsage const&) const = default;
};

// Storage ---------------------------------------------------------------------------------------

/// The checkpoints that one user's sessions hold in one project.
struct CheckpointStorage {
    std::optional<std::string> project_id{};
    std::optional<std::string> org_user_urn{};
    std::optional<std::string> user_email{};
    std::optional<std::string> user_name{};
    std::int64_t checkpoint_count{0};
    std::int64_t size_bytes{0};
    double size_gigabytes{0};
    /// Of 720 hours.
    std::optional<double> estimated_monthly_cost_usd{};

    bool operator==(CheckpointStorage const&) const = default;
};

struct CheckpointStorageUsage {
    std::optional<double> effective_rate_usd_per_gigabyte_month{};
    std::vector<CheckpointStorage> data{};

    bool operator==(CheckpointStorageUsage const&) const = default;
};

// Audit -----------------------------------------------------------------------------------------

/// Which entries are wanted.
enum class AuditEvents : std::uint8_t { all, checkpoints, projects, teams, organizations };
/// As the service names them, such as `checkpoints`.
[[nodiscard]] std::string_view to_string(AuditEvents events) noexcept;

struct AuditQuery {
    AuditEvents events{AuditEvents::all};
    /// In UTC. Empty: today.
    std::optional<std::chrono::year_month_day> day{};
};

struct AuditLogEntry {
    Timestamp timestamp{};
    /// `<resource>_<action>`, such as `checkpoint_read`.
    std::string event{};
    /// By name, each as JSON text.
    std::map<std::string, std::string> event_details{};
    /// Of checkpoints only; newer servers have these in the details too.
    std::optional<std::string> model_id{};
    std::optional<std::string> tinker_path{};
    std::optional<std::string> purpose{};

    bool operator==(AuditLogEntry const&) const = default;
};

struct AuditLog {
    /// By time.
    std::vector<AuditLogEntry> entries{};

    bool operator==(AuditLog const&) const = default;
};

}  // namespace tinkxx
