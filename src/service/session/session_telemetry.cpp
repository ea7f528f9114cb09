#include "service/session/session_telemetry.hpp"

#include <exception>
#include <string>
#include <utility>

namespace tinkxx::service {

SessionTelemetry::SessionTelemetry(Session& session) : session_{session} {
    session_.add(*this);
    if (session_.ready()) on_session_ready();
}

SessionTelemetry::~SessionTelemetry() {
    session_.context().set_telemetry(nullptr);
    session_.remove(*this);
}

std::size_t SessionTelemetry::queued() const noexcept {
    return reporter_ ? reporter_->queue().waiting().size() + reporter_->queue().batch().size() : 0;
}

void SessionTelemetry::on_session_ready() {
    if (reporter_ || !session_.config().telemetry.value_or(true)) return;
    try {
        begin();
    } catch (std::exception const& error) {
        give_up(error.what());
    } catch (...) {
        give_up("something that is no exception was thrown");
    }
}

void SessionTelemetry::begin() {
    TelemetryOptions options;
    if (session_.kind() != SessionKind::sessionless) options.session_id = session_.session_id();
    options.sdk_version = session_.config().sdk_version;
    options.rules.flush_interval = session_.config().intervals.telemetry_flush;
    reporter_.emplace(session_.http(), std::move(options));
    reporter_->start();
    session_.context().set_telemetry(&*reporter_);
}

/// R-TEL-23.
void SessionTelemetry::give_up(std::string_view why) {
    session_.context().set_telemetry(nullptr);
    reporter_.reset();
    session_.http().log(LogLevel::warning,
                        "telemetry could not be started and stays off: " + std::string{why});
}

void SessionTelemetry::drain(TimePoint deadline, std::function<void()> done) {
    if (!reporter_) return done();
    reporter_->close(deadline, [done = std::move(done)](bool /*drained*/) { done(); });
}

}  // namespace tinkxx::service
