#include "service/recovery/recovery_machine.hpp"

#include "service/http/http_error.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

std::chrono::milliseconds delay_after(int attempt, RecoveryPolicy const& policy) noexcept {
    auto delay = std::min(policy.backoff, policy.max_backoff);
    for (int i = 1; i < attempt && delay < policy.max_backoff; ++i) {
        delay = std::min(delay * 2, policy.max_backoff);
    }
    return delay;
}

RecoveryMachine::RecoveryMachine(std::string run_id, RecoveryPolicy policy,
                                 std::optional<std::string> checkpoint)
    : run_id_{std::move(run_id)}, policy_{std::move(policy)}, known_{std::move(checkpoint)} {}

RecoveryMachine::Action RecoveryMachine::begin() {
    ++attempt_;
    // What was found out is found out anew: a checkpoint may have expired since.
    chosen_ = known_.value_or("");
    if (known_) return Create{*known_};
    return Fetch{};
}

RecoveryMachine::Action RecoveryMachine::on_checkpoint(std::optional<std::string> checkpoint) {
    if (!checkpoint) {
        ErrorDetails details;
        details.kind = ErrorKind::validation;
        details.category = ErrorCategory::user;
        details.message = "run " + run_id_ +
                          " has no checkpoint to be restored from; save one by "
                          "TrainingClient::save_state, or name one";
        details.field = "last_checkpoint";
        return on_error(Error{std::move(details)});
    }
    chosen_ = *std::move(checkpoint);
    return Create{chosen_};
}

RecoveryMachine::Action RecoveryMachine::on_error(Error error) {
    if (attempt_ >= policy_.max_attempts || cannot_heal(error)) return GiveUp{std::move(error)};
    return Wait{delay_after(attempt_, policy_), std::move(error)};
}

}  // namespace tinkxx::service
