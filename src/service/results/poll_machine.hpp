#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/poll_backoff.hpp>
#include <tinkxx/scheduler.hpp>

#include "service/telemetry/telemetry.hpp"
#include "wire/session/result_answer.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tinkxx::service {

/// What holds for all results that a client waits for.
struct PollRules {
    PollBackoff backoff{};
    /// Two polls of which the second follows at once begin this far apart (R-FUT-11).
    std::chrono::nanoseconds spacing{std::chrono::milliseconds{100}};
    /// Answers of 500 with the same body that are taken in a row: for this long, and at least so
    /// many (R-WIRE-10). Empty: any number.
    std::optional<std::chrono::nanoseconds> same_errors_for{std::chrono::minutes{5}};
    int least_same_errors{20};
};

/// Why the next poll has to wait.
enum class PollWait : std::uint8_t {
    none,
    not_yet,       ///< the service has no result yet
    asked,         ///< the service named a time
    server_error,  ///< 5xx
    bad_request,   ///< 400, which is tried again a few times
    rate_limited,  ///< 429
    no_answer,     ///< the network failed
    billing,       ///< 402, waited out
};
[[nodiscard]] std::string_view to_string(PollWait why) noexcept;

/// Decides what follows each answer to the polls for one result: the third layer of retries
/// (R-FUT-03, R-FUT-07). Touches no socket and reads no clock, so every path is tested by calling
/// it.
class PollMachine {
public:
    /// Ask (again) at that time.
    struct Poll {
        TimePoint at{};
        PollWait why{PollWait::none};
    };
    /// The result is there: ask for it once so many bytes may be fetched (R-FUT-40).
    struct Download {
        std::int64_t bytes{0};
    };
    /// 402: say by `on_billing` whether it is waited out.
    struct AskBilling {};
    /// The body is the result.
    struct Done {};
    struct Fail {
        ErrorDetails error{};
    };
    using Action = std::variant<Done, Poll, Download, AskBilling, Fail>;

    /// What telemetry shall know (R-TEL-10, R-TEL-11).
    struct Report {
        std::string_view name{};
        Severity severity{Severity::warning};
        /// Of the outcome, by R-FUT-07; empty if no answer was missing or wrong.
        std::string_view kind{};
        bool should_retry{false};
    };
    struct Step {
        Action next{};
        /// For observers (R-FUT-31).
        std::optional<wire::QueueReport> queue{};
        std::optional<Report> report{};
    };

    /// The views and the rules outlive this. `deadline` is `TimePoint::max()` for none.
    PollMachine(PollRules const& rules, std::string_view request_id, std::string_view request_type,
                TimePoint now, TimePoint deadline) noexcept
        : rules_{&rules}, id_{request_id}, type_{request_type}, since_{now}, deadline_{deadline} {}

    /// The size of the result is known, so that no poll needs to ask for it (R-FUT-63).
    void skip_metadata() noexcept { allow_metadata_only_ = false; }
    [[nodiscard]] bool allow_metadata_only() const noexcept { return allow_metadata_only_; }

    /// A poll begins; its number, 0 for the first.
    std::int64_t begin(TimePoint now) noexcept;
    /// A 2xx answer came.
    [[nodiscard]] Step on_answer(wire::ResultAnswer const& answer, TimePoint now);
    /// No answer came, or one with another status.
    [[nodiscard]] Step on_error(Error const& error, TimePoint now);
    /// After `AskBilling`; without a pause the 402 is final.
    [[nodiscard]] Step on_billing(Error const& error, std::optional<std::chrono::nanoseconds> pause,
                                  TimePoint now);
    /// The deadline has passed (R-FUT-21).
    [[nodiscard]] Step on_deadline(TimePoint now);

    /// The error of a result that is given up after this failure, though it could be asked for
    /// again.
    [[nodiscard]] ErrorDetails given_up(Error const& error) const;
    /// Polls in a row to which no answer came, or one that says nothing about the result.
    [[nodiscard]] int failures() const noexcept { return failures_; }
    [[nodiscard]] bool failing() const noexcept { return failures_ > 0; }

    /// The members of the event that a step reports; `error` is what the step came from.
    [[nodiscard]] boost::json::object event_data(Report const& report, Error const& error,
                                                 TimePoint now) const;

    [[nodiscard]] std::string_view request_id() const noexcept { return id_; }
    [[nodiscard]] std::string_view request_type() const noexcept { return type_; }
    [[nodiscard]] TimePoint since() const noexcept { return since_; }
    [[nodiscard]] TimePoint deadline() const noexcept { return deadline_; }
    [[nodiscard]] bool expired(TimePoint now) const noexcept { return now >= deadline_; }
    /// Polls begun.
    [[nodiscard]] std::int64_t polls() const noexcept { return polls_; }
    /// The last failure of a poll; null if there was none.
    [[nodiscard]] Error const* last_failure() const noexcept { return last_.get(); }

private:
    [[nodiscard]] Step on_status(int status, Error const& error, TimePoint now);
    [[nodiscard]] Step on_server_error(int status, Error const& error, TimePoint now);
    [[nodiscard]] Step on_bad_request(Error const& error, TimePoint now);
    [[nodiscard]] Step back_off(TimePoint now, PollWait why, std::string_view event);
    [[nodiscard]] Step final_status(int status, Error const& error, RetryEnd stopped,
                                    std::string_view kind) const;
    [[nodiscard]] Poll soon(TimePoint now, PollWait why) const noexcept;
    [[nodiscard]] Poll patiently(TimePoint now, PollWait why) noexcept;
    [[nodiscard]] ErrorDetails error(ErrorKind kind, std::string_view text) const;
    /// That it failed as `error` says.
    [[nodiscard]] ErrorDetails about(Error const& error, ErrorKind kind) const;
    void count_failure() noexcept;
    [[nodiscard]] std::string subject() const;

    PollRules const* rules_;
    std::string_view id_;
    std::string_view type_;
    TimePoint since_;
    TimePoint deadline_;
    TimePoint begun_{};  ///< of the newest poll
    TimePoint same_errors_since_{};
    std::int64_t polls_{0};
    int backoffs_{0};      ///< exponent of the next wait after 429 or no answer
    int bad_requests_{0};  ///< of the budget for 400
    int same_errors_{0};   ///< answers of 500 in a row with the body of `last_`
    int failures_{0};      ///< in a row
    int pendings_{0};      ///< in a row
    int delays_{0};        ///< answers in a row that `poll_backoff` slows down
    bool allow_metadata_only_{true};
    std::shared_ptr<Error const> last_{};
};

/// Tells telemetry that the body of a result could not be read (R-FUT-03). Loop thread only;
/// `telemetry` may be null.
void report_unreadable_result(Telemetry* telemetry, std::string_view request_id,
                              std::string_view request_type, bool protobuf, Error const& error);

}  // namespace tinkxx::service
