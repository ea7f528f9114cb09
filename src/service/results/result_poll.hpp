#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/types/queue_state.hpp>

#include "service/common/close_listener.hpp"
#include "service/http/http_call.hpp"
#include "service/limits/permits.hpp"
#include "service/requests/service_context.hpp"
#include "service/results/poll_machine.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// How long one poll may stay silent (R-FUT-01, R-FUT-61).
inline constexpr std::chrono::seconds poll_timeout{45};

/// What the polls of one client share. Outlives them. Loop thread only.
class ResultSurroundings {
public:
    /// `context` and `downloads` outlive this.
    ResultSurroundings(ServiceContext& context, ByteBudget& downloads, PollRules rules = {});

    [[nodiscard]] ServiceContext& context() const noexcept { return *context_; }
    [[nodiscard]] HttpContext& http() const noexcept { return context_->http(); }
    [[nodiscard]] Scheduler& scheduler() const noexcept { return http().scheduler(); }
    [[nodiscard]] ByteBudget& downloads() const noexcept { return *downloads_; }
    [[nodiscard]] PollRules const& rules() const noexcept { return rules_; }
    /// A poll, whose result may come as protobuf or not (R-FUT-01). Of the first one for a result
    /// the lines that tell its number and type are among those in common. The types are few, and
    /// text that stays.
    [[nodiscard]] std::shared_ptr<HttpOrder const> const& first_poll(std::string_view request_type,
                                                                     bool protobuf) const;
    [[nodiscard]] std::shared_ptr<HttpOrder const> const& later_poll(bool protobuf) const noexcept {
        return protobuf ? protobuf_poll_ : json_poll_;
    }
    /// Asks whether a 402 is waited out, and logs what there is to say (R-SAMP-51).
    [[nodiscard]] std::optional<std::chrono::nanoseconds> billing_pause(Error const& error) const;

    /// The client closes: no poll begins any more (R-SESS-20). Those who wait are told otherwise.
    void stop() noexcept;
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    /// Told by `stop`.
    [[nodiscard]] CloseListeners& listeners() const noexcept { return listeners_; }

private:
    ServiceContext* context_;
    ByteBudget* downloads_;
    PollRules rules_;
    std::shared_ptr<HttpOrder const> json_poll_;
    std::shared_ptr<HttpOrder const> protobuf_poll_;
    struct FirstPoll {
        std::string_view request_type{};
        bool protobuf{false};
        std::shared_ptr<HttpOrder const> order{};
    };
    mutable std::deque<FirstPoll> first_polls_{};
    mutable CloseListeners listeners_{};
    bool stopped_{false};
};

/// What the requests of some calls carry.
struct RequestExtras {
    /// Further lines; none of a name that the client's lines have.
    Headers headers{};
    /// For observers of HTTP.
    Metadata metadata{};
};

/// A result that the server has promised.
struct ResultOrder {
    /// Points to text that outlives the poll.
    std::string_view request_id{};
    /// As R-FUT-01 lists them, e.g. `Sample`. Points to text that stays.
    std::string_view request_type{};
    /// Whether the result may come as protobuf.
    bool protobuf_wanted{false};
    /// From the start of the submit to its answer.
    std::chrono::nanoseconds submit_roundtrip{0};
    /// Size of the result if the completion poll told it; 0: unknown (R-FUT-63).
    std::int64_t known_payload_bytes{0};
    /// When to give up, be it in the middle of a poll (R-FUT-21).
    TimePoint deadline{TimePoint::max()};
    /// For each poll. Null for none.
    std::shared_ptr<RequestExtras const> extras{};
};

/// A result as it came, to be decoded elsewhere.
struct RetrievedResult {
    std::string body{};
    bool protobuf{false};
    /// Where in `body` the result is: all of it, unless it came in an envelope.
    std::size_t offset{0};
    std::size_t size{0};

    [[nodiscard]] std::string_view view() const noexcept {
        return std::string_view{body}.substr(offset, size);
    }
};

/// Where a poll stands, for those who wonder what takes so long.
struct PollStanding {
    enum class Doing : std::uint8_t {
        nothing,
        polling,      ///< a request is under way
        waiting,      ///< until the next poll
        credential,   ///< a request waits for a credential
        download,     ///< for bytes of the download budget
        classifying,  ///< a large answer is looked at
    };
    Doing doing{Doing::nothing};
    /// Since when the result is polled for, and since when it does the above.
    TimePoint since{};
    TimePoint doing_since{};
    /// Polls begun.
    std::int64_t polls{0};
    /// While it waits: until when, and why.
    std::optional<TimePoint> until{};
    PollWait why{PollWait::none};
    /// Why the last poll that failed did; empty if none did.
    std::string_view last_failure{};
    /// Since when every poll failed; empty if the last one did not.
    std::optional<TimePoint> failing_since{};
};

