#include "service/requests/service_context.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/requests/service_request.hpp"

namespace tinkxx::service {

ServiceContext::~ServiceContext() = default;

bool ServiceContext::usable() {
    if (!resident_ && !closed_) {
        resident_ = true;
        http_->runtime().add(*this);  // closes at once if the runtime is shutting down
    }
    return !closed_;
}

void ServiceContext::close() noexcept {
    TINKXX_ASSERT_LOOP(http().scheduler());
    auto const keep_alive = owner_.lock();
    if (!closed_ && resident_) http_->runtime().remove(*this);
    closed_ = true;
    while (!waiting_.empty()) static_cast<ServiceRequest&>(*waiting_.back()).shut();
    http_->close();
}

void ServiceContext::on_shutdown() noexcept { close(); }

}  // namespace tinkxx::service
