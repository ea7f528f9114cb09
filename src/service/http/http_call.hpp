#pragma once

#include <tinkxx/detail/blocks.hpp>
#include <tinkxx/http.hpp>
#include <tinkxx/transport.hpp>

#include "service/http/http_context.hpp"
#include "service/http/http_retry.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// One HTTP call to be made, with everything decided.
struct HttpOrder {
    Operation operation{};
    std::string url{};
    /// Null: the context's.
    std::shared_ptr<Headers const> common_headers{};
    /// Lines of this call; none of a name that the common lines have.
    Headers headers{};
    Body body{};
    Purpose purpose{Purpose::rest};
    Timeouts timeouts{};
    int max_retries{10};
    /// Empty: made for every method but GET and HEAD; an empty string: none (R-RETRY-72).
    std::optional<std::string> idempotency_key{};
    Redirects redirects{Redirects::follow};
    bool fail_on_status{true};
    /// Whether a redirect that is not followed is an answer, whatever `fail_on_status` says.
    bool redirect_answers{false};
    /// As in `HttpRetry::Rules`.
    bool plain_500_ends{false};
    bool repeat_if_seen{true};
    /// Give a successful body away in pieces rather than collect it.
    bool stream{false};
    /// False for a URL that belongs to somebody else.
    bool send_credential{true};
    std::uint64_t max_response_bytes{std::uint64_t{1} << 30U};
    Metadata metadata{};
    /// Something in the body that must not be shown; empty if there is nothing.
    std::string secret{};
};

/// What differs between calls that share an order, of which there may be thousands at once.
struct HttpParcel {
    /// In place of the order's.
    Headers headers{};
    Body body{};
};

/// What it costs to repeat a request.
struct RepeatCost {
    /// Until it is sent again.
    std::chrono::nanoseconds wait{0};
    /// What the failed one took, if it was a repetition itself.
    std::chrono::nanoseconds took{0};
};

/// Makes one HTTP call with its retries: sink, timer and state in one object, to be a member of
/// what needs the answer. May be started again once a call is over.
///
/// Loop thread only. Destroying it cancels. The context outlives it.
class HttpCall final : private OpenCall, private ReplySink, private CredentialWaiter {
public:
    /// Told how a call ends: exactly one of the first two, never from inside `start` or `cancel`.
    /// Inside them the call may be started again or destroyed.
    class Listener {
    public:
        /// Its URL is empty if no redirect was followed.
        virtual void on_response(HttpResponse response) = 0;
        virtual void on_error(Error error) = 0;
        /// It begins or ends to wait, for a credential or for its next attempt: to be looked at,
        /// and nothing else. Also from inside `start`.
        virtual void on_standing() {}
        /// A piece of a streamed body; the call may be paused, cancelled or destroyed inside.
        virtual void on_body(std::span<char const> /*data*/) {}
        /// An answer begins to come. What it is for may be fetched into the caches, and nothing
        /// else.
        virtual void on_coming() const noexcept {}
        /// The request failed and would be repeated; false ends the call with the error.
        virtual bool may_repeat(Error const& /*error*/, RepeatCost /*cost*/) { return true; }
        /// The request is about to be sent again; an error ends the call instead.
        virtual std::optional<Error> before_repeat() { return std::nullopt; }

    protected:
        ~Listener() = default;
    };

    HttpCall(HttpContext& context, Listener& listener) noexcept
        : context_{&context}, listener_{&listener} {}
    ~HttpCall();

    /// Begins a call. None may be under way. Should the context not be usable, the call ends with
    /// a cancellation error from the loop, if that still turns.
    void start(HttpOrder order);
    void start(std::shared_ptr<HttpOrder const> order, HttpParcel parcel);
    /// Ends the call without a word to the listener. Harmless if none is under way.
    void cancel() noexcept;
    /// Holds back, or lets flow again, the body of an answer.
    void pause(bool on) noexcept;

