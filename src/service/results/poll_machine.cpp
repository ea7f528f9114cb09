#include "service/results/poll_machine.hpp"

#include "service/http/http_error.hpp"
#include "service/http/standard_headers.hpp"
#include "service/results/poll_backoff.hpp"
#include "service/retry/user_error.hpp"
#include "service/telemetry/error_text.hpp"
#include "service/text/retry_after.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace tinkxx::service {

namespace {

namespace answer = wire::result_answer;
namespace json = boost::json;
using std::chrono::nanoseconds;

constexpr int most_bad_requests = 3;
constexpr std::chrono::seconds longest_backoff{30};
// Longest text of the server that an event carries.
constexpr std::size_t event_text_bytes = 1024;

constexpr std::string_view timeout_event = "APIFuture.result_async.timeout";
constexpr std::string_view status_event = "APIFuture.result_async.api_status_error";
constexpr std::string_view connection_event = "APIFuture.result_async.connection_error";
constexpr std::string_view application_event = "APIFuture.result_async.application_error";
constexpr std::string_view protobuf_event = "APIFuture.result_async.proto_deserialization_error";
constexpr std::string_view validation_event = "APIFuture.result_async.validation_error";

constexpr std::string_view retry_kind = "retry";
constexpr std::string_view backoff_kind = "retry_with_backoff";
constexpr std::string_view budgeted_kind = "budgeted";
constexpr std::string_view gone_kind = "promise_gone";
constexpr std::string_view fatal_kind = "fatal";

PollMachine::Report report_of(std::string_view name, std::string_view kind, bool should_retry) {
    auto const grave = kind == fatal_kind || kind == budgeted_kind;
    return {.name = name,
            .severity = grave ? Severity::error : Severity::warning,
            .kind = kind,
            .should_retry = should_retry};
}

// 1, 2, 4, 8, 16, 30, 30 … s.
nanoseconds doubled(int times) noexcept {
    return std::min<nanoseconds>(std::chrono::seconds{1LL << std::min(times, 5)}, longest_backoff);
}

std::optional<wire::QueueReport> worth_telling(std::optional<wire::QueueReport> queue) {
    if (queue && queue->state == QueueState::unknown && queue->reason.empty()) return std::nullopt;
    return queue;
}

std::optional<json::object> parse_object(std::string_view body) {
    json::error_code failed;
    auto parsed = json::parse({body.data(), body.size()}, failed);
    if (failed || !parsed.is_object()) return std::nullopt;
    return std::move(parsed.get_object());
}

// What servers that have no other word for the failure of a request say (protocol §7.3).
std::string detail_of(std::string_view body) {
    auto const object = parse_object(body);
    if (!object) return {};
    auto const* detail = object->if_contains("detail");
    if (detail == nullptr || !detail->is_string()) return {};
    auto const& text = detail->get_string();
    return one_line({text.data(), text.size()});
}

json::string event_text(std::string_view text) {
    text = cut(text, event_text_bytes);
    return json::string(text.data(), text.size());
}

std::string plain_seconds(nanoseconds time) {
    return seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(time));
}

}  // namespace

std::string_view to_string(PollWait why) noexcept {
    switch (why) {
        case PollWait::none:
            return "nothing";
        case PollWait::not_yet:
            return "the service has no result yet";
        case PollWait::asked:
            return "the service asked to wait";
        case PollWait::server_error:
            return "the service failed to answer";
        case PollWait::bad_request:
            return "the service refused the poll";
        case PollWait::rate_limited:
            return "the service is asked too often";
        case PollWait::no_answer:
            return "no answer came";
        case PollWait::billing:
            return "the account is blocked for billing";
    }
    return "nothing";
}

std::int64_t PollMachine::begin(TimePoint now) noexcept {
    begun_ = now;
    return polls_++;
}

std::string PollMachine::subject() const {
    std::string text{type_};
    text += " request ";
    text += id_;
    return text;
}

