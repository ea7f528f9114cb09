#include <tinkxx/observer.hpp>

#include "service/http/standard_headers.hpp"

#include <utility>

namespace tinkxx {

namespace {

class ConsoleObserver final : public Observer {
public:
    explicit ConsoleObserver(LogSink sink) : sink_{std::move(sink)} {}

    void on_http_start(HttpStartEvent const& event) override {
        write(LogLevel::debug, event, "started");
    }
    void on_http_retry(HttpRetryEvent const& event) override {
        write(LogLevel::warning, event,
              "retry " + std::to_string(event.retry_count) + " in " + seconds(event.delay) + ": " +
                  event.reason);
    }
    void on_http_stop(HttpStopEvent const& event) override {
        write(LogLevel::info, event,
              std::to_string(event.status) + " in " + seconds(event.duration) +
                  retries(event.retry_count));
    }
    void on_http_exception(HttpExceptionEvent const& event) override {
        write(LogLevel::error, event,
              (event.error ? std::string{event.error->what()} : "failed") + " after " +
                  seconds(event.duration) + retries(event.retry_count));
    }
    void on_loss(LossEvent const& event) override {
        auto const line =
            "model " + event.model_id + ": " +
            (event.regularizer.empty() ? "custom loss" : "regularizer " + event.regularizer);
        if (event.kind == LossEvent::Kind::start) {
            sink_(LogLevel::debug, line + " started");
        } else if (event.kind == LossEvent::Kind::stop) {
            sink_(LogLevel::info, line + " done in " + seconds(event.duration));
        } else {
            sink_(LogLevel::error, line + ": " +
                                       (event.error ? std::string{event.error->what()} : "failed") +
                                       " after " + seconds(event.duration));
        }
    }
    void on_recovery(RecoveryEvent const& event) override {
        using Kind = RecoveryEvent::Kind;
        auto const level = event.kind == Kind::exhausted                 ? LogLevel::error
                           : event.error || event.kind == Kind::detected ? LogLevel::warning
                                                                         : LogLevel::info;
        auto line = "run " + event.run_id + ": recovery " + std::string{to_string(event.kind)};
        if (event.attempt > 0) line += ", attempt " + std::to_string(event.attempt);
        if (!event.checkpoint.empty()) line += ", from " + event.checkpoint;
        if (!event.new_run_id.empty()) line += ", as run " + event.new_run_id;
        if (event.delay.count() > 0) line += ", again in " + seconds(event.delay);
        if (event.error) line += ": " + std::string{event.error->what()};
        sink_(level, line);
    }

private:
    static std::string seconds(std::chrono::nanoseconds time) {
        return service::seconds_text(std::chrono::ceil<std::chrono::milliseconds>(time)) + " s";
    }
    static std::string retries(int count) {
        return count == 0 ? std::string{} : ", " + std::to_string(count) + " retries";
    }
    void write(LogLevel level, HttpEvent const& event, std::string const& text) const {
        sink_(level, event.method + ' ' + event.path + " [" +
                         std::string{to_string(event.purpose)} + "]: " + text);
    }

    LogSink sink_;
};

}  // namespace

std::shared_ptr<Observer> console_observer(LogSink sink) {
    return std::make_shared<ConsoleObserver>(sink ? std::move(sink) : stderr_log());
}

std::shared_ptr<Observer> console_observer() { return console_observer(LogSink{}); }

}  // namespace tinkxx
