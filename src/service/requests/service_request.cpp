#include "service/requests/service_request.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/http/standard_headers.hpp"
#include "service/retry/user_error.hpp"
#include "service/telemetry/error_text.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tinkxx::service {

namespace {

double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>{time}.count();
}

}  // namespace

Stage stage_of(Standing::Doing doing) noexcept {
    switch (doing) {
        case Standing::Doing::nothing:
        case Standing::Doing::sending:
            break;
        case Standing::Doing::credential:
            return Stage::waiting_for_credential;
        case Standing::Doing::http_wait:
        case Standing::Doing::submit_wait:
            return Stage::waiting_to_submit;
        case Standing::Doing::billing_pause:
            return Stage::billing_pause;
    }
    return Stage::submitting;
}

std::string describe(Standing const& standing, TimePoint now) {
    if (standing.doing == Standing::Doing::nothing) return "not under way";
    std::string text;
    if (standing.attempt > 1) text = "attempt " + std::to_string(standing.attempt) + ", ";
    if (standing.http_retries > 0) {
        text += "HTTP attempt " + std::to_string(standing.http_retries + 1) + ", ";
    }
    auto const in = [&] {
        auto const left = standing.until.value_or(now) - now;
        return " in " +
               seconds_text(std::max(std::chrono::ceil<std::chrono::milliseconds>(left),
                                     std::chrono::milliseconds::zero())) +
               " s";
    };
    switch (standing.doing) {
        case Standing::Doing::nothing:
            break;
        case Standing::Doing::sending:
            text += "waiting for an answer";
            break;
        case Standing::Doing::credential:
            text += "waiting for a credential";
            return standing.why.empty() ? text : text + ": " + standing.why;
        case Standing::Doing::http_wait:
        case Standing::Doing::submit_wait:
            text += "next attempt" + in();
            break;
        case Standing::Doing::billing_pause:
            text += "paused for billing reasons, next attempt" + in();
            break;
    }
    if (!standing.why.empty()) text += "; last: " + standing.why;
    return text;
}

ServiceRequest::~ServiceRequest() { cancel(); }

void ServiceRequest::start(HttpOrder order, Repeat repeat) {
    HttpParcel parcel{.headers = std::move(order.headers), .body = std::move(order.body)};
    start(std::make_shared<HttpOrder const>(std::move(order)), std::move(parcel), repeat);
}

void ServiceRequest::start(std::shared_ptr<HttpOrder const> order, HttpParcel parcel,
                           Repeat repeat) {
    TINKXX_ASSERT_LOOP(context_->http().scheduler());
    assert(state_ == State::idle);
    (void)context_->usable();  // a closed context has a closed HTTP part, which says so
    repeat_ = repeat;
    state_ = State::sending;
    http_attempts_ = 0;
    if (repeat == Repeat::once) return http_.start(std::move(order), std::move(parcel));
    retry_.emplace(context_->http().scheduler().now());
    order_ = std::move(order);
    parcel_ = std::move(parcel);
    http_.start(order_, parcel_);
}

void ServiceRequest::on_response(HttpResponse response) {
    end();
    listener_->on_response(std::move(response));
}

void ServiceRequest::on_error(Error error) {
    if (repeat_ == Repeat::once) return fail(std::move(error));
    auto const now = context_->http().scheduler().now();
    http_attempts_ += std::max(error.details().attempts, 1);
    auto const status = error.http_status().value_or(0);
    if (repeat_ == Repeat::sample_submit &&
        (error.kind() == ErrorKind::status || error.kind() == ErrorKind::billing) &&
        (status == 402 || status == 429)) {
        return fail(std::move(error));
    }
    if (error.kind() == ErrorKind::billing && pauses(error)) {
        if (!listener_->may_repeat(error, {.wait = BillingPause::step})) {
            return fail(std::move(error));
        }
        return wait(retry_->on_billing_pause(now), State::pausing, std::move(error));
    }
    auto const action = retry_->on_error(error, now);
    if (error.kind() != ErrorKind::cancelled) report(error);
    auto const* const again = std::get_if<SubmitRetry::Wait>(&action);
    if (again != nullptr) {
        bool const repeated = retry_->attempts() > 1;
        auto const took = repeated ? now - sent_at() : std::chrono::nanoseconds{0};
        if (!listener_->may_repeat(error, {.wait = again->delay, .took = took})) {
            return fail(std::move(error));
        }
        auto& http = context_->http();
        if (http.logs(LogLevel::info)) {
            http.log(LogLevel::info,
                     std::string{error.what()} + "; the call is made again in " +
                         seconds_text(std::chrono::ceil<std::chrono::milliseconds>(again->delay)) +
                         " s");
        }
        return wait(*again, State::waiting, std::move(error));
    }
    if (std::get<SubmitRetry::Fail>(action).out_of_time) {
        auto details = error.details();
        details.attempts = http_attempts_;
        details.stopped = RetryEnd::attempts_spent;
        details.message += "; gave up after " + std::to_string(retry_->attempts()) +
                           " rounds of attempts in " + std::to_string(SubmitRetry::budget.count()) +
                           " s";
        error = Error{std::move(details)};
    }
    fail(std::move(error));
}

