#pragma once

#include <tinkxx/status.hpp>

#include "service/requests/service_request.hpp"
#include "service/results/result_poll.hpp"

namespace tinkxx::service {

// Where a call stands that submits and then polls, in the words of its status.

/// The stage of a call that waits for this poll.
[[nodiscard]] Stage stage_of(ResultPoll const& poll) noexcept;

/// Says how long the call has made no progress for the sake of this request, and until when it
/// will try.
void describe_stall(OperationStatus& status, Standing const& call, TimePoint now);

/// All that there is to say of a call that is this request and nothing else.
void describe_alone(OperationStatus& status, ServiceRequest const& call, TimePoint now);

/// Says why the call waits for this request, or poll, and until when.
void describe(OperationStatus& status, ServiceRequest const& call, TimePoint now);
void describe(OperationStatus& status, ResultPoll const& poll, HttpContext& http, TimePoint now);

}  // namespace tinkxx::service
