#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/future.hpp>

#include "service/futures/completion_poll.hpp"
#include "service/futures/future_poll.hpp"
#include "service/retry/retry_handler.hpp"
#include "service/sampling/pending.hpp"
#include "service/sampling/sampler.hpp"
#include "service/session/service_call.hpp"
#include "wire/sample.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::service {

/// What a caller wants sampled. Checked already.
struct SampleOrder {
    /// Names the call in messages: `sample` or `compute_logprobs`.
    std::string operation{"sample"};
    ModelInput prompt{};
    SamplingParams params{};
    SampleOptions options{};
    CallOptions call{};
    std::int64_t prompt_bytes{0};
    std::optional<std::int64_t> prompt_length{};
    /// Lines for every request of this call, such as a trace context.
    Headers headers{};
    /// Whether `sample_no_retries` of the server concerns it (R-SAMP-41).
    bool may_bypass_handler{true};
    /// Among the pending, given up when the sample is over.
    PendingBound::Place place{};
};

/// One sample on its way (R-SAMP-10): sampler, handler, permits, gate, submit, promise; and round
/// again when an attempt fails. Made on the caller's thread, then lives on the loop, which holds
/// it until it is over.
class SampleOperation final : public std::enable_shared_from_this<SampleOperation>,
                              private PendingOperation,
                              private SamplerWaiter,
                              private HandledCall,
                              private Timer,
                              private ServiceCall::Listener,
                              private FuturePoll::Listener,
                              private CompletionWaiter {
public:
    SampleOperation(std::shared_ptr<Sampler> sampler, SampleOrder order,
                    Promise<SampleResponse> promise);
    ~SampleOperation() override;

    /// Goes to the loop. Any thread, once.
    void launch();

private:
    /// The permits of dispatch, in the order in which they are taken.
    enum class Step : std::uint8_t { count, throttled, bytes, encode, gate, submit };

    class PermitGranted final : public service::PermitWaiter {
    public:
        explicit PermitGranted(SampleOperation& operation) noexcept : operation_{operation} {}
        void on_permit() override { operation_.granted(); }

    private:
        SampleOperation& operation_;
    };
    class Deadline final : public Timer {
    public:
        explicit Deadline(SampleOperation& operation) noexcept : operation_{operation} {}
        void on_time() override { operation_.out_of_time(); }
        TimePoint at{};

    private:
        SampleOperation& operation_;
    };

    OperationStatus status(TimePoint now) const override;
    void on_close() noexcept override;
    void on_sampler(Result<void> outcome) override;
    void on_entered() override;
    void on_stuck(std::chrono::milliseconds progress_timeout) override;
    void log_progress(std::string line) override;
    bool logs_progress() const noexcept override;
    void on_time() override;
    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_result(FutureResult result) override;
    void on_queue_state(QueueState state, std::string const& reason) override;
    void on_completion(Completed completed) override;

    void begin();
    void stop() noexcept;
    void attempt();
    void advance();
    void granted();
    [[nodiscard]] bool encode();
    void encoded(std::shared_ptr<std::string const> tail);
    void submit();
    void refused(Error const& error);
    void accepted(wire::Submitted submitted);
    void poll(std::int64_t known_bytes);
    void decode(FutureResult result);
    void decoded(Result<SampleResponse> response, bool protobuf);
    void attempt_failed(Error error);
    void out_of_time();
    void release_permits();
    void drop_attempt() noexcept;
    void end(Result<SampleResponse> result);
    void enter_stage(Stage stage, std::string why = {});
    [[nodiscard]] Error named(Error const& error) const;
    [[nodiscard]] bool retries() const noexcept { return config_->enable_retry_logic; }
    void report_attempt(Error const& error, bool retry) const;
    template <class Event>
    [[nodiscard]] Event event() const;

    std::shared_ptr<Sampler> const sampler_;
    SampleOrder order_;
    Promise<SampleResponse> promise_;
    std::shared_ptr<SampleOperation> self_{};  // while under way; loop thread only

    // From here on for the loop thread only.
    std::shared_ptr<RetryConfig const> config_{};
    std::shared_ptr<RetryHandler> handler_{};
    PermitGranted waiter_{*this};
    Deadline deadline_{*this};
    Permit count_{};
    Permit throttled_{};
    Permit bytes_{};
    std::shared_ptr<std::string const> tail_{};
    wire::Members tail_members_{wire::Members::newest};
    std::unique_ptr<ServiceCall> call_{};
    std::unique_ptr<FuturePoll> poll_{};
    std::optional<CircuitBreaker::Permit> admitted_{};

    std::uint64_t id_{0};
    Stage stage_{Stage::starting};
    Step step_{Step::count};
    bool bypass_handler_{false};
    bool finished_{false};
    bool waits_for_completion_{false};
    std::int64_t attempt_{0};
    std::int64_t seq_id_{0};
    std::int64_t byte_cost_{0};
    TimePoint started_{};
    TimePoint stage_since_{};
    TimePoint attempt_started_{};
    TimePoint submit_started_{};
    TimePoint until_{};
    std::string why_{};
    std::string request_id_{};
    std::optional<std::vector<std::string>> sequence_ids_{};
    std::optional<QueueState> queue_state_{};
    std::string queue_reason_{};
};

}  // namespace tinkxx::service