    [[nodiscard]] bool under_way() const noexcept { return state_ != State::idle; }
    [[nodiscard]] int retries() const noexcept { return retry_ ? retry_->retries() : 0; }
    [[nodiscard]] bool waits_for_credential() const noexcept { return state_ == State::credential; }
    /// While it waits for its next attempt: when that is, and why the last one came to nothing.
    [[nodiscard]] std::optional<TimePoint> retry_at() const noexcept {
        return state_ == State::waiting ? std::optional{trouble_->retry_at} : std::nullopt;
    }
    [[nodiscard]] std::string_view retry_reason() const noexcept {
        return trouble_ ? std::string_view{trouble_->why} : std::string_view{};
    }
    /// Status and lines of the answer that comes, once a piece of its body was given away.
    [[nodiscard]] Head const& coming() const noexcept { return answer_->head; }
    /// When the call began, and when its last attempt was given to the transport; also once it is
    /// over.
    [[nodiscard]] TimePoint started() const noexcept { return started_; }
    [[nodiscard]] TimePoint sent_at() const noexcept { return sent_at_; }
    /// The server may have acted on an attempt that it did not answer well. Over all calls made
    /// with this object.
    [[nodiscard]] bool in_doubt() const noexcept;

private:
    friend class HttpContext;
    enum class State : std::uint8_t {
        idle,
        beginning,   ///< the first attempt, or the end, follows from the loop
        credential,  ///< waiting for a credential
        sending,     ///< the transport has it
        waiting,     ///< for the time of the next attempt
    };

    void on_head(Head head) override;
    void on_data(std::span<char const> data) override;
    void on_done(Timing const& timing) override;
    void on_failure(Failure failure) override;
    void on_credential(Result<Credential> credential) override;

    struct Answer {
        Head head{};
        std::string body{};
    };
    /// What only a call has that waits or is refused: thousands are under way at once.
    struct Trouble final : public Timer {
        explicit Trouble(HttpCall& its_call) noexcept : call{its_call} {}
        void on_time() override { call.on_time(); }

        HttpCall& call;
        TimePoint retry_at{};
        std::string why{};
        std::optional<Error> refusal{};   ///< ends the call, from the loop
        std::optional<Failure> thrown{};  ///< of an attempt that the transport did not take
    };

    /// The answer as far as it came.
    [[nodiscard]] Answer& answer() {
        if (!answer_) answer_ = detail::make_in_block<Answer>();
        return *answer_;
    }
    [[nodiscard]] Trouble& trouble() {
        if (!trouble_) trouble_ = std::make_unique<Trouble>(*this);
        return *trouble_;
    }
    void on_time();
    void refuse(Error error);
    void attempt();
    void send(Credential const& credential);
    void follow(HttpRetry::Action action, Timing const& timing);
    void deliver(Timing const& timing);
    void fail(ErrorDetails error);
    void shut(ErrorDetails error);
    void end() noexcept;
    [[nodiscard]] Scrubber scrubber() const;
    [[nodiscard]] std::shared_ptr<Headers const> const& common_headers() const noexcept;
    template <class Event>
    [[nodiscard]] Event event() const;

    HttpContext* context_;
    Listener* listener_;

    State state_{State::idle};
    bool delivered_{false};  ///< a piece of the body was given away
    bool paused_{false};
    bool has_secrets_{false};  ///< among the lines of the order, to be kept out of errors
    bool in_doubt_{false};     ///< by attempts that are over
    std::shared_ptr<HttpOrder const> order_{};
    HttpParcel parcel_{};
    std::optional<HttpRetry> retry_{};
    Credential credential_{};             ///< what was sent last, to be kept out of errors
    std::unique_ptr<Trouble> trouble_{};  ///< null for none
    TimePoint started_{};
    TimePoint sent_at_{};
    Call call_{};
    /// Null until there is something: thousands of calls wait for theirs.
    std::unique_ptr<Answer, detail::GiveBlock<Answer>> answer_{};
};

}  // namespace tinkxx::service
