#pragma once

#include "service/calls/promise_call.hpp"
#include "service/common/alarm.hpp"
#include "service/recovery/recovery_core.hpp"
#include "service/recovery/run_watch.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx::service {

class WatchCall;

/// The runs that one monitor watches. Loop thread only.
struct WatchList {
    std::map<std::string, std::weak_ptr<WatchCall>> calls{};

    /// Ends all of them.
    void end();
    /// Ends the watch of one run, if there is one.
    void end(std::string const& run_id);
};

/// What a watch has found: the run is lost.
struct LostRun {
    /// The last checkpoint, if there is one.
    std::optional<std::string> checkpoint{};
};

/// Watches one run until it is lost.
class WatchCall final : public PromiseCall<LostRun> {
public:
    WatchCall(Promise<LostRun> promise, std::shared_ptr<RecoveryCore> core,
              std::shared_ptr<WatchList> list, std::string run_id);

    /// It is not to be watched any more. Loop thread only.
    void end();

private:
    void go() override;
    void drop() noexcept override;
    Stage stage() const noexcept override {
        return asking_ ? Stage::polling : Stage::waiting_to_poll;
    }
    void describe(OperationStatus& status, TimePoint now) const override;
    bool background() const noexcept override { return true; }

    void ask();
    void answered_with(Result<TrainingRun> run);

    std::shared_ptr<RecoveryCore> const core_;
    std::shared_ptr<WatchList> const list_;
    std::string const run_id_;
    RunWatch machine_;
    Future<void> step_{};  ///< what is under way, to be cancelled
    Alarm<WatchCall> alarm_{*this, &WatchCall::ask};
    TimePoint until_{};
    bool asking_{false};
    bool listed_{false};
};

}  // namespace tinkxx::service
