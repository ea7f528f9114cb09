#include "service/recovery/recovery_core.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/recovery/recover_call.hpp"

#include <utility>

namespace tinkxx::service {

RecoveryCore::RecoveryCore(std::weak_ptr<RecoverySource const> its_source,
                           std::shared_ptr<ClientCore> its_core, RecoveryPolicy const& its_policy)
    : source{std::move(its_source)},
      sessionless{std::move(its_core)},
      policy{its_policy.checked()},
      queue_{static_cast<std::size_t>(policy.max_concurrent)} {}

void RecoveryCore::tell(RecoveryEvent event) const {
    if (!sessionless->http().observed()) return;
    event.metadata = sessionless->metadata({});
    sessionless->http().tell(&Observer::on_recovery, std::move(event));
}

void RecoveryCore::call_back(std::function<void()> fn) const {
    sessionless->http().call_back("a callback of recovery", LogLevel::error, std::move(fn));
}

RecoveryQueue::Place RecoveryCore::add(std::shared_ptr<RecoverCall> const& call) {
    TINKXX_ASSERT_LOOP(scheduler());
    auto const place = queue_.add(call->run_id());
    if (place != RecoveryQueue::Place::pending_already) calls_[call->run_id()] = call;
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

std::optional<std::string> last_checkpoint(TrainingRun const& run) {
    if (!run.last_checkpoint) return std::nullopt;
    return run.last_checkpoint->tinker_path;
}

Error ended_early(std::string_view operation, std::string const& run_id, std::string_view why) {
    return Error{{.kind = ErrorKind::cancelled,
                  .message = std::string{operation} + ": run " + run_id + ": " + std::string{why},
                  .stopped = RetryEnd::cancelled}};
}

}  // namespace tinkxx::service
