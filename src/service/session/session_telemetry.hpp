#pragma once

#include "service/session/session.hpp"
#include "service/telemetry/telemetry_reporter.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace tinkxx::service {

/// Gives a session its telemetry once it is ready, and sends what is left when it closes. Loop
/// thread only; the session outlives it.
class SessionTelemetry final : private SessionPart {
public:
    /// Joins the session.
    explicit SessionTelemetry(Session& session);
    ~SessionTelemetry() override;
    SessionTelemetry(SessionTelemetry const&) = delete;
    SessionTelemetry& operator=(SessionTelemetry const&) = delete;

    /// Events that wait to be sent.
    [[nodiscard]] std::size_t queued() const noexcept;

private:
    void on_session_ready() override;
    void begin();
    void give_up(std::string_view why);
    void drain(TimePoint deadline, std::function<void()> done) override;

    Session& session_;
    std::optional<TelemetryReporter> reporter_{};
};

}  // namespace tinkxx::service
