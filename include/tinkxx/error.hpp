#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx {

/// The kind of an error. Each kind has one exception class below.
enum class ErrorKind : std::uint8_t {
    validation,      ///< a bad argument, option or reply; see `field()` and `value()`
    connection,      ///< no usable answer came
    timeout,         ///< no answer in time; `TimeoutError` is a `ConnectionError`
    status,          ///< the server answered with an HTTP error
    billing,         ///< the server answered 402; `BillingError` is a `StatusError`
    request_failed,  ///< the server accepted the request and then reported its failure
    promise_lost,    ///< the server lost a request that it had accepted (410)
    cancelled,       ///< cancelled by the caller, or its client or runtime went away
    circuit_open,    ///< refused locally by a circuit breaker
    queue_full,      ///< refused locally: as many samples are pending as `PendingLimit` allows
    closed,          ///< the client was closed before the call
    usage,           ///< a call that can never be right, such as waiting on an SDK thread
    callback,        ///< a user's callback threw; `exception()` holds what it threw
};

/// Whose fault the failure is, as reported by the service.
enum class ErrorCategory : std::uint8_t { unknown, user, server };

/// Why a retry loop ended without success.
enum class RetryEnd : std::uint8_t {
    none,            ///< no retry loop was involved
    permanent,       ///< repeating cannot help
    attempts_spent,  ///< the allowed attempts were used up
    time_spent,      ///< the allowed time was used up
    not_repeatable,  ///< repeating might apply the call twice
    cancelled,       ///< the call was cancelled
};

[[nodiscard]] std::string_view to_string(ErrorKind kind) noexcept;
[[nodiscard]] std::string_view to_string(ErrorCategory category) noexcept;
[[nodiscard]] std::string_view to_string(RetryEnd reason) noexcept;

class Error;

/// The contents of an `Error`. Only members that apply to its kind are set.
struct ErrorDetails {
    ErrorKind kind{ErrorKind::usage};
    /// `operation: what is wrong; what to do`. Never contains a secret.
    std::string message{};
    bool retryable{false};
    std::optional<int> http_status{};
    std::string request_id{};
    ErrorCategory category{ErrorCategory::unknown};
    /// How long the server asked to wait.
    std::optional<std::chrono::milliseconds> retry_after{};
    /// Validation: the member that is wrong, and its value as text.
    std::string field{};
    std::string value{};
    /// Status: the body, cut to a few KiB, and the reply's headers with secrets redacted.
    std::string body{};
    std::vector<std::pair<std::string, std::string>> headers{};
    /// Set when the server lacks a feature: its name.
    std::string unsupported_feature{};
    RetryEnd stopped{RetryEnd::none};
    /// HTTP attempts made, where a retry loop was involved.
    int attempts{0};
    std::shared_ptr<Error const> cause{};
    /// Callback: what the user's function threw.
    std::exception_ptr exception{};
    /// Status of a result that was asked for: the lines of the request, with secrets redacted.
    std::vector<std::pair<std::string, std::string>> request_headers{};
};

/// The base class of everything that tinkxx throws. Its members say what to do next; catch a
/// derived class only where the code path really differs.
///
/// A value: copying never throws and copies may cross threads.
class Error : public std::exception {
public:
    explicit Error(ErrorDetails details);
    /// Shares the details of another error; `details` must not be null.
    explicit Error(std::shared_ptr<ErrorDetails const> details) noexcept
        : details_{std::move(details)} {}

    char const* what() const noexcept override { return details_->message.c_str(); }

    [[nodiscard]] ErrorKind kind() const noexcept { return details_->kind; }
    /// True when the same call may succeed if made again later.
    [[nodiscard]] bool retryable() const noexcept { return details_->retryable; }
    /// HTTP status, when the server answered at all.
    [[nodiscard]] std::optional<int> http_status() const noexcept { return details_->http_status; }
    /// Quote this in a bug report; empty if the server never assigned one.
    [[nodiscard]] std::string_view request_id() const noexcept { return details_->request_id; }
    [[nodiscard]] ErrorCategory category() const noexcept { return details_->category; }
    [[nodiscard]] std::optional<std::chrono::milliseconds> retry_after() const noexcept {
        return details_->retry_after;
    }
    [[nodiscard]] std::string_view field() const noexcept { return details_->field; }
    [[nodiscard]] std::string_view value() const noexcept { return details_->value; }
    [[nodiscard]] std::string_view body() const noexcept { return details_->body; }
    /// The error that led to this one, or null.
    [[nodiscard]] Error const* cause() const noexcept { return details_->cause.get(); }
    [[nodiscard]] std::exception_ptr exception() const noexcept { return details_->exception; }
    [[nodiscard]] RetryEnd stopped() const noexcept { return details_->stopped; }
    /// The complete contents, for code that passes errors on.
    [[nodiscard]] ErrorDetails const& details() const noexcept { return *details_; }

    /// Throws this error as the class of its kind.
    [[noreturn]] void raise() const;

private:
    std::shared_ptr<ErrorDetails const> details_;  // shared, so copying cannot throw
};

class ValidationError : public Error {
public:
    using Error::Error;
};
class ConnectionError : public Error {
public:
    using Error::Error;
};
class TimeoutError : public ConnectionError {
public:
    using ConnectionError::ConnectionError;
};
class StatusError : public Error {
public:
    using Error::Error;
};
class BillingError : public StatusError {
public:
    using StatusError::StatusError;
};
class RequestFailedError : public Error {
public:
    using Error::Error;
};
class PromiseLostError : public Error {
public:
    using Error::Error;
};
class CancelledError : public Error {
public:
    using Error::Error;
};
class CircuitOpenError : public Error {
public:
    using Error::Error;
};
class QueueFullError : public Error {
public:
    using Error::Error;
};
class ClosedError : public Error {
public:
    using Error::Error;
};
class UsageError : public Error {
public:
    using Error::Error;
};
class CallbackError : public Error {
public:
    using Error::Error;
};

}  // namespace tinkxx
