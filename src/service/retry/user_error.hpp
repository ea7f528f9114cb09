#pragma once

#include <tinkxx/error.hpp>

#include <optional>

namespace tinkxx::service {

/// The first error, of `error` itself and all that led to it, that the user can mend
/// (R-RETRY-21): a request that failed by its own fault, or an answer with a status of 400–499
/// other than 408. Looks into causes first, then into what a user's callback threw.
///
/// For the wording of telemetry and command line only; says nothing about retries.
[[nodiscard]] std::optional<Error> find_user_error(Error const& error) noexcept;

}  // namespace tinkxx::service