/// Asks for the one result until it is there or cannot come (R-FUT-01 … R-FUT-40): a
/// member of the call that needs it. May be started again once it is over.
///
/// Loop thread only. Destroying it cancels. If the client closes while a poll waits, the next one
/// ends with a cancellation error; if the runtime shuts down meanwhile, its owner ends it.
class ResultPoll final : private HttpCall::Listener, private Timer {
public:
    /// Told exactly one of the first two, never from inside `start` or `cancel`. Inside any of
    /// these the poll may be destroyed, cancelled or, once it is over, started again.
    class Listener {
    public:
        virtual void on_result(RetrievedResult result) = 0;
        virtual void on_error(Error error) = 0;
        /// Every report of the server, changed or not (R-FUT-31). What it throws is logged.
        virtual void on_queue_state(QueueState /*state*/, std::string const& /*reason*/) {}
        /// It does something else than before: to be looked at, and nothing else. Also from
        /// inside `start`.
        virtual void on_standing() {}
        /// As `HttpCall::Listener` has it.
        virtual void on_coming() const noexcept {}
        /// A poll failed and would be repeated; false ends it with the error.
        virtual bool may_poll_again(Error const& /*error*/, RepeatCost /*cost*/) { return true; }

    protected:
        ~Listener() = default;
    };

    ResultPoll(ResultSurroundings const& around, Listener& listener) noexcept;
    ~ResultPoll() override;

    /// Begins. None may be under way.
    void start(ResultOrder order);
    /// Ends it without a word to the listener: sleeps, waits for permits and calls alike
    /// (R-FUT-22). Harmless if none is under way.
    void cancel() noexcept;

    [[nodiscard]] bool under_way() const noexcept { return doing_ != Doing::nothing; }
    [[nodiscard]] PollStanding standing() const noexcept;
    /// As in `standing()`.
    [[nodiscard]] PollStanding::Doing doing() const noexcept;
    [[nodiscard]] PollWait wait_reason() const noexcept { return why_; }
    /// No answer has come since a poll failed.
    [[nodiscard]] bool failing() const noexcept { return machine_ && machine_->failing(); }

private:
    using Doing = PollStanding::Doing;
    struct Classification;
    /// Waits for bytes of the download budget, then holds them.
    class Download final : public PermitWaiter {
    public:
        Download(ResultPoll& poll, std::int64_t bytes) noexcept : poll_{poll}, bytes_{bytes} {}
        void on_permit() override;

    private:
        ResultPoll& poll_;
        std::int64_t const bytes_;
        Permit permit_{};
    };

    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_standing() override { listener_->on_standing(); }
    void on_coming() const noexcept override { listener_->on_coming(); }
    void on_time() override;

    void enter(Doing doing) noexcept;
    void acquire(std::int64_t bytes);
    void send_or_expire();
    void send();
    void wait(PollMachine::Poll const& poll);
    void classify(std::string content_type, std::string body);
    void on_classified();
    void take(wire::ResultAnswer answer, std::string&& body);
    void follow(PollMachine::Step step, Error const* failure);
    [[nodiscard]] bool may_go_on(PollMachine::Poll const& poll, Error const& failure);
    void report(PollMachine::Step const& step, Error const* failure) const;
    void log_wait(Error const* failure) const;
    void tell_queue_state(wire::QueueReport const& queue);
    void fail(ErrorDetails error);
    void end() noexcept;
    [[nodiscard]] std::shared_ptr<HttpOrder const> const& poll_order(std::int64_t iteration) const;
    [[nodiscard]] Headers lines(std::int64_t iteration) const;

    ResultSurroundings const* around_;
    Listener* listener_;
    HttpCall http_;
    std::shared_ptr<RequestExtras const> extras_{};
    std::chrono::nanoseconds submit_roundtrip_{0};
    std::optional<PollMachine> machine_{};
    std::shared_ptr<Classification> classification_{};
    /// Null until it is known how many bytes the result has: most wait for that.
    std::unique_ptr<Download, detail::GiveBlock<Download>> download_{};
    TimePoint doing_since_{};
    TimePoint until_{};
    TimePoint failing_since_{};  ///< `{}` if the last poll did not fail
    PollWait why_{PollWait::none};
    Doing doing_{Doing::nothing};
    bool protobuf_wanted_{false};
};

}  // namespace tinkxx::service
