#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/status.hpp>

#include "service/breaker/breaker_guard.hpp"
#include "service/common/alarm.hpp"
#include "service/core/client_core.hpp"
#include "service/limits/permits.hpp"
#include "service/passes/submit_order.hpp"
#include "service/requests/service_request.hpp"
#include "service/results/result_poll.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tinkxx::service {

/// Whether the service has a request.
enum class Fate : std::uint8_t {
    not_taken,  ///< it never came there, or was refused: its number is still to come
    unknown,    ///< it may be there; sent again, the service says
    taken,      ///< it is there, or its number is used up all the same
};

/// One submit and the wait for what it promises: a permit, the call with its repeats, the polls.
///
/// Loop thread only. Destroying it cancels. The shared part outlives it.
class Submission final : private ServiceRequest::Listener,
                         private ResultPoll::Listener,
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
        virtual void on_result(Submission& from, RetrievedResult result) = 0;
        virtual void on_failed(Submission& from, Error error) = 0;
        virtual void on_queue_state(Submission& from, QueueState state,
                                    std::string const& reason) = 0;
        /// To be looked at, and nothing else.
        virtual void on_standing() = 0;

    protected:
        ~Listener() = default;
    };

    Submission(ClientCore& core, Listener& listener, std::size_t index,
               std::shared_ptr<RequestExtras const> extras, std::optional<CircuitBreaker> breaker);
    ~Submission();

    /// How failures of the HTTP call are judged, as in `HttpOrder`.
    struct Judgement {
        bool plain_500_ends{false};
        bool repeat_if_seen{true};
    };
    /// Begins. May be started again once it was refused.
    void start(SubmitOrder const& order, Judgement judgement);
    /// As `start`, for a request whose fate is unknown: nobody wants its result. Inside
    /// `on_accepted`, which is then the last word, the submission may be destroyed.
    void settle(SubmitOrder const& order, Judgement judgement);
    /// Asks for no permit any more, before it is destroyed together with others.
    void stop_waiting() noexcept;
    /// It has taken too long; a failure of the service if nothing else held it up (R-EXT-03).
    void out_of_time(Error const& error) noexcept;

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    /// Empty until it is accepted.
    [[nodiscard]] std::string const& request_id() const noexcept { return request_id_; }
    [[nodiscard]] std::string_view request_type() const noexcept { return request_type_; }
    [[nodiscard]] Fate fate() const noexcept;
    [[nodiscard]] Stage stage() const noexcept;
    void describe(OperationStatus& status, TimePoint now) const;

private:
    void on_permit() override;
    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_result(RetrievedResult result) override;
    void on_queue_state(QueueState state, std::string const& reason) override;
    void on_standing() override { listener_->on_standing(); }
    bool may_repeat(Error const& error, RepeatCost cost) override;
    std::optional<Error> before_repeat() override { return guard_.enter(breaker_); }

    void submit();
    void refuse_later() noexcept;
    void refused();
    void poll();
    [[nodiscard]] Fate fate_after(Error const& error) const noexcept;

    ClientCore* const core_;
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
    bool result_wanted_{true};
    /// Until it is accepted, while nothing is under way.
    Fate fate_{Fate::not_taken};
    Permit permit_{};
    TimePoint started_{};
    std::string request_id_{};
    std::optional<QueueState> queue_state_{};
    std::string queue_reason_{};
    /// The submit, then the poll for its result.
    std::variant<std::monostate, ServiceRequest, ResultPoll> request_{};
};

}  // namespace tinkxx::service
