#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/result.hpp>

#include "service/http/http_call.hpp"

namespace tinkxx::client {

/// What the service layer is to do for a request; or why it cannot be sent. `propagator` may be
/// empty. Any thread.
[[nodiscard]] Result<service::HttpOrder> make_order(HttpRequest request,
                                                    service::HttpContext const& context,
                                                    TracePropagator const& propagator);

}  // namespace tinkxx::client
