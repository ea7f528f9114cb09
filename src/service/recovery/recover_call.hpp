#pragma once

#include "service/calls/promise_call.hpp"
#include "service/common/alarm.hpp"
#include "service/recovery/recovery_core.hpp"
#include "service/recovery/recovery_machine.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx::service {

/// A run that was recovered.
struct Recovered {
    Replacement replacement;
    /// What it was restored from.
    std::string checkpoint{};
    int attempts{1};
};

/// A run to be recovered.
struct RecoveryOrder {
    std::string run_id{};
    /// Which checkpoint to restore, unless that is to be asked for.
    std::optional<std::string> checkpoint{};
    /// Called on the callback executor once it is done. Empty if nobody wants to know.
    std::function<void(Recovered const&)> on_recovered{};
};

/// The recovery of one run, from its place in the queue to its new model.
class RecoverCall final : public PromiseCall<Recovered> {
public:
    RecoverCall(Promise<Recovered> promise, std::shared_ptr<RecoveryCore> core,
                RecoveryOrder order);

    // Loop thread only.
    [[nodiscard]] std::string const& run_id() const noexcept { return order_.run_id; }
    /// There is a place for it.
    void admit();
    /// Its executor is gone.
    void end();

private:
    enum class Doing : std::uint8_t { queued, fetching, creating, waiting };

    void go() override;
    void drop() noexcept override;
    Stage stage() const noexcept override;
    void describe(OperationStatus& status, TimePoint now) const override;

    void attempt();
    void follow(RecoveryMachine::Action action);
    void fetched(Result<TrainingRun> run);
    void created(Result<Replacement> made);
    void give_up(Error const& error);
    [[nodiscard]] RecoveryEvent event(RecoveryEvent::Kind kind) const;

    std::shared_ptr<RecoveryCore> const core_;
    RecoveryOrder const order_;
    RecoveryMachine machine_;
    Future<void> step_{};  ///< what is under way, to be cancelled
    Alarm<RecoverCall> alarm_{*this, &RecoverCall::attempt};
    TimePoint until_{};
    Doing doing_{Doing::queued};
    bool placed_{false};
    std::optional<Error> last_{};
};

}  // namespace tinkxx::service
