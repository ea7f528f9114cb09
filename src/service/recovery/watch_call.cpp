#include "service/recovery/watch_call.hpp"

#include "base/loop/loop_rule.hpp"

#include <utility>

namespace tinkxx::service {

void WatchList::end() {
    for (auto const& [run_id, weak] : std::exchange(calls, {})) {
        if (auto const call = weak.lock()) call->end();
    }
}

void WatchList::end(std::string const& run_id) {
    auto const found = calls.find(run_id);
    if (found == calls.end()) return;
    if (auto const call = found->second.lock()) call->end();
}

WatchCall::WatchCall(Promise<LostRun> promise, std::shared_ptr<RecoveryCore> core,
                     std::shared_ptr<WatchList> list, std::string run_id)
    : PromiseCall{std::move(promise), core->sessionless, nullptr, "watch"},
      core_{std::move(core)},
      list_{std::move(list)},
      run_id_{std::move(run_id)},
      machine_{core_->policy.poll_interval} {
    stand_alone();
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
    auto const source = core_->source.lock();
    if (!source) return;  // the monitor is gone, and the end is on its way
    asking_ = true;
    step_ =
        then_on_loop(source->run(run_id_), std::static_pointer_cast<WatchCall>(shared_from_this()),
                     core().http().runtime(), &WatchCall::answered_with);
    look();
}

void WatchCall::answered_with(Result<TrainingRun> run) {
    if (!under_way()) return;
    asking_ = false;
    auto action = run ? machine_.on_run({run->corrupted, last_checkpoint(*run)})
                      : machine_.on_error(run.error());
    if (!run) {
        RecoveryEvent failed;
        failed.kind = RecoveryEvent::Kind::poll_error;
        failed.run_id = run_id_;
        failed.error = run.error();
        core_->tell(std::move(failed));
    }
    if (auto const* const wait = std::get_if<RunWatch::Wait>(&action)) {
        until_ = scheduler().now() + wait->delay;
        scheduler().arm(alarm_, until_, Precision::exact);
        return look();
    }
    auto& recover = std::get<RunWatch::Recover>(action);
    RecoveryEvent event;
    event.kind = RecoveryEvent::Kind::detected;
    event.run_id = run_id_;
    event.checkpoint = recover.checkpoint.value_or("");
    core().http().log(LogLevel::warning,
                      name() + ": the server has lost the state of run " + run_id_);
    core_->tell(std::move(event));
    auto const keep_alive = shared_from_this();
    drop();
    keep(LostRun{std::move(recover.checkpoint)});
}

void WatchCall::end() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (under_way()) fail(ended_early(name(), run_id_, "it is not watched any more"));
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

}  // namespace tinkxx::service
