#pragma once

#include <tinkxx/status.hpp>

#include "service/http/http_call.hpp"
#include "service/requests/service_context.hpp"
#include "service/requests/submit_retry.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace tinkxx::service {

/// Whether a logical request is made again when its HTTP call has failed for good.
enum class Repeat : std::uint8_t {
    once,         ///< no: its failure is the answer
    submit_loop,  ///< for five minutes, and through billing pauses (R-RETRY-80..82)
    /// As `submit_loop`, but 402 and 429 end it at once: sampling has its own way with them.
    sample_submit,
};

/// Where a call stands, for those who wonder what takes so long.
struct Standing {
    enum class Doing : std::uint8_t {
        nothing,
        sending,        ///< an HTTP attempt is under way
        credential,     ///< waits for a credential
        http_wait,      ///< waits to repeat an HTTP attempt
        submit_wait,    ///< waits to make the whole call again
        billing_pause,  ///< waits for the account to be paid
    };
    Doing doing{Doing::nothing};
    /// Of the whole call, 1 for the first.
    int attempt{0};
    /// Repeats of the HTTP attempt within it.
    int http_retries{0};
    std::optional<TimePoint> until{};
    /// Why the last attempt came to nothing, empty if it was the first; where the credential stands
    /// while it waits for one.
    std::string why{};
    /// Since when nothing was achieved: its start if an attempt failed or it waits for a
    /// credential; otherwise when the request was sent that has no answer yet.
    std::optional<TimePoint> stalled_since{};
    /// When no further attempt will follow; empty if no time limits them.
    std::optional<TimePoint> gives_up{};
};
/// What the caller of a request that does this is told.
[[nodiscard]] Stage stage_of(Standing::Doing doing) noexcept;
/// `attempt 3, next in 12 s: POST /x: 503 …`.
[[nodiscard]] std::string describe(Standing const& standing, TimePoint now);

/// One logical request: an HTTP call with its retries, and around it the submit loop. To be a
/// member of what needs the answer; may be started again once it is over.
///
/// Loop thread only. Destroying it cancels. The context outlives it.
class ServiceRequest final : private WaitingRequest, private HttpCall::Listener, private Timer {
public:
    /// Told how a call ends: exactly one, never from inside `start` or `cancel`. Inside them the
    /// call may be started again or destroyed.
    class Listener {
    public:
        virtual void on_response(HttpResponse response) = 0;
        virtual void on_error(Error error) = 0;
        /// It does something else than before: to be looked at, and nothing else. Also from
        /// inside `start`.
        virtual void on_standing() {}
        /// As `HttpCall::Listener` has them.
        virtual void on_coming() const noexcept {}
        virtual bool may_repeat(Error const& /*error*/, RepeatCost /*cost*/) { return true; }
        virtual std::optional<Error> before_repeat() { return std::nullopt; }

    protected:
        ~Listener() = default;
    };

    ServiceRequest(ServiceContext& context, Listener& listener) noexcept
        : context_{&context}, listener_{&listener}, http_{context.http(), *this} {}
    ~ServiceRequest() override;

    /// Begins a call. None may be under way.
    void start(HttpOrder order, Repeat repeat);
    void start(std::shared_ptr<HttpOrder const> order, HttpParcel parcel, Repeat repeat);
    /// Ends the call without a word to the listener. Harmless if none is under way.
    void cancel() noexcept;

    [[nodiscard]] bool under_way() const noexcept { return state_ != State::idle; }
    [[nodiscard]] Standing standing() const;
    /// When the last attempt was given to the transport; also once the call is over.
    [[nodiscard]] TimePoint sent_at() const noexcept { return http_.sent_at(); }
    /// As `HttpCall` has it.
    [[nodiscard]] bool in_doubt() const noexcept { return http_.in_doubt(); }
    /// As `standing().doing`, at no cost.
    [[nodiscard]] Standing::Doing doing() const noexcept;
    /// Nothing but the service holds it up: it does not answer, or has failed and is given time.
    [[nodiscard]] bool waits_for_service() const noexcept;

private:
    void add_limits(Standing& standing) const;
    friend class ServiceContext;
    enum class State : std::uint8_t { idle, sending, waiting, pausing };

    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_standing() override { listener_->on_standing(); }
    void on_coming() const noexcept override { listener_->on_coming(); }
    bool may_repeat(Error const& error, RepeatCost cost) override {
        return listener_->may_repeat(error, cost);
    }
    std::optional<Error> before_repeat() override { return listener_->before_repeat(); }
    void on_time() override;

    [[nodiscard]] bool pauses(Error const& error);
    void wait(SubmitRetry::Wait wait, State state, Error error);
    void report(Error const& error) const;
    void fail(Error error);
    void shut() noexcept;
    void end() noexcept;

    ServiceContext* context_;
    Listener* listener_;
    HttpCall http_;

    State state_{State::idle};
    Repeat repeat_{Repeat::once};
    /// Kept for the next attempt; empty for a call that is made once.
    std::shared_ptr<HttpOrder const> order_{};
    HttpParcel parcel_{};
    std::optional<SubmitRetry> retry_{};
    int http_attempts_{0};
    TimePoint until_{};
    std::optional<Error> last_{};
};

}  // namespace tinkxx::service
