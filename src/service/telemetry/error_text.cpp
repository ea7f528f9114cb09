#include "service/telemetry/error_text.hpp"

namespace tinkxx::service {

namespace {

// What a user's exception says can be of any length.
constexpr std::size_t longest_stack = 4096;

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
        case ErrorKind::queue_full:
            return "QueueFullError";
        case ErrorKind::closed:
            return "ClosedError";
        case ErrorKind::usage:
            return "UsageError";
        case ErrorKind::callback:
            return "CallbackError";
    }
    return "Error";
}

namespace {

std::string line_of(Error const& error) {
    std::string text{error_type(error)};
    if (auto const attempts = error.details().attempts; attempts > 0) {
        text += " after " + std::to_string(attempts) + " HTTP attempt" + (attempts > 1 ? "s" : "");
    }
    return text + ": " + error.what();
}

std::string bounded(std::string text) {
    if (text.size() > longest_stack) text.resize(longest_stack);
    return text;
}

}  // namespace

std::string error_causes(Error const& error) {
    std::string text;
    for (auto const* cause = error.cause(); cause != nullptr; cause = cause->cause()) {
        if (text.size() > longest_stack) break;
        text += text.empty() ? "caused by " : "\ncaused by ";
        text += line_of(*cause);
    }
    return bounded(std::move(text));
}

std::string error_stack(std::string_view operation, int attempt, Error const& error) {
    auto text =
        std::string{operation} + ", attempt " + std::to_string(attempt) + '\n' + line_of(error);
    if (auto const causes = error_causes(error); !causes.empty()) text += '\n' + causes;
    return bounded(std::move(text));
}

}  // namespace tinkxx::service
