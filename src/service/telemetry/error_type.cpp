#include "service/telemetry/error_type.hpp"

namespace tinkxx::service {

namespace {

std::string_view status_type(int status) noexcept {
    switch (status) {
        case 400:
            return "BadRequestError";
        case 401:
            return "AuthenticationError";
        case 403:
            return "PermissionDeniedError";
        case 404:
            return "NotFoundError";
        case 409:
            return "ConflictError";
        case 422:
            return "UnprocessableEntityError";
        case 429:
            return "RateLimitError";
        default:
            return status >= 500 ? "InternalServerError" : "APIStatusError";
    }
}

}  // namespace

std::string_view error_type(Error const& error) noexcept {
    switch (error.kind()) {
        case ErrorKind::validation:
            return "ValidationError";
        case ErrorKind::connection:
            return "APIConnectionError";
        case ErrorKind::timeout:
            return "APITimeoutError";
        case ErrorKind::status:
            return status_type(error.http_status().value_or(0));
        case ErrorKind::billing:
            return "BillingError";
        case ErrorKind::request_failed:
            return "RequestFailedError";
        case ErrorKind::promise_lost:
            return "RetryableException";
        case ErrorKind::cancelled:
            return "CancelledError";
        case ErrorKind::circuit_open:
            return "CircuitOpenError";
        case ErrorKind::closed:
            return "ClosedError";
        case ErrorKind::usage:
            return "UsageError";
        case ErrorKind::callback:
            return "CallbackError";
    }
    return "Error";
}

}  // namespace tinkxx::service
