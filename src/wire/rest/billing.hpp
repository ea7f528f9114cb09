#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/billing.hpp>

#include <string_view>

namespace tinkxx::wire {

/// GET billing/usage/events.
[[nodiscard]] Result<BillingUsage> decode_billing_usage(std::string_view json);
/// GET billing/usage/checkpoints/current.
[[nodiscard]] Result<CheckpointStorageUsage> decode_checkpoint_storage(std::string_view json);
/// GET audit.
[[nodiscard]] Result<AuditLog> decode_audit_log(std::string_view json);

}  // namespace tinkxx::wire
