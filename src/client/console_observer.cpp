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