ErrorDetails PollMachine::error(ErrorKind kind, std::string_view text) const {
    ErrorDetails details;
    details.kind = kind;
    details.message = subject();
    details.message += text;
    details.request_id = id_;
    details.attempts = static_cast<int>(std::min<std::int64_t>(polls_, 1'000'000'000));
    return details;
}

PollMachine::Poll PollMachine::soon(TimePoint now, PollWait why) const noexcept {
    return {.at = std::max(now, begun_ + rules_->spacing), .why = why};
}

PollMachine::Poll PollMachine::patiently(TimePoint now, PollWait why) noexcept {
    auto poll = soon(now, why);
    poll.at = std::max(poll.at, now + poll_backoff_delay(rules_->backoff, polls_ - 1, delays_));
    if (delays_ < 1000) ++delays_;
    return poll;
}

PollMachine::Step PollMachine::on_answer(wire::ResultAnswer const& answer, TimePoint now) {
    backoffs_ = 0;
    same_errors_ = 0;
    failures_ = 0;
    delays_ = 0;
    if (std::holds_alternative<answer::Pending>(answer)) {
        auto const delay = doubled(pendings_);
        if (pendings_ < 1000) ++pendings_;
        return {.next = Poll{.at = now + delay, .why = PollWait::not_yet}};
    }
    pendings_ = 0;
    if (auto const* again = std::get_if<answer::TryAgain>(&answer)) {
        Step step{.next = soon(now, PollWait::not_yet), .queue = worth_telling(again->queue)};
        if (again->retry_after && again->retry_after->count() > 0) {
            auto poll = soon(now, PollWait::asked);
            poll.at = std::max(
                poll.at, now + std::min<nanoseconds>(*again->retry_after, longest_retry_after));
            step.next = poll;
        }
        return step;
    }
    if (auto const* metadata = std::get_if<answer::Metadata>(&answer)) {
        if (std::exchange(allow_metadata_only_, false)) {
            return {.next = Download{std::max<std::int64_t>(metadata->payload_bytes, 0)}};
        }
        auto details = error(ErrorKind::validation,
                             ": the service announced the result again in place of sending it; "
                             "this is a fault of the service");
        details.field = "status";
        details.value = "complete_metadata";
        return {.next = Fail{std::move(details)},
                .report = Report{.name = validation_event, .severity = Severity::error}};
    }
    if (auto const* failed = std::get_if<answer::Failed>(&answer)) {
        auto const text = one_line(failed->message);
        auto details =
            error(ErrorKind::request_failed,
                  text.empty() ? " failed; the service does not say why" : " failed: " + text);
        details.category = failed->category;
        details.stopped = RetryEnd::permanent;
        details.body = cut(failed->message, error_body_bytes);
        return {.next = Fail{std::move(details)},
                .report =
                    Report{.name = application_event,
                           .severity = failed->category == ErrorCategory::user ? Severity::warning
                                                                               : Severity::error}};
    }
    if (auto const* malformed = std::get_if<answer::Malformed>(&answer)) {
        auto details = error(ErrorKind::validation,
                             ": the answer cannot be read: " + one_line(malformed->why));
        details.field = "body";
        return {.next = Fail{std::move(details)},
                .report = Report{.name = validation_event, .severity = Severity::error}};
    }
    return {.next = Done{}};
}

PollMachine::Step PollMachine::on_error(Error const& error, TimePoint now) {
    if (error.kind() == ErrorKind::status || error.kind() == ErrorKind::billing) {
        return on_status(error.http_status().value_or(0), error, now);
    }
    // The client went away; that is no failure of the result.
    if (error.kind() == ErrorKind::cancelled || error.kind() == ErrorKind::closed) {
        return {.next = Fail{error.details()}};
    }
    if (error.retryable()) {
        count_failure();
        same_errors_ = 0;
        last_ = std::make_shared<Error const>(error);
        return back_off(now, PollWait::no_answer, connection_event);
    }
    auto details = this->error(error.kind(), ": ");
    details.message += error.what();
    details.category = error.category();
    details.field = error.field();
    details.value = error.value();
    details.stopped = RetryEnd::permanent;
    details.cause = std::make_shared<Error const>(error);
    return {.next = Fail{std::move(details)},
            .report = report_of(connection_event, fatal_kind, false)};
}

PollMachine::Step PollMachine::on_status(int status, Error const& error, TimePoint now) {
    pendings_ = 0;
    if (status != 429) backoffs_ = 0;
    bool const server_error = status >= 500 && status < 600;
    if (status != 500) same_errors_ = 0;
    if (!server_error && status != 408) delays_ = 0;
    if (status == 408) {
        failures_ = 0;
    } else {
        count_failure();
    }

    if (status == 408) {
        if (parse_object(error.body())) bad_requests_ = 0;
        return {.next = patiently(now, PollWait::not_yet),
                .queue = worth_telling(wire::decode_queue_report(error.body())),
                .report = report_of(status_event, retry_kind, true)};
    }
    if (server_error) return on_server_error(status, error, now);
    if (status == 429) {
        last_ = std::make_shared<Error const>(error);
        auto step = back_off(now, PollWait::rate_limited, status_event);
        step.queue = worth_telling(wire::decode_queue_report(error.body()));
        return step;
    }
    if (status == 400) return on_bad_request(error, now);
    if (status == 402) return {.next = AskBilling{}};
    if (status == 410) {
        // A sample stands alone, and so does a new model. Other requests are steps of a model:
        // those before them are lost as well, and so may the model be.
        bool const alone = type_ == "Sample" || type_ == "CreateModel";
        auto details = this->error(
            ErrorKind::promise_lost,
            alone
                ? ": 410 gone: the service does not know this request any more; submit it again"
                : ": 410 gone: the service does not know this request any more, and may have lost "
                  "its model; go on from the last checkpoint "
                  "(ServiceClient::create_training_client_from_state)");
        details.retryable = alone;
        details.http_status = status;
        details.body = error.body();
        details.headers = error.details().headers;
        details.cause = std::make_shared<Error const>(error);
        return {.next = Fail{std::move(details)},
                .report = report_of(status_event, gone_kind, false)};
    }
    return final_status(status, error, RetryEnd::permanent, fatal_kind);
}

PollMachine::Step PollMachine::on_server_error(int status, Error const& error, TimePoint now) {
    if (status == 500) {
        bool const same = same_errors_ > 0 && last_->body() == error.body();
        if (!same) same_errors_since_ = now;
        same_errors_ = same ? same_errors_ + 1 : 1;
    }
    last_ = std::make_shared<Error const>(error);
    auto const lasted = now - same_errors_since_;
    if (status == 500 && rules_->same_errors_for && lasted >= *rules_->same_errors_for &&
        same_errors_ >= rules_->least_same_errors) {
        auto details = given_up(error);
        details.message += "; so it was for " + plain_seconds(lasted) + " s and " +
                           std::to_string(same_errors_) +
                           " polls (ClientOptions::poll_error_limit)";
        return {.next = Fail{std::move(details)},
                .report = report_of(status_event, fatal_kind, false)};
    }
    Step step{.next = patiently(now, PollWait::server_error),
              .report = report_of(status_event, retry_kind, true)};
    if (status == 503) step.queue = worth_telling(wire::decode_queue_report(error.body()));
    return step;
}

void PollMachine::count_failure() noexcept {
    if (failures_ < 1000) ++failures_;
}

/// As the failure it was, so that a handler may submit anew (C-64).
ErrorDetails PollMachine::given_up(Error const& error) const {
    auto details = about(error, error.kind());
    details.retryable = true;
    details.stopped = RetryEnd::attempts_spent;
    return details;
}

PollMachine::Step PollMachine::on_bad_request(Error const& error, TimePoint now) {
    if (bad_requests_ < most_bad_requests) {
        ++bad_requests_;
        last_ = std::make_shared<Error const>(error);
        return {.next = soon(now, PollWait::bad_request),
                .report = report_of(status_event, budgeted_kind, true)};
    }
    return final_status(400, error, RetryEnd::attempts_spent, budgeted_kind);
}

PollMachine::Step PollMachine::back_off(TimePoint now, PollWait why, std::string_view event) {
    auto const delay = doubled(backoffs_);
    if (backoffs_ < 1000) ++backoffs_;
    return {.next = Poll{.at = now + delay, .why = why},
            .report = report_of(event, backoff_kind, true)};
}

PollMachine::Step PollMachine::final_status(int status, Error const& error, RetryEnd stopped,
                                            std::string_view kind) const {
    // A handler must not submit anew because of a status that it would repeat for a submit: the
    // pending result is there, only it cannot be had.
    auto details = about(error, is_passing(status) ? ErrorKind::request_failed : error.kind());
    details.http_status = status;
    details.stopped = stopped;
    return {.next = Fail{std::move(details)}, .report = report_of(status_event, kind, false)};
}

ErrorDetails PollMachine::about(Error const& error, ErrorKind kind) const {
    auto details = this->error(kind, ": ");
    auto const detail = error.http_status() == 400 ? detail_of(error.body()) : std::string{};
    if (detail.empty()) {
        details.message += error.what();
    } else {
        details.message += "400 bad request: " + detail;
    }
    details.http_status = error.http_status();
    details.category = error.category();
    details.retry_after = error.retry_after();
    details.body = error.body();
    details.headers = error.details().headers;
    details.unsupported_feature = error.details().unsupported_feature;
    details.cause = std::make_shared<Error const>(error);
    return details;
}

PollMachine::Step PollMachine::on_billing(Error const& error, std::optional<nanoseconds> pause,
                                          TimePoint now) {
    if (pause) return {.next = Poll{.at = now + *pause, .why = PollWait::billing}};
    return final_status(402, error, RetryEnd::permanent, fatal_kind);
}

PollMachine::Step PollMachine::on_deadline(TimePoint now) {
    auto const passed = "no result within " + plain_seconds(now - since_) + " s and " +
                        std::to_string(polls_) + " polls; give it more time, or ask again later";
    auto details = error(last_ ? last_->kind() : ErrorKind::timeout, ": ");
    if (last_) {
        details.message += last_->what();
        details.message += "; ";
        details.http_status = last_->http_status();
        details.category = last_->category();
        details.retry_after = last_->retry_after();
        details.body = last_->body();
        details.headers = last_->details().headers;
        details.cause = last_;
    }
    details.message += passed;
    details.stopped = RetryEnd::attempts_spent;
    return {.next = Fail{std::move(details)},
            .report = Report{.name = timeout_event, .severity = Severity::error}};
}

json::object PollMachine::event_data(Report const& report, Error const& error,
                                     TimePoint now) const {
    json::object data;
    data["request_id"] = event_text(id_);
    data["request_type"] = event_text(type_);
    data["iteration"] = std::max<std::int64_t>(polls_ - 1, 0);
    data["elapsed_time"] = std::chrono::duration<double>(now - since_).count();
    if (report.name == application_event) {
        data["error"] = event_text(error.what());
        data["error_category"] = event_text(to_string(error.category()));
        return data;
    }
    data["exception"] = event_text(error.what());
    data["exception_type"] = event_text(error_type(error));
    data["is_user_error"] = find_user_error(error).has_value();
    if (report.kind.empty()) return data;
    if (auto const status = error.http_status()) {
        data["status_code"] = *status;
    } else {
        data["status_code"] = nullptr;
    }
    data["detail"] = event_text(error.body());
    data["kind"] = event_text(report.kind);
    data["should_retry"] = report.should_retry;
    data["connection_error_retries"] = backoffs_;
    data["bad_request_retries"] = bad_requests_;
    return data;
}

void report_unreadable_result(Telemetry* telemetry, std::string_view request_id,
                              std::string_view request_type, bool protobuf, Error const& error) {
    if (telemetry == nullptr) return;
    json::object data;
    data["request_id"] = event_text(request_id);
    data["request_type"] = event_text(request_type);
    data["exception"] = event_text(error.what());
    data["exception_type"] = event_text(error_type(error));
    telemetry->event(protobuf ? protobuf_event : validation_event, Severity::error,
                     std::move(data));
}

}  // namespace tinkxx::service
