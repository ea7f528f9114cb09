#pragma once

#include <tinkxx/status.hpp>

#include "service/core/client_core.hpp"
#include "service/core/pending_call.hpp"
#include "service/sampling/sampler.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// A call that begins once the session, or a sampler, is ready.
class SessionCall : public PendingCall, private ReadyWaiter, private SamplerWaiter {
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

    /// What it needs is there: answer, or begin what leads to an answer.
    virtual void go() = 0;
    /// Ends what `go` began.
    virtual void drop() noexcept {}
    /// It is about to fail with this error, since it took too long.
    virtual void on_deadline(Error const& /*error*/) noexcept {}
    /// Where it stands since `go`.
    [[nodiscard]] virtual Stage stage() const noexcept { return Stage::submitting; }
    virtual void describe(OperationStatus& /*status*/, TimePoint /*now*/) const {}

    void fail(Error error) final;
    void on_standing() override { look(); }
    [[nodiscard]] Error named(Error const& error) const;
    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] Metadata const& metadata() const noexcept { return metadata_; }
    [[nodiscard]] ClientCore& core() const noexcept final { return *core_; }
    [[nodiscard]] Scheduler& scheduler() const noexcept { return core_->scheduler(); }

private:
    void begin() final;
    void ready(Result<void> const& outcome);
    void on_ready(Result<void> outcome) override { ready(outcome); }
    void on_sampler(Result<void> outcome) override { ready(outcome); }
    void expire(Error error) final;
    void stop() noexcept final;
    void on_leave() noexcept final;
    std::string_view call_name() const noexcept final { return name_; }
    std::chrono::milliseconds limit() const noexcept final { return limit_; }
    Metadata told_metadata() const final { return metadata_; }
    Stage shown() const noexcept final;
    void fill(OperationStatus& status, TimePoint now) const final;

    std::shared_ptr<ClientCore> const core_;
    std::shared_ptr<Sampler> const sampler_;
    std::string const name_;
    std::chrono::milliseconds limit_;
    Metadata metadata_{};
    bool alone_{false};
    bool ready_{false};
};

}  // namespace tinkxx::service
