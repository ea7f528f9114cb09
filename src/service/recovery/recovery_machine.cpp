#include "service/recovery/recovery_machine.hpp"

#include "service/http/http_error.hpp"

#include <utility>

namespace tinkxx::service {

RecoveryMachine::RecoveryMachine(std::string run_id, RecoveryRules rules,
                                 std::optional<std::string> checkpoint)
    : run_id_{std::move(run_id)}, rules_{rules}, known_{std::move(checkpoint)} {}

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
    if (attempt_ >= rules_.max_attempts || cannot_heal(error)) return GiveUp{std::move(error)};
    return Wait{rules_.delay_after(attempt_), std::move(error)};
}

}  // namespace tinkxx::service
