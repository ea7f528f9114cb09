#include "service/core/pending_call.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/core/client_core.hpp"

#include <utility>

namespace tinkxx::service {

class PendingCall::Deadline final : public Timer {
public:
    Deadline(PendingCall& call, TimePoint when) noexcept : at{when}, call_{call} {}
    void on_time() override { call_.out_of_time(); }

    TimePoint const at;

private:
    PendingCall& call_;
};

PendingCall::PendingCall() noexcept = default;

PendingCall::~PendingCall() = default;

void PendingCall::launch() {
    core().scheduler().post([self = shared_from_this()] { self->arrive(); });
}

Task PendingCall::canceller() {
    // Weak: a cancel that is never made must not keep the call.
    return [weak = weak_from_this(), &scheduler = core().scheduler()] {
        scheduler.post([weak] {
            if (auto const call = weak.lock()) call->stop();
        });
    };
}

bool PendingCall::admitted() {
    if (answered()) return false;  // cancelled before it began
    auto refusal = core().session().refusal(call_name());
    if (refusal) answer(*std::move(refusal));
    return !refusal;
}

void PendingCall::number() {
    id_ = core().pending().next_id();
    started_ = core().scheduler().now();
}

void PendingCall::take_over(PendingCall const& other) noexcept {
    id_ = other.id_;
    started_ = other.started_;
}

void PendingCall::arrive() {
    TINKXX_ASSERT_LOOP(core().scheduler());
    if (!admitted()) return;
    auto const keep_alive = self_ = shared_from_this();
    auto& scheduler = core().scheduler();
    if (id_ == 0) number();
    shown_since_ = scheduler.now();
    list();
    if (auto const most = limit(); most.count() > 0) {
        deadline_ = std::make_unique<Deadline>(*this, started_ + most);
        scheduler.arm(*deadline_, deadline_->at, Precision::coarse);
    }
    begin();
}

void PendingCall::list() { core().pending().add(*this); }

void PendingCall::unlist() noexcept { core().pending().remove(*this); }

std::shared_ptr<PendingCall> PendingCall::leave() noexcept {
    TINKXX_ASSERT_LOOP(core().scheduler());
    auto kept = std::exchange(self_, nullptr);
    on_leave();
    unlist();
    deadline_.reset();
    return kept;
}

void PendingCall::on_close() noexcept {
    if (!under_way()) return;
    auto const keep_alive = shared_from_this();
    fail(Error{closed_error()});
}

void PendingCall::out_of_time() {
    auto const keep_alive = shared_from_this();
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_->at - started_);
    auto const standing = to_string(status(core().scheduler().now()));
    expire(Error{late_error("not done within its deadline of " + std::to_string(ms.count()) + " ms",
                            standing)});
}

ErrorDetails PendingCall::late_error(std::string const& limit, std::string const& standing) const {
    return {.kind = ErrorKind::timeout,
            .message = std::string{call_name()} + ": " + limit + "; it was " + standing,
            .retryable = true,
            .stopped = RetryEnd::cancelled};
}

ErrorDetails PendingCall::closed_error() const {
    return {.kind = ErrorKind::cancelled,
            .message = std::string{call_name()} + ": the client was closed while it was under way",
            .stopped = RetryEnd::cancelled};
}

void PendingCall::look() {
    if (!under_way()) return;
    auto const stage = shown();
    if (told_ == stage) return;
    told_ = stage;
    shown_since_ = core().scheduler().now();
    if (core().wants_stages()) core().tell_stage(status(shown_since_), told_metadata());
}

std::optional<TimePoint> PendingCall::deadline() const noexcept {
    if (!deadline_) return std::nullopt;
    return deadline_->at;
}

OperationStatus PendingCall::status(TimePoint now) const {
    OperationStatus status;
    status.id = id_;
    status.operation = call_name();
    status.stage = shown();
    status.in_stage = now - shown_since_;
    status.age = now - started_;
    if (deadline_ && deadline_->armed()) status.deadline_in = deadline_->at - now;
    fill(status, now);
    return status;
}

}  // namespace tinkxx::service
