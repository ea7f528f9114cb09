#pragma once

#include "base/common/intrusive_list.hpp"
#include "service/http/http_context.hpp"
#include "service/requests/billing_pause.hpp"
#include "service/telemetry/telemetry.hpp"

#include <memory>
#include <utility>

namespace tinkxx::service {

/// Its place among the requests of a context that wait for their next attempt.
struct WaitingRequest {
    base::ListLinks<WaitingRequest> links{};
};

/// What all service calls of one client share. Made on any thread; then for the loop thread only.
/// Closed before it goes away.
class ServiceContext final : private detail::Resident {
public:
    explicit ServiceContext(std::shared_ptr<HttpContext> http) noexcept : http_{std::move(http)} {}
    ~ServiceContext() override;

    [[nodiscard]] HttpContext& http() const noexcept { return *http_; }
    [[nodiscard]] BillingPause& billing() noexcept { return billing_; }
    /// Null while telemetry is off.
    [[nodiscard]] Telemetry* telemetry() const noexcept { return telemetry_; }
    void set_telemetry(Telemetry* telemetry) noexcept { telemetry_ = telemetry; }

    /// What holds it, and may be let go of by the calls that are ended.
    void set_owner(std::weak_ptr<void const> owner) noexcept { owner_ = std::move(owner); }
    /// Ends all calls, waiting or under way, with a cancellation error, and every later one too.
    void close() noexcept;
    /// Calls that wait for their next attempt.
    [[nodiscard]] std::size_t waiting_calls() const noexcept { return waiting_.size(); }

private:
    friend class ServiceRequest;
    bool usable();
    void on_shutdown() noexcept override;

    std::shared_ptr<HttpContext> const http_;
    std::weak_ptr<void const> owner_{};
    BillingPause billing_{};
    Telemetry* telemetry_{nullptr};
    /// Each is a `ServiceRequest`.
    base::IntrusiveList<WaitingRequest, &WaitingRequest::links> waiting_{};
    bool resident_{false};
    bool closed_{false};
};

}  // namespace tinkxx::service
