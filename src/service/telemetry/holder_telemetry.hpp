#pragma once

#include "service/session/holder.hpp"
#include "service/telemetry/telemetry_reporter.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace tinkxx::service {

/// Gives a holder its telemetry once it is ready, and sends what is left when it closes. Loop
/// thread only; the holder outlives it.
class HolderTelemetry final : private HolderPart {
public:
    /// Joins the holder.
    explicit HolderTelemetry(Holder& holder);
    ~HolderTelemetry() override;
    HolderTelemetry(HolderTelemetry const&) = delete;
    HolderTelemetry& operator=(HolderTelemetry const&) = delete;

    /// Events that wait to be sent.
    [[nodiscard]] std::size_t queued() const noexcept;

private:
    void on_holder_ready() override;
    void begin();
    void give_up(std::string_view why);
    void drain(TimePoint deadline, std::function<void()> done) override;

    Holder& holder_;
    std::optional<TelemetryReporter> reporter_{};
};

}  // namespace tinkxx::service
