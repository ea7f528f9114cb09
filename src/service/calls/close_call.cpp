#include "service/calls/close_call.hpp"

#include "service/results/standing.hpp"

#include <utility>

namespace tinkxx::service {

CloseCall::CloseCall(std::shared_ptr<ClientCore> core, std::optional<Finish> finish,
                     Promise<void> promise)
    : core_{std::move(core)}, finish_{std::move(finish)}, promise_{std::move(promise)} {}

CloseCall::~CloseCall() { core_->pending().remove(*this); }

void CloseCall::launch() {
    core_->scheduler().post([self = shared_from_this()] { self->begin(); });
}

void CloseCall::begin() {
    auto& scheduler = core_->scheduler();
    started_ = scheduler.now();
    id_ = core_->pending().next_id();
    core_->pending().add(*this);
    if (auto const limit = core_->settings().deadline; limit.count() > 0) {
        ends_ = started_ + limit;
        scheduler.arm(deadline_, ends_, Precision::coarse);
    }
    core_->session().close(std::move(finish_), [self = shared_from_this()](Result<void> outcome) {
        self->over(std::move(outcome));
    });
    if (core_->wants_stages() && !promise_.done()) core_->tell_stage(status(started_), {});
}

void CloseCall::over(Result<void> outcome) {
    core_->pending().remove(*this);
    core_->scheduler().disarm(deadline_);
    promise_.set_result(std::move(outcome));
}

/// The caller waits no longer; the close goes on.
void CloseCall::out_of_time() {
    auto const standing = status(core_->scheduler().now());
    core_->pending().remove(*this);
    promise_.set_error(
        Error{{.kind = ErrorKind::timeout,
               .message = "close: not done within its deadline of " +
                          std::to_string(core_->settings().deadline.count()) +
                          " ms, and goes on by itself; it was " + to_string(standing),
               .stopped = RetryEnd::cancelled}});
}

OperationStatus CloseCall::status(TimePoint now) const {
    OperationStatus status;
    status.id = id_;
    status.operation = "close";
    status.stage = Stage::closing;
    status.age = status.in_stage = now - started_;
    status.why = core_->session().standing();
    if (auto const until = core_->session().until()) status.ends_in = *until - now;
    if (deadline_.armed()) status.deadline_in = ends_ - now;
    if (auto const call = core_->session().call_standing()) {
        describe_stall(status, *call, now);
    }
    return status;
}

void CloseCall::on_close() noexcept { core_->pending().add(*this); }

}  // namespace tinkxx::service
