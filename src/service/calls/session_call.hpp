#pragma once

#include <tinkxx/status.hpp>

#include "service/common/alarm.hpp"
#include "service/core/client_core.hpp"
#include "service/sampling/sampler.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx::service {

/// A call while it is under way: waits for what it needs, is listed among the pending, seen by
/// observers, and ended by its deadline, a cancel or the client's close. Made on the caller's
/// thread, then lives on the loop, which holds it until it is over.
class SessionCall : public std::enable_shared_from_this<SessionCall>,
                    private PendingEntry,
                    private ReadyWaiter,
                    private SamplerWaiter {
public:
    ~SessionCall() override = default;

protected:
    /// `sampler` is null if the call needs the session only.
    SessionCall(std::shared_ptr<ClientCore> core, std::shared_ptr<Sampler> sampler,
                std::string name);

    /// In place of the client's deadline, if it is not zero; and what observers are told. Before
    /// it is launched.
    void set_call(std::chrono::milliseconds deadline, Metadata metadata);
    /// Waits for nothing and has no deadline: for what makes calls of its own. Before it is
    /// launched.
    void stand_alone() noexcept {
        alone_ = true;
        limit_ = {};
    }
    /// Goes to the loop. Any thread, once.
    void launch();
    /// For the promise: ends the call on the loop.
    [[nodiscard]] Task canceller();

    /// What it needs is there: answer, or begin what leads to an answer.
    virtual void go() = 0;
    /// Gives the error to the caller.
    virtual void answer(Error error) = 0;
    /// Whether the caller wants no answer any more.
    [[nodiscard]] virtual bool answered() const = 0;
    /// Ends what `go` began.
    virtual void drop() noexcept {}
    /// It is about to fail with this error, since it took too long.
    virtual void on_deadline(Error const& /*error*/) noexcept {}
    /// Where it stands since `go`.
    [[nodiscard]] virtual Stage stage() const noexcept { return Stage::submitting; }
    virtual void describe(OperationStatus& /*status*/, TimePoint /*now*/) const {}

    /// It is over: leaves the list. Harmless to repeat. The caller keeps the call alive.
    void leave() noexcept;
    void fail(Error error);
    /// Tells observers if it stands somewhere else than before.
    void look();
    void on_standing() override { look(); }
    [[nodiscard]] bool under_way() const noexcept { return self_ != nullptr; }
    [[nodiscard]] Error named(Error const& error) const;
    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] Metadata const& metadata() const noexcept { return metadata_; }
    [[nodiscard]] ClientCore& core() const noexcept { return *core_; }
    [[nodiscard]] Scheduler& scheduler() const noexcept { return core_->scheduler(); }

private:
    void begin();
    void ready(Result<void> const& outcome);
    void on_ready(Result<void> outcome) override { ready(outcome); }
    void on_sampler(Result<void> outcome) override { ready(outcome); }
    void on_close() noexcept override;
    void out_of_time();
    void stop() noexcept;
    [[nodiscard]] Stage shown() const noexcept;
    OperationStatus status(TimePoint now) const override;

    std::shared_ptr<ClientCore> const core_;
    std::shared_ptr<Sampler> const sampler_;
    std::string const name_;
    std::chrono::milliseconds limit_;
    bool alone_{false};
    Metadata metadata_{};
    Alarm<SessionCall> deadline_{*this, &SessionCall::out_of_time};
    std::shared_ptr<SessionCall> self_{};  // while under way; loop thread only
    std::uint64_t id_{0};
    bool ready_{false};
    std::optional<Stage> shown_{};  ///< what observers know
    TimePoint started_{};
    TimePoint shown_since_{};
    TimePoint ends_{};
};

}  // namespace tinkxx::service
