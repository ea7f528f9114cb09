#pragma once

#include <tinkxx/recovery.hpp>

#include "service/calls/session_call.hpp"
#include "service/recovery/recovery_machine.hpp"
#include "service/recovery/recovery_queue.hpp"
#include "service/recovery/run_watch.hpp"
#include "wire/rest/training_runs.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::client {

class RecoverCall;
class WatchCall;

/// What the recoveries and watches of one executor have in common.
class RecoveryCore {
public:
    /// `sessionless` is a core of the same client, without a session.
    RecoveryCore(std::weak_ptr<ServiceClient const> service,
                 std::shared_ptr<service::ClientCore> sessionless, RecoveryPolicy const& policy);
    RecoveryCore(RecoveryCore const&) = delete;
    RecoveryCore& operator=(RecoveryCore const&) = delete;

    // Any thread.
    /// There while the executor is. Calls under way must not keep the client, which keeps the
    /// runtime that is to end them.
    std::weak_ptr<ServiceClient const> const service;
    std::shared_ptr<service::ClientCore> const sessionless;
    RecoveryPolicy const policy;  ///< checked
    service::RecoveryRules const rules;
    [[nodiscard]] Scheduler& scheduler() const noexcept { return sessionless->scheduler(); }
    void tell(RecoveryEvent event) const;
    /// Calls `fn(policy)` on the callback executor.
    template <class Fn>
    void call_back(std::shared_ptr<RecoveryCore const> const& self, Fn fn) const;

    // Loop thread only.
    [[nodiscard]] service::RecoveryQueue::Place add(std::shared_ptr<RecoverCall> const& call);
    void remove(std::string const& run_id);
    [[nodiscard]] std::size_t active() const noexcept { return queue_.active(); }
    /// Ends all recoveries.
    void end();

private:
    service::RecoveryQueue queue_;
    std::map<std::string, std::weak_ptr<RecoverCall>> calls_{};
};

/// A run to be recovered.
struct RecoveryOrder {
    std::string run_id{};
    TrainingClient client{};
    /// Which checkpoint to restore, unless that is to be asked for.
    std::optional<std::string> checkpoint{};
};

/// The recovery of one run, from its place in the queue to its new model.
class RecoverCall final : public service::SessionCall {
public:
    RecoverCall(std::shared_ptr<RecoveryCore> core, RecoveryOrder order, Promise<Recovery> promise);

    /// Goes to the loop. Any thread, once.
    void launch();

    // Loop thread only.
    [[nodiscard]] std::string const& run_id() const noexcept { return order_.run_id; }
    /// There is a place for it.
    void admit();
    /// Its executor is gone.
    void end();

private:
    enum class Doing : std::uint8_t { queued, fetching, creating, waiting };

    void go() override;
    void answer(Error error) override { promise_.set_error(std::move(error)); }
    bool answered() const override { return promise_.done(); }
    void drop() noexcept override;
    Stage stage() const noexcept override;
    void describe(OperationStatus& status, TimePoint now) const override;

    void attempt();
    void follow(service::RecoveryMachine::Action action);
    void fetched(Result<TrainingRun> run);
    void created(Result<TrainingClient> client);
    void give_up(Error const& error);
    [[nodiscard]] RecoveryEvent event(RecoveryEvent::Kind kind) const;

    std::shared_ptr<RecoveryCore> const core_;
    RecoveryOrder const order_;
    service::RecoveryMachine machine_;
    Promise<Recovery> promise_;
    Future<void> step_{};  ///< what is under way, to be cancelled
    service::Alarm<RecoverCall> alarm_{*this, &RecoverCall::attempt};
    TimePoint until_{};
    Doing doing_{Doing::queued};
    bool placed_{false};
    std::optional<Error> last_{};
};

/// The runs that one monitor watches. Loop thread only.
struct WatchList {
    std::map<std::string, std::weak_ptr<WatchCall>> calls{};

    /// Ends all of them.
    void end();
};

/// What a watch has found: the run is lost.
struct LostRun {
    /// The last checkpoint, if there is one.
    std::optional<std::string> checkpoint{};
};

/// Watches one run until it is lost.
class WatchCall final : public service::SessionCall {
public:
    WatchCall(std::shared_ptr<RecoveryCore> core, std::shared_ptr<WatchList> list,
              std::string run_id, Promise<LostRun> promise);

    /// Goes to the loop. Any thread, once.
    void launch();
    /// It is not to be watched any more. Loop thread only.
    void end();

private:
    void go() override;
    void answer(Error error) override { promise_.set_error(std::move(error)); }
    bool answered() const override { return promise_.done(); }
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
    service::RunWatch machine_;
    Promise<LostRun> promise_;
    Future<void> step_{};  ///< what is under way, to be cancelled
    service::Alarm<WatchCall> alarm_{*this, &WatchCall::ask};
    TimePoint until_{};
    bool asking_{false};
    bool listed_{false};
};

}  // namespace tinkxx::client
