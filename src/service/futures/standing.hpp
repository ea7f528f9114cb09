#pragma once

#include <tinkxx/status.hpp>

#include "service/futures/future_poll.hpp"
#include "service/requests/service_call.hpp"

namespace tinkxx::service {

// Where an operation stands that submits and then polls, in the words of its status.

/// The stage of an operation that waits for this poll.
[[nodiscard]] Stage stage_of(FuturePoll const& poll) noexcept;

/// Says how long the operation has made no progress for the sake of this call, and until when it
/// will try.
void describe_stall(OperationStatus& status, Standing const& call, TimePoint now);

/// Says why the operation waits for this call, or poll, and until when.
void describe(OperationStatus& status, ServiceCall const& call, TimePoint now);
void describe(OperationStatus& status, FuturePoll const& poll, HttpContext& http, TimePoint now);

}  // namespace tinkxx::service
