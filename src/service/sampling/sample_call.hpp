#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/future.hpp>

#include "service/breaker/breaker_guard.hpp"
#include "service/core/pending.hpp"
#include "service/results/result_poll.hpp"
#include "service/retry/retry_handler.hpp"
#include "service/sampling/place_wait.hpp"
#include "service/sampling/sampler.hpp"
#include "wire/sample.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx::service {

/// How to sample. Shared by samples that want the same: there may be a million of them.
struct SampleSettings {
    SamplingParams params{};
    SampleOptions options{};

    bool operator==(SampleSettings const&) const = default;
};

/// What only some samples carry.
struct SampleExtras {
    CallOptions call{};
    /// Lines for every request of this call, such as a trace context.
    Headers headers{};
    /// How it waited for a place among the pending; null if it did not have to.
    std::shared_ptr<PlaceWait> waited{};
};

/// The chunks of a prompt. Most have one, which is kept here: memory that a caller took for each of
/// a million samples would come back all at once, where the loop ends them.
class SamplePrompt {
public:
    SamplePrompt() = default;
    explicit SamplePrompt(ModelInput input) {
        if (input.chunks.size() == 1) {
            chunks_ = std::move(input.chunks.front());
        } else {
            chunks_ = std::move(input.chunks);
        }
    }
    [[nodiscard]] std::span<ModelInputChunk const> chunks() const noexcept {
        if (auto const* const one = std::get_if<ModelInputChunk>(&chunks_)) return {one, 1};
        return std::get<std::vector<ModelInputChunk>>(chunks_);
    }

private:
    std::variant<std::vector<ModelInputChunk>, ModelInputChunk> chunks_{};
};

/// What a caller wants sampled. Checked already.
struct SampleOrder {
    /// Names the call in messages: `sample` or `compute_logprobs`. Points to text that stays.
    std::string_view operation{"sample"};
    SamplePrompt prompt{};
    std::shared_ptr<SampleSettings const> settings{};
    /// Null for none.
    std::unique_ptr<SampleExtras const> extras{};
    std::int64_t prompt_bytes{0};
    /// In tokens; negative if not every chunk tells.
    std::int64_t prompt_length{-1};
    /// Among the pending, given up when the sample is over.
    PendingBound::Place place{};
    /// Whether `sample_no_retries` of the server concerns it (R-SAMP-41).
    bool may_bypass_handler{true};

    [[nodiscard]] CallOptions const& call() const noexcept;
    [[nodiscard]] Headers const& headers() const noexcept;
};

/// One sample on its way (R-SAMP-10): sampler, handler, permits, gate, submit, promise; and round
/// again when an attempt fails. Made on the caller's thread, then lives on the loop, which holds
/// it until it is over.
class SampleCall final : public std::enable_shared_from_this<SampleCall>,
                         private PendingEntry,
                         private SamplerWaiter,
                         private HandledCall,
                         private Timer {
public:
    SampleCall(std::shared_ptr<Sampler> sampler, SampleOrder order,
               Promise<SampleResponse> promise);
    ~SampleCall() override;

    /// Goes to the loop. Any thread, once.
    void launch();

private:
    /// The permits of dispatch, in the order in which they are taken.
    enum class Step : std::uint8_t { count, throttled, bytes, encode, gate, submit };

    /// What a sample has once it is dispatched. Before that, while it waits for its turn, it should
    /// be small.
    struct Dispatched;
    class Deadline final : public Timer {
    public:
        Deadline(SampleCall& operation, TimePoint when) noexcept
            : at{when}, operation_{operation} {}
        void on_time() override { operation_.out_of_time(); }
        TimePoint const at;

    private:
        SampleCall& operation_;
    };

    OperationStatus status(TimePoint now) const override;
    void on_close() noexcept override;
    void on_standing() override;
    void on_sampler(Result<void> outcome) override;
    void on_entered() override;
    void on_other_permit() override;
    void on_stuck(std::chrono::milliseconds progress_timeout) override;
    void log_progress(std::string line) override;
    bool logs_progress() const noexcept override;
    void on_time() override;

    [[nodiscard]] bool may_repeat(Error const& error, RepeatCost cost);
    [[nodiscard]] std::optional<Error> before_repeat();
    [[nodiscard]] bool may_poll_again(RepeatCost cost);
    void submitted(HttpResponse const& response);
    void submit_failed(Error const& error);
    void completed(Completed completed);
    void retrieved(RetrievedResult result);
    void queue_reported(QueueState state, std::string const& reason);

    void begin();
    void stop() noexcept;
    void attempt();
    void advance();
    void count_granted();
    [[nodiscard]] bool encode();
    void encoded(std::shared_ptr<std::string const> tail);
    void not_done(Error const& error);
    void submit();
    void refused(Error const& error);
    void accepted(wire::Submitted submitted);
    void poll(std::int64_t known_bytes);
    void decode(RetrievedResult result);
    void decoded(Result<SampleResponse> response, bool protobuf);
    void attempt_failed(Error error);
    [[nodiscard]] RetryVerdict judge(Error& error);
    [[nodiscard]] bool allowed(RetryCount const& count, std::chrono::nanoseconds wait);
    [[nodiscard]] RetryCount count(std::chrono::nanoseconds took) const noexcept;
    [[nodiscard]] std::optional<CircuitBreaker> const& breaker() const noexcept;
    [[nodiscard]] bool waits_for_service() const noexcept;
    void end_by_time(Error const& error);
    void out_of_time();
    void release_permits();
    void drop_attempt() noexcept;
    void end(Result<SampleResponse> result);
    void enter_stage(Stage stage, std::string why = {});
    [[nodiscard]] Stage shown() const noexcept;
    [[nodiscard]] Error named(Error const& error) const;
    [[nodiscard]] bool retries() const noexcept { return config().enable_retry_logic; }
    /// Empty until the service has accepted it.
    [[nodiscard]] std::string const& request_id() const noexcept;
    void report_attempt(Error const& error, bool retry) const;
    template <class Event>
    [[nodiscard]] Event event() const;

    std::shared_ptr<Sampler> const sampler_;
    SampleOrder order_;
    Promise<SampleResponse> promise_;
    std::shared_ptr<SampleCall> self_{};  // while under way; loop thread only

    // From here on for the loop thread only.
    std::unique_ptr<Dispatched> dispatched_{};
    std::unique_ptr<Deadline> deadline_{};  ///< null for none
    BreakerGuard guard_{};
    std::unique_ptr<RetryBudgetState> own_budget_{};  ///< null: the handler's, if it has one
    /// Why the last failure is not repeated; null if that is not decided yet.
    std::unique_ptr<RetryVerdict const> denied_{};
    std::shared_ptr<std::string const> tail_{};
    std::uint64_t id_{0};
    std::int64_t attempt_{0};
    std::int64_t requests_{0};
    std::int64_t seq_id_{0};
    TimePoint started_{};
    TimePoint shown_since_{};
    TimePoint attempt_started_{};
    TimePoint until_{};
    std::unique_ptr<std::string const> why_{};  ///< null for none
    wire::Members tail_members_{wire::Members::newest};
    Stage stage_{Stage::starting};  ///< its own; what it uses may stand elsewhere
    std::optional<Stage> shown_{};  ///< what observers know
    Step step_{Step::count};
    bool bypass_handler_{false};
    bool finished_{false};
};

}  // namespace tinkxx::service
