#pragma once

#include <tinkxx/detail/blocks.hpp>

#include "service/requests/service_request.hpp"
#include "service/results/completion_poll.hpp"
#include "service/results/queue_state_reporter.hpp"
#include "service/results/result_poll.hpp"
#include "service/sampling/sample_dispatch.hpp"
#include "service/sampling/sample_order.hpp"
#include "service/sampling/sampler.hpp"
#include "wire/sampling/sample.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tinkxx::service {

/// What goes over the wire for one sample: the request is written and submitted, its result is
/// waited for, fetched and read. Made when the sample has its first permit, and kept over its
/// attempts; before that, while samples wait for their turn by the million, they should be small.
/// Loop thread only.
class SampleExchange final : public detail::InBlocks,
                             private ServiceRequest::Listener,
                             private ResultPoll::Listener {
public:
    /// The call that has it as a member. Inside what returns nothing it may be destroyed.
    class Owner {
    public:
        /// As `ServiceRequest::Listener` and `ResultPoll::Listener` have them.
        virtual bool may_repeat(Error const& error, RepeatCost cost) = 0;
        virtual std::optional<Error> before_repeat() = 0;
        virtual bool may_poll_again(RepeatCost cost) = 0;
        /// To be looked at, and nothing else.
        virtual void on_standing() = 0;
        /// It stands somewhere else now.
        virtual void on_stage(Stage stage) = 0;
        /// The request is written that could not be written at once.
        virtual void on_written() = 0;
        /// The service did not take the request.
        virtual void on_refusal(Error const& error) = 0;
        /// The service has taken the request, for which no permits are needed any more. False if
        /// the call ended since others went on; then this exchange is gone.
        [[nodiscard]] virtual bool on_accepted() = 0;
        /// How the attempt ended.
        virtual void on_sample(SampleResponse response) = 0;
        virtual void on_failure(Error const& error) = 0;
        /// Keeps the call while something is done elsewhere.
        [[nodiscard]] virtual std::shared_ptr<void const> handle() = 0;
        /// Whether the call is under way, and this exchange there.
        [[nodiscard]] virtual bool goes_on() const noexcept = 0;

    protected:
        ~Owner() = default;
    };

    /// All three outlive it. The first `owner_bytes` from `owner` on are fetched into the caches
    /// when an answer comes.
    SampleExchange(Owner& owner, std::size_t owner_bytes, Sampler& sampler,
                   SampleOrder const& order) noexcept
        : owner_{owner}, owner_bytes_{owner_bytes}, sampler_{sampler}, order_{order} {}

    [[nodiscard]] DispatchPermits& permits() noexcept { return permits_; }
    [[nodiscard]] DispatchPermits const& permits() const noexcept { return permits_; }

    /// Writes the request with these members, unless that is done. False if `on_written` follows.
    [[nodiscard]] bool write(wire::Members members);
    /// The members that it was written with last.
    [[nodiscard]] wire::Members members() const noexcept { return members_; }
    void submit(std::int64_t seq_id, Repeat repeat);
    /// The attempt is over, or its request was refused: ends what is under way for it.
    void drop_request() noexcept { request_.emplace<std::monostate>(); }
    /// The attempt failed: nobody waits for its result any more.
    void give_up_result();
    /// Forgets the attempt.
    void drop() noexcept;

    /// When the submit under way was sent.
    [[nodiscard]] TimePoint sent_at() const noexcept { return submitting()->sent_at(); }
    /// Empty until the service has accepted it.
    [[nodiscard]] std::string const& request_id() const noexcept { return request_id_; }
    /// Of whichever is under way; null if it is the other, or none.
    [[nodiscard]] ServiceRequest const* submitting() const noexcept {
        return std::get_if<ServiceRequest>(&request_);
    }
    [[nodiscard]] ResultPoll const* poll() const noexcept {
        return std::get_if<ResultPoll>(&request_);
    }
    /// Since when no submit was accepted; `{}` if the last one was, or there was none.
    [[nodiscard]] TimePoint stalled_since() const noexcept { return stalled_since_; }
    /// Null if the service said nothing.
    [[nodiscard]] QueueStanding const* queue() const noexcept { return queue_.get(); }
    /// Tells those who want to know what the service says about its queue.
    void report_queue(QueueState state, std::string const& reason);

private:
    class Completion final : public CompletionWaiter {
    public:
        explicit Completion(SampleExchange& exchange) noexcept : exchange_{exchange} {}

    private:
        void on_completion(Completed completed) override {
            exchange_.fetch(completed.payload_bytes);
        }
        SampleExchange& exchange_;
    };

    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_result(RetrievedResult result) override;
    void on_queue_state(QueueState state, std::string const& reason) override {
        report_queue(state, reason);
    }
    void on_standing() override { owner_.on_standing(); }
    void on_coming() const noexcept override;
    bool may_repeat(Error const& error, RepeatCost cost) override {
        return owner_.may_repeat(error, cost);
    }
    std::optional<Error> before_repeat() override { return owner_.before_repeat(); }
    bool may_poll_again(Error const& /*error*/, RepeatCost cost) override {
        return owner_.may_poll_again(cost);
    }

    [[nodiscard]] ClientCore& core() const noexcept { return sampler_.core(); }
    [[nodiscard]] HttpContext& http() const noexcept { return core().http(); }
    void accepted(wire::Submitted submitted);
    void fetch(std::int64_t known_bytes);
    void decode(RetrievedResult result);
    void decoded(Result<SampleResponse> response, bool protobuf);

    Owner& owner_;
    std::size_t const owner_bytes_;
    Sampler& sampler_;
    SampleOrder const& order_;
    DispatchPermits permits_{};
    std::string request_id_{};  // a poll points to it
    /// The submit, then the wait for completion if there is one, then the poll for the result.
    std::variant<std::monostate, ServiceRequest, Completion, ResultPoll> request_{};
    /// What follows the head of the request; null if it is not written.
    std::shared_ptr<std::string const> tail_{};
    TimePoint submit_started_{};
    TimePoint stalled_since_{};
    std::unique_ptr<std::vector<std::string> const> sequence_ids_{};  ///< null if not told
    std::unique_ptr<QueueStanding const> queue_{};
    wire::Members members_{wire::Members::newest};
};

}  // namespace tinkxx::service
