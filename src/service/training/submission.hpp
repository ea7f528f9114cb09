#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/status.hpp>

#include "service/alarm.hpp"
#include "service/breaker/breaker_guard.hpp"
#include "service/futures/future_poll.hpp"
#include "service/limits/permits.hpp"
#include "service/sampling/sampling_shared.hpp"
#include "service/session/service_call.hpp"
#include "wire/training.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tinkxx::service {

/// A request that the service answers by a promise, with everything decided.
struct SubmitOrder {
    /// Both point to text that stays.
    std::string_view path{};
    /// As R-FUT-01 lists them, e.g. `OptimStep`.
    std::string_view request_type{};
    std::shared_ptr<std::string const> body{};
    std::string_view content_type{"application/json"};
    /// Empty: none.
    std::string_view content_encoding{};
    /// The result may come as protobuf.
    bool protobuf_result{false};
    /// Estimate, for the budget of what is being submitted (R-TRAIN-33). 0: outside of it.
    std::int64_t bytes{0};
    Repeat repeat{Repeat::submit_loop};
    /// The client's retries of the HTTP call; otherwise none.
    bool http_retries{true};
    /// It changes the model: where a server would apply a repeat again, it is not repeated once it
    /// may have come to be applied (C-59).
    bool step{false};
    /// Of a forward or backward pass: how it is written. Empty: there is no choice.
    std::optional<wire::Encoding> encoding{};
    /// Something in the body that must not be shown; empty if there is nothing.
    std::string secret{};
    /// What a 404 means the server lacks; empty if it means nothing special.
    std::string_view feature{};
};

/// One submit and the wait for what it promises: a permit, the call with its repeats, the polls.
///
/// Loop thread only. Destroying it cancels. The shared part outlives it.
class Submission final : private ServiceCall::Listener,
                         private FuturePoll::Listener,
                         private PermitWaiter {
public:
    /// Told of `on_accepted` and then one of the last two, or of `on_refused`; never from inside
    /// `start`. Inside any of these but the first the submission may be destroyed.
    class Listener {
    public:
        /// The service has promised a result, for which it is asked from now on (R-FUT-02).
        virtual void on_accepted(Submission& from) = 0;
        /// It holds its bytes until it is started again or destroyed, so that no other chunk
        /// begins before it is known whether the call goes on.
        virtual void on_refused(Submission& from, Error error) = 0;
        virtual void on_result(Submission& from, FutureResult result) = 0;
        virtual void on_failed(Submission& from, Error error) = 0;
        virtual void on_queue_state(Submission& from, QueueState state,
                                    std::string const& reason) = 0;
        /// To be looked at, and nothing else.
        virtual void on_standing() = 0;

    protected:
        ~Listener() = default;
    };

    Submission(SamplingShared& shared, Listener& listener, std::size_t index,
               std::shared_ptr<RequestExtras const> extras, std::optional<CircuitBreaker> breaker);
    ~Submission();

    /// How failures of the HTTP call are judged, as in `HttpOrder`.
    struct Judgement {
        bool plain_500_ends{false};
        bool repeat_if_seen{true};
    };
    /// Begins. May be started again once it was refused.
    void start(SubmitOrder const& order, Judgement judgement);
    /// Asks for no permit any more, before it is destroyed together with others.
    void stop_waiting() noexcept;
    /// It has taken too long; a failure of the service if nothing else held it up (R-EXT-03).
    void out_of_time(Error const& error) noexcept;

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    /// Empty until it is accepted.
    [[nodiscard]] std::string const& request_id() const noexcept { return request_id_; }
    [[nodiscard]] std::string_view request_type() const noexcept { return request_type_; }
    [[nodiscard]] Stage stage() const noexcept;
    void describe(OperationStatus& status, TimePoint now) const;

private:
    void on_permit() override;
    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_result(FutureResult result) override;
    void on_queue_state(QueueState state, std::string const& reason) override;
    void on_standing() override { listener_->on_standing(); }
    bool may_repeat(Error const& error, RepeatCost cost) override;
    std::optional<Error> before_repeat() override { return guard_.enter(breaker_); }

    void submit();
    void refused();
    void poll();

    SamplingShared* const shared_;
    Submission::Listener* const listener_;
    std::size_t const index_;
    std::shared_ptr<RequestExtras const> const extras_;
    std::optional<CircuitBreaker> const breaker_;
    BreakerGuard guard_{};
    /// Ends it, from the loop.
    std::optional<Error> refusal_{};
    Alarm<Submission> refused_{*this, &Submission::refused};
    /// Kept until it is accepted.
    SubmitOrder order_{};
    Judgement judgement_{};
    std::string_view request_type_{};
    bool protobuf_result_{false};
    Permit permit_{};
    TimePoint started_{};
    std::string request_id_{};
    std::optional<QueueState> queue_state_{};
    std::string queue_reason_{};
    /// The submit, then the poll for its result.
    std::variant<std::monostate, ServiceCall, FuturePoll> request_{};
};

}  // namespace tinkxx::service
