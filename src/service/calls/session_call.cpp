#include "service/calls/session_call.hpp"

#include "service/results/standing.hpp"

#include <utility>

namespace tinkxx::service {

SessionCall::SessionCall(std::shared_ptr<ClientCore> core, std::shared_ptr<Sampler> sampler,
                         std::string name)
    : core_{std::move(core)},
      sampler_{std::move(sampler)},
      name_{std::move(name)},
      limit_{core_->settings().deadline} {}

void SessionCall::set_call(std::chrono::milliseconds deadline, Metadata metadata) {
    if (deadline.count() > 0) limit_ = deadline;
    metadata_ = std::move(metadata);
}

void SessionCall::launch() {
    scheduler().post([self = shared_from_this()] { self->begin(); });
}

Task SessionCall::canceller() {
    // Weak: a cancel that is never made must not keep the call.
    return [weak = weak_from_this(), &scheduler = scheduler()] {
        scheduler.post([weak] {
            if (auto const call = weak.lock()) call->stop();
        });
    };
}

void SessionCall::begin() {
    if (answered()) return;  // cancelled before it began
    if (auto refusal = core_->refusal(name_)) return answer(*std::move(refusal));
    auto const keep_alive = self_ = shared_from_this();
    started_ = shown_since_ = scheduler().now();
    id_ = core_->pending().next_id();
    core_->attach();
    core_->pending().add(*this);
    if (limit_.count() > 0) {
        ends_ = started_ + limit_;
        scheduler().arm(deadline_, ends_, Precision::coarse);
    }
    if (alone_) return ready({});
    if (sampler_) {
        if (auto const known = sampler_->when_ready(*this)) return ready(*known);
    } else {
        if (core_->session().ready()) return ready({});
        core_->session().when_ready(*this);
    }
    look();
}

void SessionCall::ready(Result<void> const& outcome) {
    if (!outcome) return fail(named(outcome.error()));
    auto const keep_alive = shared_from_this();
    ready_ = true;
    go();
    look();
}

void SessionCall::leave() noexcept {
    auto const keep_alive = std::exchange(self_, nullptr);
    core_->session().forget(static_cast<ReadyWaiter&>(*this));
    if (sampler_) sampler_->forget(static_cast<SamplerWaiter&>(*this));
    core_->pending().remove(*this);
    scheduler().disarm(deadline_);
}

void SessionCall::fail(Error error) {
    auto const keep_alive = shared_from_this();
    drop();
    leave();
    if (auto* const telemetry = core_->context().telemetry()) telemetry->capture(error);
    answer(std::move(error));
}

void SessionCall::stop() noexcept {
    if (!under_way()) return;
    auto const keep_alive = shared_from_this();
    drop();
    leave();
}

void SessionCall::on_close() noexcept {
    fail(Error{{.kind = ErrorKind::cancelled,
                .message = name_ + ": the client was closed while it was under way",
                .stopped = RetryEnd::cancelled}});
}

void SessionCall::out_of_time() {
    auto const standing = status(scheduler().now());
    Error const error{{.kind = ErrorKind::timeout,
                       .message = name_ + ": not done within its deadline of " +
                                  std::to_string(limit_.count()) + " ms; it was " +
                                  to_string(standing),
                       .retryable = true,
                       .stopped = RetryEnd::cancelled}};
    on_deadline(error);
    fail(error);
}

Error SessionCall::named(Error const& error) const {
    auto details = error.details();
    details.message = with_operation(name_, details.message);
    return Error{std::move(details)};
}

Stage SessionCall::shown() const noexcept {
    if (ready_) return stage();
    return sampler_ ? sampler_->stage() : core_->session().stage();
}

void SessionCall::look() {
    if (!under_way()) return;
    auto const stage = shown();
    if (shown_ == stage) return;
    shown_ = stage;
    shown_since_ = scheduler().now();
    if (core_->wants_stages()) core_->tell_stage(status(shown_since_), metadata_);
}

OperationStatus SessionCall::status(TimePoint now) const {
    OperationStatus status;
    status.id = id_;
    status.operation = name_;
    status.stage = shown();
    status.in_stage = now - shown_since_;
    status.age = now - started_;
    if (deadline_.armed()) status.deadline_in = ends_ - now;
    if (ready_) {
        describe(status, now);
        return status;
    }
    status.why = sampler_ ? sampler_->standing(now) : core_->session().standing();
    auto const until = sampler_ ? sampler_->until() : core_->session().until();
    if (until) status.ends_in = *until - now;
    auto const call = sampler_ ? sampler_->call_standing() : core_->session().call_standing();
    if (call) describe_stall(status, *call, now);
    return status;
}

}  // namespace tinkxx::service
