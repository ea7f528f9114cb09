#include "client/recovery_calls.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/training/training_start.hpp"

#include <exception>
#include <utility>

namespace tinkxx::client {
namespace {

/// Has `member` of `call` called on the loop with the result of `future`, if the call is still
/// there. The future that it gives is there to be cancelled.
template <class T, class Call>
Future<void> then_on_loop(Future<T> future, std::shared_ptr<detail::RuntimeCore> runtime,
                          std::shared_ptr<Call> const& call, void (Call::*member)(Result<T>)) {
    return future.then_result(
        [runtime = std::move(runtime), weak = std::weak_ptr<Call>{call}, member](Result<T> result) {
            auto& scheduler = runtime->scheduler();
            scheduler.post([weak, member, result = std::move(result)]() mutable {
                if (auto const kept = weak.lock()) ((*kept).*member)(std::move(result));
            });
        });
}

service::RecoveryRules rules_of(RecoveryPolicy const& policy) {
    return {.max_attempts = policy.max_attempts,
            .backoff = policy.backoff,
            .max_backoff = policy.max_backoff,
            .poll_interval = policy.poll_interval,
            .max_concurrent = policy.max_concurrent};
}

std::optional<std::string> checkpoint_of(TrainingRun const& run) {
    if (!run.last_checkpoint) return std::nullopt;
    return run.last_checkpoint->tinker_path;
}

Error ended(std::string_view operation, std::string const& run_id, std::string_view why) {
    return Error{{.kind = ErrorKind::cancelled,
                  .message = std::string{operation} + ": run " + run_id + ": " + std::string{why},
                  .stopped = RetryEnd::cancelled}};
}

}  // namespace

// What they have in common ------------------------------------------------------------------------

RecoveryCore::RecoveryCore(std::weak_ptr<ServiceClient const> its_service,
                           std::shared_ptr<service::ClientCore> its_core,
                           RecoveryPolicy const& its_policy)
    : service{std::move(its_service)},
      sessionless{std::move(its_core)},
      policy{its_policy.checked()},
      rules{rules_of(policy)},
      queue_{static_cast<std::size_t>(rules.max_concurrent)} {}

void RecoveryCore::tell(RecoveryEvent event) const {
    if (!sessionless->http().observed()) return;
    event.metadata = sessionless->metadata({});
    sessionless->http().tell(&Observer::on_recovery, std::move(event));
}

template <class Fn>
void RecoveryCore::call_back(std::shared_ptr<RecoveryCore const> const& self, Fn fn) const {
    sessionless->http().runtime().run_callback([self, fn = std::move(fn)] {
        try {
            fn(self->policy);
        } catch (std::exception const& e) {
            self->sessionless->http().log(LogLevel::error,
                                          std::string{"a callback of recovery threw: "} + e.what());
        } catch (...) {
            self->sessionless->http().log(
                LogLevel::error, "a callback of recovery threw something that is no exception");
        }
    });
}

service::RecoveryQueue::Place RecoveryCore::add(std::shared_ptr<RecoverCall> const& call) {
    TINKXX_ASSERT_LOOP(scheduler());
    auto const place = queue_.add(call->run_id());
    if (place != service::RecoveryQueue::Place::pending_already) calls_[call->run_id()] = call;
    return place;
}

void RecoveryCore::remove(std::string const& run_id) {
    TINKXX_ASSERT_LOOP(scheduler());
    calls_.erase(run_id);
    auto const next = queue_.remove(run_id);
    auto const found = next ? calls_.find(*next) : calls_.end();
    if (found == calls_.end()) return;
    // Not at once: the one that leaves may do so because all of them end.
    scheduler().post([weak = found->second] {
        if (auto const call = weak.lock()) call->admit();
    });
}

void RecoveryCore::end() {
    TINKXX_ASSERT_LOOP(scheduler());
    for (auto const& [run_id, weak] : std::exchange(calls_, {})) {
        if (auto const call = weak.lock()) call->end();
    }
}

// Recoveries --------------------------------------------------------------------------------------

RecoverCall::RecoverCall(std::shared_ptr<RecoveryCore> core, RecoveryOrder order,
                         Promise<Recovery> promise)
    : service::SessionCall{core->sessionless, nullptr, "recover"},
      core_{std::move(core)},
      order_{std::move(order)},
      machine_{order_.run_id, core_->rules, order_.checkpoint},
      promise_{std::move(promise)} {
    stand_alone();
}

void RecoverCall::launch() {
    promise_.on_cancel(canceller());
    service::SessionCall::launch();
}

void RecoverCall::go() {
    using Place = service::RecoveryQueue::Place;
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
    if (under_way()) attempt();
}

void RecoverCall::attempt() {
    auto action = machine_.begin();
    core_->tell(event(RecoveryEvent::Kind::started));
    follow(std::move(action));
}

void RecoverCall::follow(service::RecoveryMachine::Action action) {
    using Machine = service::RecoveryMachine;
    auto const self = std::static_pointer_cast<RecoverCall>(shared_from_this());
    auto const owner = core_->service.lock();
    if (!owner) return;  // the executor is gone, and the end is on its way
    auto const& runtime = owner->runtime();
    if (std::holds_alternative<Machine::Fetch>(action)) {
        doing_ = Doing::fetching;
        step_ = then_on_loop(service::get_training_run(runtime, core_->sessionless, order_.run_id,
                                                       service::Repeat::once),
                             runtime.core(), self, &RecoverCall::fetched);
    } else if (auto* const create = std::get_if<Machine::Create>(&action)) {
        doing_ = Doing::creating;
        auto made = core_->policy.restore_optimizer
                        ? owner->create_training_client_from_state_with_optimizer(
                              std::move(create->checkpoint))
                        : owner->create_training_client_from_state(std::move(create->checkpoint));
        step_ = then_on_loop(std::move(made), runtime.core(), self, &RecoverCall::created);
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
    follow(run ? machine_.on_checkpoint(checkpoint_of(*run)) : machine_.on_error(run.error()));
}

void RecoverCall::created(Result<TrainingClient> client) {
    if (!under_way()) return;
    if (!client) return follow(machine_.on_error(client.error()));
    auto const keep_alive = shared_from_this();
    Recovery recovery{.run_id = order_.run_id,
                      .old_client = order_.client,
                      .client = *std::move(client),
                      .checkpoint = machine_.checkpoint(),
                      .attempts = machine_.attempt()};
    for (auto const kind : {RecoveryEvent::Kind::client_created, RecoveryEvent::Kind::completed}) {
        auto told = event(kind);
        told.new_run_id = recovery.client.model_id();
        core_->tell(std::move(told));
    }
    core().http().log(LogLevel::info, name() + ": run " + order_.run_id + " goes on as " +
                                          recovery.client.model_id() + ", from " +
                                          recovery.checkpoint);
    if (core_->policy.on_recovery) {
        core_->call_back(
            core_, [recovery](RecoveryPolicy const& policy) { policy.on_recovery(recovery); });
    }
    drop();
    leave();
    promise_.set_value(std::move(recovery));
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
        core_->call_back(core_, [run_id = order_.run_id, reason](RecoveryPolicy const& policy) {
            policy.on_failure(run_id, reason);
        });
    }
    fail(reason);
}

void RecoverCall::end() {
    if (under_way()) fail(ended(name(), order_.run_id, "its RecoveryExecutor has gone away"));
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

// Watches -----------------------------------------------------------------------------------------

void WatchList::end() {
    for (auto const& [run_id, weak] : std::exchange(calls, {})) {
        if (auto const call = weak.lock()) call->end();
    }
}

WatchCall::WatchCall(std::shared_ptr<RecoveryCore> core, std::shared_ptr<WatchList> list,
                     std::string run_id, Promise<LostRun> promise)
    : service::SessionCall{core->sessionless, nullptr, "watch"},
      core_{std::move(core)},
      list_{std::move(list)},
      run_id_{std::move(run_id)},
      machine_{core_->rules.poll_interval},
      promise_{std::move(promise)} {
    stand_alone();
}

void WatchCall::launch() {
    promise_.on_cancel(canceller());
    service::SessionCall::launch();
}

void WatchCall::go() {
    auto self = std::static_pointer_cast<WatchCall>(shared_from_this());
    if (!list_->calls.try_emplace(run_id_, std::move(self)).second) {
        return fail(Error{{.kind = ErrorKind::usage,
                           .message = name() + ": run " + run_id_ + " is watched already",
                           .category = ErrorCategory::user,
                           .field = "run_id",
                           .value = run_id_}});
    }
    listed_ = true;
    ask();
}

void WatchCall::ask() {
    auto const owner = core_->service.lock();
    if (!owner) return;  // the monitor is gone, and the end is on its way
    auto const& runtime = owner->runtime();
    asking_ = true;
    step_ = then_on_loop(
        service::get_training_run(runtime, core_->sessionless, run_id_, service::Repeat::once),
        runtime.core(), std::static_pointer_cast<WatchCall>(shared_from_this()),
        &WatchCall::answered_with);
    look();
}

void WatchCall::answered_with(Result<TrainingRun> run) {
    if (!under_way()) return;
    asking_ = false;
    auto action = run ? machine_.on_run({run->corrupted, checkpoint_of(*run)})
                      : machine_.on_error(run.error());
    if (!run) {
        RecoveryEvent failed;
        failed.kind = RecoveryEvent::Kind::poll_error;
        failed.run_id = run_id_;
        failed.error = run.error();
        core_->tell(std::move(failed));
    }
    if (auto const* const wait = std::get_if<service::RunWatch::Wait>(&action)) {
        until_ = scheduler().now() + wait->delay;
        scheduler().arm(alarm_, until_, Precision::exact);
        return look();
    }
    auto& recover = std::get<service::RunWatch::Recover>(action);
    RecoveryEvent event;
    event.kind = RecoveryEvent::Kind::detected;
    event.run_id = run_id_;
    event.checkpoint = recover.checkpoint.value_or("");
    core().http().log(LogLevel::warning,
                      name() + ": the server has lost the state of run " + run_id_);
    core_->tell(std::move(event));
    auto const keep_alive = shared_from_this();
    drop();
    leave();
    promise_.set_value(LostRun{std::move(recover.checkpoint)});
}

void WatchCall::end() {
    if (under_way()) fail(ended(name(), run_id_, "it is not watched any more"));
}

void WatchCall::drop() noexcept {
    scheduler().disarm(alarm_);
    step_.cancel();
    if (std::exchange(listed_, false)) list_->calls.erase(run_id_);
}

void WatchCall::describe(OperationStatus& status, TimePoint now) const {
    status.polls = machine_.polls();
    status.why = "run " + run_id_ + ": ";
    if (asking_) {
        status.why += "its state is being asked for";
    } else {
        status.why += machine_.trouble() ? machine_.trouble()->what() : "it is well";
        status.ends_in = until_ - now;
    }
}

}  // namespace tinkxx::client
