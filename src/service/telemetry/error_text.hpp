#pragma once

#include <tinkxx/error.hpp>

#include <string>
#include <string_view>

namespace tinkxx::service {

/// What the official SDK calls an error of this kind, e.g. `BadRequestError`: the word that the
/// service's statistics know.
[[nodiscard]] std::string_view error_type(Error const& error) noexcept;

/// What led to an error, a line for each cause: `caused by APIConnectionError after 3 HTTP
/// attempts: POST /api/v1/asample: …`. Empty if it has none. A few KiB at most.
[[nodiscard]] std::string error_causes(Error const& error);

/// What stands in for a stack, which C++ does not keep: the call with its attempt, the error, and
/// what led to it. The messages name the endpoint.
///
///     sample, attempt 2
///     RetryableException: request 7 …: 410 gone: …
///     caused by APIStatusError: POST /api/v1/retrieve_future: 410 gone
[[nodiscard]] std::string error_stack(std::string_view operation, int attempt, Error const& error);

}  // namespace tinkxx::service
