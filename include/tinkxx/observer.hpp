#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/http.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/status.hpp>
#include <tinkxx/transport.hpp>
#include <tinkxx/types/queue_state.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx {

/// One HTTP call, including its retries, as observers see it.
struct HttpEvent {
    std::string method{};
    /// Without the query.
    std::string path{};
    Purpose purpose{Purpose::rest};
    std::string base_url{};
    /// Metadata of the client and of the request; the request's entries take precedence.
    Metadata metadata{};
};

/// A call begins.
struct HttpStartEvent : HttpEvent {};

/// An attempt failed; another one follows after `delay`.
struct HttpRetryEvent : HttpEvent {
    /// 1 for the first repetition.
    int retry_count{0};
    std::chrono::nanoseconds delay{0};
    /// The status or the failure, in words.
    std::string reason{};
};

/// A call ended with an answer of any status.
struct HttpStopEvent : HttpEvent {
    int status{0};
    int retry_count{0};
    std::chrono::nanoseconds duration{0};
};

/// A call ended without an answer: no connection, timeout, or cancelled.
struct HttpExceptionEvent : HttpEvent {
    std::optional<Error> error{};
    int retry_count{0};
    std::chrono::nanoseconds duration{0};
};

/// What the service reports about a request in its queue.
struct QueueStateEvent {
    QueueState state{QueueState::unknown};
    /// The service's reason, or else the usual meaning of the state.
    std::string reason{};
    std::string request_id{};
    /// E.g. `Sample`.
    std::string request_type{};
    /// The id of the sampler or the model.
    std::string owner_id{};
    /// Whether state or reason differ from the last ones of the same request.
    bool changed{false};
    Metadata metadata{};
};

/// Called when the service reports on the queued request of a call. Accepts a function that takes
/// `(QueueState)`, `(QueueState, std::string_view reason)` or `(QueueStateEvent const&)`.
class QueueStateHandler {
public:
    template <class Fn>
        requires(std::invocable<Fn&, QueueStateEvent const&> ||
                 std::invocable<Fn&, QueueState, std::string_view> ||
                 std::invocable<Fn&, QueueState>)
    QueueStateHandler(Fn fn) {
        if constexpr (std::invocable<Fn&, QueueStateEvent const&>) {
            call_ = std::move(fn);
        } else if constexpr (std::invocable<Fn&, QueueState, std::string_view>) {
            call_ = [fn = std::move(fn)](QueueStateEvent const& event) mutable {
                fn(event.state, std::string_view{event.reason});
            };
        } else {
            call_ = [fn = std::move(fn)](QueueStateEvent const& event) mutable { fn(event.state); };
        }
    }
    void operator()(QueueStateEvent const& event) const { call_(event); }

private:
    std::function<void(QueueStateEvent const&)> call_;
};

/// One attempt of an operation that may be repeated.
struct AttemptEvent {
    std::uint64_t id{0};
    /// E.g. `sample`.
    std::string operation{};
    /// 1 for the first.
    std::int64_t attempt{0};
    Metadata metadata{};
};
struct AttemptStartEvent : AttemptEvent {};
/// It succeeded.
struct AttemptStopEvent : AttemptEvent {
    std::chrono::nanoseconds duration{0};
};
/// It failed; another one follows after `delay`.
struct AttemptRetryEvent : AttemptEvent {
    std::optional<Error> error{};
    std::chrono::nanoseconds delay{0};
};
/// It failed and was the last one.
struct AttemptFailedEvent : AttemptEvent {
    std::optional<Error> error{};
};

/// An operation entered another stage.
struct StageEvent {
    std::uint64_t id{0};
    std::string operation{};
    Stage stage{Stage::starting};
    /// What it waits for, in words.
    std::string why{};
    Metadata metadata{};
};

/// A custom loss function, or one of its regularizers, is called or has ended.
struct LossEvent {
    enum class Kind : std::uint8_t { start, stop, exception };
    Kind kind{Kind::start};
    std::string model_id{};
    /// The name of the regularizer. Empty: the loss function itself, including regularizers.
    std::string regularizer{};
    /// Since its start.
    std::chrono::nanoseconds duration{0};
    /// The error, if it failed.
    std::optional<Error> error{};
    Metadata metadata{};
};

/// A step in the recovery of a lost training run.
struct RecoveryEvent {
    enum class Kind : std::uint8_t {
        poll_error,      ///< the state of a watched run could not be fetched; watching continues
        detected,        ///< a watched run is lost; it is no longer watched
        started,         ///< an attempt begins
        client_created,  ///< the attempt has created a model
        completed,       ///< the run is recovered
        failed,          ///< the attempt failed; if there is another one, it follows after `delay`
        exhausted,       ///< there are no more attempts
    };
    Kind kind{Kind::detected};
    /// The run that is watched or lost.
    std::string run_id{};
    /// 1 for the first; 0 while it is watched.
    int attempt{0};
    /// Empty unless it is known.
    std::string checkpoint{};
    /// The id of the new model.
    std::string new_run_id{};
    std::optional<Error> error{};
    std::chrono::nanoseconds delay{0};
    Metadata metadata{};
};
[[nodiscard]] std::string_view to_string(RecoveryEvent::Kind kind) noexcept;

/// Observes what a client does. Derive from it and override the members of interest.
///
/// Members are called on the runtime's callback executor, in the order of the events. Exceptions
/// are logged and otherwise ignored. An observer may serve several clients.
class Observer {
public:
    virtual ~Observer() = default;

    virtual void on_http_start(HttpStartEvent const& /*event*/) {}
    virtual void on_http_retry(HttpRetryEvent const& /*event*/) {}
    virtual void on_http_stop(HttpStopEvent const& /*event*/) {}
    virtual void on_http_exception(HttpExceptionEvent const& /*event*/) {}

    virtual void on_queue_state(QueueStateEvent const& /*event*/) {}
    virtual void on_attempt_start(AttemptStartEvent const& /*event*/) {}
    virtual void on_attempt_stop(AttemptStopEvent const& /*event*/) {}
    virtual void on_attempt_retry(AttemptRetryEvent const& /*event*/) {}
    virtual void on_attempt_failed(AttemptFailedEvent const& /*event*/) {}
    virtual void on_loss(LossEvent const& /*event*/) {}
    virtual void on_recovery(RecoveryEvent const& /*event*/) {}
    /// Called for every step of every operation, so it must be fast.
    virtual void on_stage(StageEvent const& /*event*/) {}
    /// Return true to receive `on_stage`. False, the default, avoids its cost.
    [[nodiscard]] virtual bool wants_stages() const noexcept { return false; }
};

/// An observer that writes one line per event: starts at debug level, ends at info, retries at
/// warning, and calls without an answer at error level.
[[nodiscard]] std::shared_ptr<Observer> console_observer(LogSink sink);
/// As above, to stderr.
[[nodiscard]] std::shared_ptr<Observer> console_observer();

}  // namespace tinkxx
