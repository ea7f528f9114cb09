#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/http.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx {

/// One HTTP call, retries included, as observers know it.
struct HttpEvent {
    std::string method{};
    /// Without the query.
    std::string path{};
    Purpose purpose{Purpose::rest};
    std::string base_url{};
    /// Of the client and of the request, whose entries win.
    Metadata metadata{};
};

/// A call begins.
struct HttpStartEvent : HttpEvent {};

/// An attempt came to nothing, and another follows after `delay`.
struct HttpRetryEvent : HttpEvent {
    /// 1 for the first repetition.
    int retry_count{0};
    std::chrono::nanoseconds delay{0};
    /// Why: the status or the failure, in words.
    std::string reason{};
};

/// A call ended with an answer, whatever its status.
struct HttpStopEvent : HttpEvent {
    int status{0};
    int retry_count{0};
    std::chrono::nanoseconds duration{0};
};

/// A call ended without an answer: no connection, no time left, cancelled.
struct HttpExceptionEvent : HttpEvent {
    std::optional<Error> error{};
    int retry_count{0};
    std::chrono::nanoseconds duration{0};
};

/// Sees what a client does. Derive, and override what matters.
///
/// Members are called on the runtime's callback executor, in the order of the events. What they
/// throw is logged and otherwise ignored. An observer may serve several clients.
class Observer {
public:
    virtual ~Observer() = default;

    virtual void on_http_start(HttpStartEvent const& /*event*/) {}
    virtual void on_http_retry(HttpRetryEvent const& /*event*/) {}
    virtual void on_http_stop(HttpStopEvent const& /*event*/) {}
    virtual void on_http_exception(HttpExceptionEvent const& /*event*/) {}
};

/// An observer that writes one line per event: starts at debug, ends at info, retries at warning
/// and calls without an answer at error level.
[[nodiscard]] std::shared_ptr<Observer> console_observer(LogSink sink);
/// As above, to stderr.
[[nodiscard]] std::shared_ptr<Observer> console_observer();

}  // namespace tinkxx