bool ServiceRequest::pauses(Error const& error) {
    auto& http = context_->http();
    auto const detail = error.body().empty() ? std::string_view{error.what()} : error.body();
    auto verdict = context_->billing().on_402(http.scheduler().now(), detail);
    if (!verdict.line.empty()) http.log(verdict.level, std::move(verdict.line));
    return verdict.pause;
}

void ServiceRequest::wait(SubmitRetry::Wait wait, State state, Error error) {
    auto& scheduler = context_->http().scheduler();
    state_ = state;
    last_ = std::move(error);
    until_ = scheduler.now() + wait.delay;
    context_->waiting_.push_back(*this);
    scheduler.arm(*this, until_, Precision::exact);
    listener_->on_standing();
}

void ServiceRequest::on_time() {
    context_->waiting_.erase(*this);
    if (auto refusal = listener_->before_repeat()) return fail(*std::move(refusal));
    state_ = State::sending;
    http_.start(order_, parcel_);
    listener_->on_standing();
}

// R-RETRY-83.
void ServiceRequest::report(Error const& error) const {
    auto* telemetry = context_->telemetry();
    if (telemetry == nullptr) return;
    auto const& scheduler = context_->http().scheduler();
    bool const retryable = repeats_submit(error);
    bool const user = find_user_error(error).has_value();
    auto const wall = seconds(scheduler.wall().time_since_epoch());
    auto const elapsed = seconds(scheduler.now() - retry_->started());
    boost::json::object data;
    data["func"] = order_->operation.name();
    data["exception"] = error.what();
    data["exception_type"] = boost::json::string_view{error_type(error)};
    data["exception_stack"] = error_stack(order_->operation.name(), retry_->attempts(), error);
    if (auto const status = error.http_status()) {
        data["status_code"] = *status;
    } else {
        data["status_code"] = nullptr;
    }
    data["is_retryable"] = retryable;
    data["is_user_error"] = user;
    data["attempt_count"] = retry_->attempts() - 1;
    data["start_time"] = wall - elapsed;
    data["current_time"] = wall;
    data["elapsed_time"] = elapsed;
    telemetry->event("InternalClientHolder.execute_with_retries.exception",
                     retryable || user ? Severity::warning : Severity::error, std::move(data));
}

void ServiceRequest::fail(Error error) {
    end();
    listener_->on_error(std::move(error));
}

void ServiceRequest::shut() noexcept {
    ErrorDetails error;
    error.kind = ErrorKind::cancelled;
    error.stopped = RetryEnd::cancelled;
    error.message = order_->operation.name() + ": cancelled, since its client went away";
    if (last_) error.cause = std::make_shared<Error const>(*last_);
    fail(Error{std::move(error)});
}

void ServiceRequest::cancel() noexcept {
    if (state_ == State::idle) return;
    http_.cancel();
    end();
}

void ServiceRequest::end() noexcept {
    context_->http().scheduler().disarm(*this);
    if (links.linked()) context_->waiting_.erase(*this);
    state_ = State::idle;
    order_.reset();
    parcel_ = {};
    last_.reset();
}

Standing::Doing ServiceRequest::doing() const noexcept {
    switch (state_) {
        case State::idle:
            break;
        case State::sending:
            if (http_.waits_for_credential()) return Standing::Doing::credential;
            return http_.retry_at() ? Standing::Doing::http_wait : Standing::Doing::sending;
        case State::waiting:
            return Standing::Doing::submit_wait;
        case State::pausing:
            return Standing::Doing::billing_pause;
    }
    return Standing::Doing::nothing;
}

bool ServiceRequest::waits_for_service() const noexcept {
    auto const now = doing();
    return now == Standing::Doing::sending || now == Standing::Doing::http_wait ||
           now == Standing::Doing::submit_wait;
}

Standing ServiceRequest::standing() const {
    Standing standing;
    standing.doing = doing();
    if (state_ == State::idle) return standing;
    standing.attempt = (retry_ && repeat_ != Repeat::once ? retry_->attempts() : 0) + 1;
    if (last_) standing.why = last_->what();
    if (state_ == State::sending) standing.http_retries = http_.retries();
    add_limits(standing);
    switch (standing.doing) {
        case Standing::Doing::nothing:
        case Standing::Doing::sending:
            break;
        case Standing::Doing::credential: {
            auto credential = context_->http().credentials().standing();
            standing.why = std::move(credential.why);
            standing.until = credential.until;
            break;
        }
        case Standing::Doing::http_wait:
            standing.until = http_.retry_at();
            standing.why = std::string{http_.retry_reason()};
            break;
        case Standing::Doing::submit_wait:
        case Standing::Doing::billing_pause:
            standing.until = until_;
            break;
    }
    return standing;
}

void ServiceRequest::add_limits(Standing& standing) const {
    bool const repeats = repeat_ != Repeat::once && retry_;
    bool const failed = last_.has_value() || standing.http_retries > 0;
    auto const started = repeats ? retry_->started() : http_.started();
    bool const waits_for_answer = standing.doing == Standing::Doing::sending && !failed;
    standing.stalled_since = waits_for_answer ? std::max(http_.sent_at(), started) : started;
    if (repeats && failed && standing.doing != Standing::Doing::billing_pause) {
        auto const now = context_->http().scheduler().now();
        standing.gives_up = now + (SubmitRetry::budget - retry_->elapsed(now));
    }
}

}  // namespace tinkxx::service
