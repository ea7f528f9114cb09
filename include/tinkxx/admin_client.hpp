#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/types/billing.hpp>
#include <tinkxx/types/timestamp.hpp>

#include <memory>
#include <string>

namespace tinkxx {

struct ClientOptions;

/// What an organization has used, and what was done in it. For those with a role there: the service
/// refuses others with `StatusError` 403.
///
///     AdminClient admin;                                        // key from $TINKER_API_KEY
///     auto pending = admin.get_billing_usage(*parse_timestamp("2026-07-13T00:00:00Z"),
///                                            *parse_timestamp("2026-07-14T00:00:00Z"));
///     for (auto const& event : pending.get().data) …
///
/// Needs no session. A cheap handle, and futures, as `RestClient`.
class AdminClient {
public:
    /// With options from the environment. Throws as below.
    AdminClient();
    /// Throws `ValidationError`, naming field and value, for options that cannot work.
    explicit AdminClient(ClientOptions options);

    /// As `RestClient::with`.
    [[nodiscard]] AdminClient with(CallOptions call) const;

    /// What was used from `starting_on` until `ending_before`, by hour. The hosted service takes
    /// whole hours in UTC, two weeks at most, and lags behind by some hours.
    [[nodiscard]] Future<BillingUsage> get_billing_usage(Timestamp starting_on,
                                                         Timestamp ending_before) const;
    /// What checkpoints take now; in all projects, or in one. Lags behind by an hour or two.
    [[nodiscard]] Future<CheckpointStorageUsage> get_current_checkpoint_storage_usage() const;
    [[nodiscard]] Future<CheckpointStorageUsage> get_current_checkpoint_storage_usage(
        std::string project_id) const;
    /// What was done today, or on another day.
    [[nodiscard]] Future<AuditLog> get_audit_log() const;
    [[nodiscard]] Future<AuditLog> get_audit_log(AuditQuery query) const;

    /// As `RestClient::close`.
    Future<void> close() const;

    [[nodiscard]] Runtime const& runtime() const noexcept;

private:
    friend class ServiceClient;
    class Impl;
    explicit AdminClient(std::shared_ptr<Impl const> impl) noexcept;

    std::shared_ptr<Impl const> impl_;
};

}  // namespace tinkxx
