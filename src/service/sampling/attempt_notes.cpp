#include "service/sampling/attempt_notes.hpp"

#include "service/retry/user_error.hpp"
#include "service/telemetry/error_text.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <utility>

namespace tinkxx::service {

template <class Event>
Event AttemptNotes::event() const {
    Event event;
    event.id = of_.id;
    event.operation = order_.operation;
    event.attempt = of_.attempt;
    event.metadata = sampler_.metadata(order_.call().metadata);
    return event;
}

void AttemptNotes::began() const {
    if (!http().observed()) return;
    http().tell(&Observer::on_attempt_start, event<AttemptStartEvent>());
}

void AttemptNotes::succeeded(std::chrono::nanoseconds took) const {
    if (!http().observed()) return;
    auto told = event<AttemptStopEvent>();
    told.duration = took;
    http().tell(&Observer::on_attempt_stop, std::move(told));
}

void AttemptNotes::failed(Error const& error) const {
    if (!http().observed()) return;
    auto told = event<AttemptFailedEvent>();
    told.error = error;
    http().tell(&Observer::on_attempt_failed, std::move(told));
}

void AttemptNotes::repeated(Error const& error, std::chrono::nanoseconds delay) const {
    if (http().observed()) {
        auto told = event<AttemptRetryEvent>();
        told.error = error;
        told.delay = delay;
        http().tell(&Observer::on_attempt_retry, std::move(told));
    }
    if (http().logs(LogLevel::debug)) {
        http().log(LogLevel::debug, std::string{order_.operation} + ": attempt " +
                                        std::to_string(of_.attempt) +
                                        " failed and is made again: " + error.what());
    }
}

void AttemptNotes::report(Error const& error, bool retry) const {
    auto* const telemetry = sampler_.core().context().telemetry();
    if (telemetry == nullptr) return;
    auto const& scheduler = http().scheduler();
    auto const requests = static_cast<int>(of_.requests);
    auto const user = find_user_error(error).has_value();
    boost::json::object data;
    data["func"] = std::string{order_.operation};
    data["exception"] = error.what();
    data["exception_type"] = std::string{error_type(error)};
    data["exception_stack"] = error_stack(order_.operation, requests, error);
    if (error.http_status()) {
        data["status_code"] = *error.http_status();
    } else {
        data["status_code"] = nullptr;
    }
    data["should_retry"] = retry;
    data["is_user_error"] = user;
    data["attempt_count"] = of_.attempt;
    auto const wall = [&](TimePoint point) {
        auto const at = scheduler.wall() - (scheduler.now() - point);
        return std::chrono::duration<double>{at.time_since_epoch()}.count();
    };
    auto const now = scheduler.now();
    data["start_time"] = wall(of_.started);
    data["current_time"] = wall(now);
    data["elapsed_time"] = std::chrono::duration<double>{now - of_.started}.count();
    telemetry->event("RetryHandler.execute.exception",
                     retry || user ? Severity::warning : Severity::error, std::move(data));
}

}  // namespace tinkxx::service
