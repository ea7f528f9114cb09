#include "service/training/training_call.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/results/poll_machine.hpp"

namespace tinkxx::service {

TrainingCall::TrainingCall(std::shared_ptr<ClientCore> const& core, std::string name,
                           CallOptions call)
    : SessionCall{core, nullptr, std::move(name)}, call_{std::move(call)}, pass_{*core, *this} {
    set_call(call_.deadline, call_.metadata);
}

void TrainingCall::start(PassPlan plan) {
    TINKXX_ASSERT_LOOP(scheduler());
    set_stage(std::nullopt);
    result_type_ = plan.submits.front().request_type;
    plan.metadata = call_.metadata;
    plan.breaker = call_.circuit_breaker;
    pass_.start(std::move(plan));
}

void TrainingCall::set_stage(std::optional<Stage> stage, std::string why) {
    own_ = stage;
    own_why_ = std::move(why);
    look();
}

void TrainingCall::on_results(std::vector<RetrievedResult> results) {
    auto const keep_alive = shared_from_this();
    result_protobuf_ = !results.empty() && results.front().protobuf;
    on_pass(std::move(results));
}

void TrainingCall::on_error(Error error) {
    auto const keep_alive = shared_from_this();
    on_refusal(error);
}

void TrainingCall::unreadable(Error const& error) {
    report_unreadable_result(core().context().telemetry(), {}, result_type_, result_protobuf_,
                             error);
    fail(named(error));
}

void TrainingCall::on_queue_state(Submission const& of, QueueState state,
                                  std::string const& reason) {
    QueueStanding now{state, reason};
    QueueStateEvent told;
    told.state = state;
    told.reason = reason;
    told.request_id = of.request_id();
    told.request_type = of.request_type();
    told.owner_id = owner();
    told.changed = queue_ != now;
    told.metadata = core().metadata(call_.metadata);
    queue_ = std::move(now);
    reporter().tell(core().http(), call_, std::move(told));
}

void TrainingCall::describe(OperationStatus& status, TimePoint now) const {
    if (own_) {
        status.why = own_why_;
    } else {
        pass_.describe(status, now);
    }
}

}  // namespace tinkxx::service
