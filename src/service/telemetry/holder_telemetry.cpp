#include "service/telemetry/holder_telemetry.hpp"

#include <exception>
#include <string>
#include <utility>

namespace tinkxx::service {

HolderTelemetry::HolderTelemetry(Holder& holder) : holder_{holder} {
    holder_.add(*this);
    if (holder_.ready()) on_holder_ready();
}

HolderTelemetry::~HolderTelemetry() {
    holder_.set_telemetry(nullptr);
    holder_.remove(*this);
}

std::size_t HolderTelemetry::queued() const noexcept {
    return reporter_ ? reporter_->queue().waiting().size() + reporter_->queue().batch().size() : 0;
}

void HolderTelemetry::on_holder_ready() {
    if (reporter_ || !holder_.config().telemetry) return;
    try {
        begin();
    } catch (std::exception const& error) {
        give_up(error.what());
    } catch (...) {
        give_up("something that is no exception was thrown");
    }
}

void HolderTelemetry::begin() {
    TelemetryOptions options;
    if (holder_.kind() != HolderKind::sessionless) options.session_id = holder_.session_id();
    options.sdk_version = holder_.config().sdk_version;
    options.rules.flush_interval = holder_.config().intervals.telemetry_flush;
    reporter_.emplace(holder_.http(), std::move(options));
    reporter_->start();
    holder_.set_telemetry(&*reporter_);
}

/// R-TEL-23.
void HolderTelemetry::give_up(std::string_view why) {
    holder_.set_telemetry(nullptr);
    reporter_.reset();
    holder_.http().log(LogLevel::warning,
                       "telemetry could not be started and stays off: " + std::string{why});
}

void HolderTelemetry::drain(TimePoint deadline, std::function<void()> done) {
    if (!reporter_) return done();
    reporter_->close(deadline, [done = std::move(done)](bool /*drained*/) { done(); });
}

}  // namespace tinkxx::service
