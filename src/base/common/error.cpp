#include <tinkxx/error.hpp>

namespace tinkxx {

std::string_view to_string(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::validation:
            return "validation";
        case ErrorKind::connection:
            return "connection";
        case ErrorKind::timeout:
            return "timeout";
        case ErrorKind::status:
            return "status";
        case ErrorKind::billing:
            return "billing";
        case ErrorKind::request_failed:
            return "request_failed";
        case ErrorKind::promise_lost:
            return "promise_lost";
        case ErrorKind::cancelled:
            return "cancelled";
        case ErrorKind::circuit_open:
            return "circuit_open";
        case ErrorKind::queue_full:
            return "queue_full";
        case ErrorKind::closed:
            return "closed";
        case ErrorKind::usage:
            return "usage";
        case ErrorKind::callback:
            return "callback";
    }
    return "unknown";
}

std::string_view to_string(ErrorCategory category) noexcept {
    switch (category) {
        case ErrorCategory::unknown:
            return "unknown";
        case ErrorCategory::user:
            return "user";
        case ErrorCategory::server:
            return "server";
    }
    return "unknown";
}

std::string_view to_string(RetryEnd reason) noexcept {
    switch (reason) {
        case RetryEnd::none:
            return "none";
        case RetryEnd::permanent:
            return "permanent";
        case RetryEnd::attempts_spent:
            return "attempts_spent";
        case RetryEnd::time_spent:
            return "time_spent";
        case RetryEnd::not_repeatable:
            return "not_repeatable";
        case RetryEnd::cancelled:
            return "cancelled";
    }
    return "unknown";
}

Error::Error(ErrorDetails details)
    : details_{std::make_shared<ErrorDetails const>(std::move(details))} {}

void Error::raise() const {
    switch (kind()) {
        case ErrorKind::validation:
            throw ValidationError{details_};
        case ErrorKind::connection:
            throw ConnectionError{details_};
        case ErrorKind::timeout:
            throw TimeoutError{details_};
        case ErrorKind::status:
            throw StatusError{details_};
        case ErrorKind::billing:
            throw BillingError{details_};
        case ErrorKind::request_failed:
            throw RequestFailedError{details_};
        case ErrorKind::promise_lost:
            throw PromiseLostError{details_};
        case ErrorKind::cancelled:
            throw CancelledError{details_};
        case ErrorKind::circuit_open:
            throw CircuitOpenError{details_};
        case ErrorKind::queue_full:
            throw QueueFullError{details_};
        case ErrorKind::closed:
            throw ClosedError{details_};
        case ErrorKind::usage:
            throw UsageError{details_};
        case ErrorKind::callback:
            throw CallbackError{details_};
    }
    throw Error{details_};
}

}  // namespace tinkxx
