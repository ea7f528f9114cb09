#include "service/sampling/place_wait.hpp"

#include <string>

namespace tinkxx::service {

void PlaceWait::begin() {
    auto& scheduler = core_->scheduler();
    started_ = scheduler.now();
    id_ = core_->pending().next_id();
    if (turn_->done()) return;  // served meanwhile
    core_->attach();
    self_ = shared_from_this();
    core_->pending().add(*this);
    if (limit_.count() > 0) {
        ends_ = started_ + limit_;
        scheduler.arm(deadline_, ends_, Precision::coarse);
    }
    core_->tell_stage(status(started_), metadata_);
}

void PlaceWait::out_of_time() {
    auto const standing = status(core_->scheduler().now());
    turn_->set_error(
        Error{{.kind = ErrorKind::timeout,
               .message = "not done within its deadline of " + std::to_string(limit_.count()) +
                          " ms; it was " + to_string(standing),
               .retryable = true,
               .stopped = RetryEnd::cancelled}});
    leave();
}

OperationStatus PlaceWait::status(TimePoint now) const {
    OperationStatus status;
    status.id = id_;
    status.operation = operation_;
    status.stage = Stage::waiting_for_place;
    status.age = status.in_stage = now - started_;
    status.why = "ClientOptions::max_pending samples are pending; its caller is blocked";
    if (deadline_.armed()) status.deadline_in = ends_ - now;
    return status;
}

void PlaceWait::on_close() noexcept {
    auto const keep_alive = self_;
    turn_->set_error(Error{{.kind = ErrorKind::cancelled,
                            .message = "the client was closed while it waited for a place",
                            .stopped = RetryEnd::cancelled}});
    leave();
}

}  // namespace tinkxx::service
