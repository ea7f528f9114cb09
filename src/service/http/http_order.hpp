#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/result.hpp>

#include "service/http/http_call.hpp"

#include <string>
#include <string_view>

namespace tinkxx::service {

/// What the service layer is to do for a request; or why it cannot be sent. `propagator` may be
/// empty. Any thread.
[[nodiscard]] Result<HttpOrder> make_order(HttpRequest request, HttpContext const& context,
                                           TracePropagator const& propagator);

/// The lines of the caller's trace context that no line of the client stands for (R-EXT-20).
/// Called on the thread that makes a call.
[[nodiscard]] Headers trace_headers(HttpContext const& context, TracePropagator const& propagator);

/// A POST of a JSON body with the client's own settings. Any thread.
[[nodiscard]] HttpOrder post_order(HttpContext const& context, std::string_view path,
                                   std::string body, Purpose purpose);

/// A GET with the client's own settings. Any thread.
[[nodiscard]] HttpOrder get_order(HttpContext const& context, std::string_view path,
                                  Purpose purpose);

/// Adds the lines of a REST call: the release that this client stands in for, and the official
/// name of the method (R-REST-02).
void add_method(HttpOrder& order, std::string_view sdk_version, std::string_view method);

}  // namespace tinkxx::service
