#include "service/calls/session_call.hpp"

#include "service/results/standing.hpp"

#include <utility>

namespace tinkxx::service {

SessionCall::SessionCall(std::shared_ptr<ClientCore> core, std::shared_ptr<Sampler> sampler,
                         std::string name)
    : core_{std::move(core)},
      sampler_{std::move(sampler)},
      name_{std::move(name)},
      limit_{core_->config().deadline} {}

void SessionCall::set_call(std::chrono::milliseconds deadline, Metadata metadata) {
    if (deadline.count() > 0) limit_ = deadline;
    metadata_ = std::move(metadata);
}

void SessionCall::begin() {
    core_->attach();
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

void SessionCall::on_leave() noexcept {
    core_->session().forget(static_cast<ReadyWaiter&>(*this));
    if (sampler_) sampler_->forget(static_cast<SamplerWaiter&>(*this));
}

void SessionCall::fail(Error error) {
    auto const keep_alive = shared_from_this();
    drop();
    leave();
    if (auto* const telemetry = core_->context().telemetry()) telemetry->capture(error);
    answer(std::move(error));
}

void SessionCall::expire(Error error) {
    on_deadline(error);
    fail(std::move(error));
}

void SessionCall::stop() noexcept {
    if (!under_way()) return;
    auto const keep_alive = shared_from_this();
    drop();
    leave();
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

void SessionCall::fill(OperationStatus& status, TimePoint now) const {
    if (ready_) return describe(status, now);
    status.why = sampler_ ? sampler_->standing(now) : core_->session().standing();
    auto const until = sampler_ ? sampler_->until() : core_->session().until();
    if (until) status.ends_in = *until - now;
    auto const call = sampler_ ? sampler_->call_standing() : core_->session().call_standing();
    if (call) describe_stall(status, *call, now);
}

}  // namespace tinkxx::service
