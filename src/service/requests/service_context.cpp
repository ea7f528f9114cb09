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

void ServiceContext::attach(ServiceRequest& call) noexcept {
    TINKXX_ASSERT_LOOP(http().scheduler());
    call.next_ = nullptr;
    call.previous_ = newest_;
    if (newest_ != nullptr) newest_->next_ = &call;
    newest_ = &call;
    ++waiting_calls_;
}

void ServiceContext::detach(ServiceRequest& call) noexcept {
    (call.next_ != nullptr ? call.next_->previous_ : newest_) = call.previous_;
    if (call.previous_ != nullptr) call.previous_->next_ = call.next_;
    call.previous_ = call.next_ = nullptr;
    --waiting_calls_;
}

void ServiceContext::close() noexcept {
    TINKXX_ASSERT_LOOP(http().scheduler());
    auto const keep_alive = owner_.lock();
    if (!closed_ && resident_) http_->runtime().remove(*this);
    closed_ = true;
    while (newest_ != nullptr) newest_->shut();
    http_->close();
}

void ServiceContext::on_shutdown() noexcept { close(); }

}  // namespace tinkxx::service
