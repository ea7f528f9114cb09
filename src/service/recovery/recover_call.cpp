#include "service/recovery/recover_call.hpp"

#include "base/loop/loop_rule.hpp"

#include <utility>

namespace tinkxx::service {

RecoverCall::RecoverCall(Promise<Recovered> promise, std::shared_ptr<RecoveryCore> core,
                         RecoveryOrder order)
    : PromiseCall{std::move(promise), core->sessionless, nullptr, "recover"},
      core_{std::move(core)},
      order_{std::move(order)},
      machine_{order_.run_id, core_->policy, order_.checkpoint} {
    stand_alone();
}

void RecoverCall::go() {
    using Place = RecoveryQueue::Place;
    switch (core_->add(std::static_pointer_cast<RecoverCall>(shared_from_this()))) {
        case Place::pending_already:
            return fail(Error{{.kind = ErrorKind::usage,
                               .message = name() + ": run " + order_.run_id +
                                          " is being recovered already; wait for that",
                               .category = ErrorCategory::user,
                               .field = "run_id",
                               .value = order_.run_id}});
        case Place::waits:
            placed_ = true;
            return;
        case Place::begins:
            placed_ = true;
            return attempt();
    }
}

void RecoverCall::admit() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (under_way()) attempt();
}

void RecoverCall::attempt() {
    auto action = machine_.begin();
    core_->tell(event(RecoveryEvent::Kind::started));
    follow(std::move(action));
}

void RecoverCall::follow(RecoveryMachine::Action action) {
    using Machine = RecoveryMachine;
    auto const self = std::static_pointer_cast<RecoverCall>(shared_from_this());
    auto const source = core_->source.lock();
    if (!source) return;  // the executor is gone, and the end is on its way
    auto& runtime = core().http().runtime();
    if (std::holds_alternative<Machine::Fetch>(action)) {
        doing_ = Doing::fetching;
        step_ = then_on_loop(source->run(order_.run_id), self, runtime, &RecoverCall::fetched);
    } else if (auto* const create = std::get_if<Machine::Create>(&action)) {
        doing_ = Doing::creating;
        step_ = then_on_loop(source->make(std::move(create->checkpoint)), self, runtime,
                             &RecoverCall::created);
    } else if (auto* const wait = std::get_if<Machine::Wait>(&action)) {
        doing_ = Doing::waiting;
        auto failed = event(RecoveryEvent::Kind::failed);
        failed.delay = wait->delay;
        failed.error = last_ = wait->error;
        core().http().log(LogLevel::warning, name() + ": run " + order_.run_id + ", attempt " +
                                                 std::to_string(machine_.attempt()) +
                                                 " failed: " + last_->what());
        core_->tell(std::move(failed));
        until_ = scheduler().now() + wait->delay;
        scheduler().arm(alarm_, until_, Precision::exact);
    } else {
        return give_up(std::get<Machine::GiveUp>(action).error);
    }
    look();
}

void RecoverCall::fetched(Result<TrainingRun> run) {
    if (!under_way()) return;
    follow(run ? machine_.on_checkpoint(last_checkpoint(*run)) : machine_.on_error(run.error()));
}

void RecoverCall::created(Result<Replacement> made) {
    if (!under_way()) return;
    if (!made) return follow(machine_.on_error(made.error()));
    auto const keep_alive = shared_from_this();
    auto const& new_run_id = made->model->id();
    for (auto const kind : {RecoveryEvent::Kind::client_created, RecoveryEvent::Kind::completed}) {
        auto told = event(kind);
        told.new_run_id = new_run_id;
        core_->tell(std::move(told));
    }
    core().http().log(LogLevel::info, name() + ": run " + order_.run_id + " goes on as " +
                                          new_run_id + ", from " + machine_.checkpoint());
    Recovered recovered{.replacement = *std::move(made),
                        .checkpoint = machine_.checkpoint(),
                        .attempts = machine_.attempt()};
    if (order_.on_recovered) {
        core_->call_back([tell = order_.on_recovered, recovered] { tell(recovered); });
    }
    drop();
    keep(std::move(recovered));
}

void RecoverCall::give_up(Error const& error) {
    auto failed = event(RecoveryEvent::Kind::failed);
    failed.error = error;
    core_->tell(std::move(failed));
    auto details = error.details();
    details.message = name() + ": run " + order_.run_id + ": given up after attempt " +
                      std::to_string(machine_.attempt()) + ": " + details.message;
    details.stopped = RetryEnd::attempts_spent;
    Error const reason{std::move(details)};
    core().http().log(LogLevel::debug,
                      reason.what());  // the caller is told by the future
    auto exhausted = event(RecoveryEvent::Kind::exhausted);
    exhausted.error = reason;
    core_->tell(std::move(exhausted));
    if (core_->policy.on_failure) {
        core_->call_back([core = core_, run_id = order_.run_id, reason] {
            core->policy.on_failure(run_id, reason);
        });
    }
    fail(reason);
}

void RecoverCall::end() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (under_way()) fail(ended_early(name(), order_.run_id, "its RecoveryExecutor has gone away"));
}

void RecoverCall::drop() noexcept {
    scheduler().disarm(alarm_);
    step_.cancel();
    if (std::exchange(placed_, false)) core_->remove(order_.run_id);
}

Stage RecoverCall::stage() const noexcept {
    switch (doing_) {
        case Doing::queued:
            return Stage::waiting_for_slot;
        case Doing::fetching:
            return Stage::polling;
        case Doing::creating:
            return Stage::submitting;
        case Doing::waiting:
            break;
    }
    return Stage::waiting_to_retry;
}

void RecoverCall::describe(OperationStatus& status, TimePoint now) const {
    status.attempt = machine_.attempt();
    status.why = "run " + order_.run_id + ": ";
    switch (doing_) {
        case Doing::queued:
            status.why += std::to_string(core_->active()) + " other runs are being recovered";
            break;
        case Doing::fetching:
            status.why += "its last checkpoint is being asked for";
            break;
        case Doing::creating:
            status.why += "a model is being made from " + machine_.checkpoint();
            break;
        case Doing::waiting:
            status.why += last_->what();
            status.ends_in = until_ - now;
            break;
    }
}

RecoveryEvent RecoverCall::event(RecoveryEvent::Kind kind) const {
    RecoveryEvent event;
    event.kind = kind;
    event.run_id = order_.run_id;
    event.attempt = machine_.attempt();
    event.checkpoint = machine_.checkpoint();
    return event;
}

}  // namespace tinkxx::service
