#pragma once

#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/future.hpp>

#include "service/breaker/breaker_guard.hpp"
#include "service/core/pending_call.hpp"
#include "service/retry/retry_handler.hpp"
#include "service/sampling/attempt_notes.hpp"
#include "service/sampling/sample_dispatch.hpp"
#include "service/sampling/sample_exchange.hpp"
#include "service/sampling/sample_order.hpp"
#include "service/sampling/sampler.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// One sample on its way (R-SAMP-10): sampler, handler, dispatch, and what goes over the wire; and
/// round again when an attempt fails.
///
/// `PendingCall` is the last base, so that small members lie in the space behind it.
class SampleCall final : private SampleExchange::Owner,
                         private SamplerWaiter,
                         private HandledCall,
                         private Timer,
                         public PendingCall {
public:
    SampleCall(std::shared_ptr<Sampler> sampler, SampleOrder order,
               Promise<SampleResponse> promise);
    ~SampleCall() override;

    /// Goes to the loop. Any thread, once.
    void launch();

private:
    ClientCore& core() const noexcept override { return sampler_->core(); }
    std::string_view call_name() const noexcept override { return order_.operation; }
    std::chrono::milliseconds limit() const noexcept override;
    Metadata told_metadata() const override { return sampler_->metadata(order_.call().metadata); }
    Stage shown() const noexcept override;
    void fill(OperationStatus& status, TimePoint now) const override;
    bool admitted() override;
    void begin() override;
    bool answered() const override { return promise_.done(); }
    void answer(Error error) override { promise_.set_error(std::move(error)); }
    void fail(Error error) override { end(std::move(error)); }
    void expire(Error error) override { end_by_time(error); }
    void stop() noexcept override;
    ErrorDetails late_error(std::string const& limit, std::string const& standing) const override;
    ErrorDetails closed_error() const override;

    void on_standing() override { look(); }
    void on_sampler(Result<void> outcome) override;
    void on_entered() override;
    void on_other_permit() override;
    void on_stuck(std::chrono::milliseconds progress_timeout) override;
    void log_progress(std::string line) override;
    bool logs_progress() const noexcept override;
    void on_time() override;

    // For the exchange.
    bool may_repeat(Error const& error, RepeatCost cost) override;
    std::optional<Error> before_repeat() override;
    bool may_poll_again(RepeatCost cost) override;
    void on_stage(Stage stage) override { enter_stage(stage); }
    void on_written() override;
    void on_refusal(Error const& error) override;
    bool on_accepted() override;
    void on_sample(SampleResponse response) override;
    void on_failure(Error const& error) override { attempt_failed(named(error)); }
    std::shared_ptr<void const> handle() override { return shared_from_this(); }
    bool goes_on() const noexcept override { return under_way(); }

    [[nodiscard]] HttpContext& http() const noexcept { return core().http(); }
    [[nodiscard]] Scheduler& scheduler() const noexcept { return http().scheduler(); }
    void attempt();
    void advance();
    [[nodiscard]] DispatchPath path() const noexcept;
    [[nodiscard]] DispatchPermits* permits() noexcept;
    void hold();
    void submit();
    void back_off(Error const& error);
    void attempt_failed(Error error);
    [[nodiscard]] AttemptNotes notes() const noexcept;
    [[nodiscard]] RetryVerdict judge(Error& error);
    [[nodiscard]] bool allowed(RetryCount const& count, std::chrono::nanoseconds wait);
    [[nodiscard]] RetryCount count(std::chrono::nanoseconds took) const noexcept;
    [[nodiscard]] std::optional<CircuitBreaker> const& breaker() const noexcept;
    [[nodiscard]] bool waits_for_service() const noexcept;
    void end_by_time(Error const& error);
    void release_permits();
    void drop_attempt() noexcept;
    void end(Result<SampleResponse> result);
    void enter_stage(Stage stage, std::string why = {});
    [[nodiscard]] Error named(Error const& error) const;
    [[nodiscard]] bool retries() const noexcept { return config().enable_retry_logic; }
    /// Empty until the service has accepted it.
    [[nodiscard]] std::string const& request_id() const noexcept;
    /// Why it is not submitted, read or written yet; nullopt if something else is the matter.
    [[nodiscard]] std::optional<std::string> held_by() const;
    /// What only its present stage says of it.
    void fill_of_stage(OperationStatus& status, TimePoint now) const;
    [[nodiscard]] ErrorDetails with_request(ErrorDetails details) const;

    // What follows is for the loop thread only, but for what is const and the promise.
    Stage stage_{Stage::starting};  ///< its own; what it uses may stand elsewhere
    SampleDispatch dispatch_{};
    bool bypass_handler_{false};
    std::shared_ptr<Sampler> const sampler_;
    SampleOrder order_;
    Promise<SampleResponse> promise_;
    std::unique_ptr<SampleExchange> exchange_{};  ///< null until the first permit, and at the end
    BreakerGuard guard_{};
    std::unique_ptr<RetryBudgetState> own_budget_{};  ///< null: the handler's, if it has one
    /// Why the last failure is not repeated; null if that is not decided yet.
    std::unique_ptr<RetryVerdict const> denied_{};
    std::int64_t attempt_{0};
    std::int64_t requests_{0};
    std::int64_t seq_id_{0};
    TimePoint attempt_started_{};
    TimePoint until_{};
    std::unique_ptr<std::string const> why_{};  ///< null for none
};

}  // namespace tinkxx::service
