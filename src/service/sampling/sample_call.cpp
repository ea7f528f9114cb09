#include "service/sampling/sample_call.hpp"

#include "base/common/forever.hpp"
#include "base/loop/loop_rule.hpp"
#include "service/sampling/refusals.hpp"
#include "wire/session/result_answer.hpp"

#include <optional>
#include <utility>

namespace tinkxx::service {
namespace {

using std::chrono::nanoseconds;

// Samples with such prompts are freed elsewhere: the last one of a million gives gigabytes back to
// the system.
constexpr std::int64_t free_elsewhere_bytes = std::int64_t{4} * 1024;

ErrorDetails with_note(Error const& error, RetryVerdict const& verdict) {
    auto details = error.details();
    details.stopped = verdict.end;
    if (!verdict.note.empty()) details.message += "; " + verdict.note;
    return details;
}

}  // namespace

CallOptions const& SampleOrder::call() const noexcept {
    static base::Forever<CallOptions const> none;  // samples may end with the process
    return extras ? extras->call : none.get();
}

Headers const& SampleOrder::headers() const noexcept {
    static base::Forever<Headers const> none;
    return extras ? extras->headers : none.get();
}

std::string const& SampleCall::request_id() const noexcept {
    static base::Forever<std::string const> none;
    return exchange_ ? exchange_->request_id() : none.get();
}

SampleCall::SampleCall(std::shared_ptr<Sampler> sampler, SampleOrder order,
                       Promise<SampleResponse> promise)
    : sampler_{std::move(sampler)}, order_{std::move(order)}, promise_{std::move(promise)} {}

SampleCall::~SampleCall() = default;

void SampleCall::launch() {
    promise_.on_cancel(canceller());
    PendingCall::launch();
}

std::chrono::milliseconds SampleCall::limit() const noexcept {
    auto const own = order_.call().deadline;
    return own.count() > 0 ? own : core().config().deadline;
}

bool SampleCall::admitted() {
    auto const* const waited = order_.extras ? order_.extras->waited.get() : nullptr;
    if (waited != nullptr) order_.extras->waited->leave();
    if (!PendingCall::admitted()) return false;
    if (waited != nullptr) take_over(*waited);
    return true;
}

void SampleCall::begin() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (auto const refusal = BreakerGuard::refusal(breaker())) {
        auto const settings = sampler_->config_for(order_.call().retry);
        bool const waits =
            settings->enable_retry_logic && RetryHandler::retryable(*settings, *refusal);
        if (!waits) return end(named(*refusal));
    }
    if (auto const ready = sampler_->when_ready(*this)) return on_sampler(*ready);
    enter_stage(sampler_->stage());
}

void SampleCall::on_sampler(Result<void> outcome) {
    if (!outcome) {
        if (!guard_.enter(breaker())) guard_.failed(outcome.error());
        return end(named(outcome.error()));
    }
    auto config = sampler_->config_for(order_.call().retry);
    if (auto const& own = order_.call().retry.retry_budget; own.value()) {
        own_budget_ = std::make_unique<RetryBudgetState>(*own.value());
    }
    bypass_handler_ = order_.may_bypass_handler && sampler_->no_retries();
    if (bypass_handler_) {
        configure(std::move(config));
        return attempt();
    }
    auto handler = sampler_->handler_for(*config, order_.call().retry);
    if (enter(std::move(handler), std::move(config), sampler_->stuck_detection())) {
        return attempt();
    }
    enter_stage(Stage::waiting_for_slot);
}

void SampleCall::on_entered() { attempt(); }

void SampleCall::attempt() {
    if (core().ending()) return;
    ++attempt_;
    attempt_started_ = scheduler().now();
    if (handler() != nullptr) handler()->progress(*this);
    notes().began();
    if (auto const refusal = BreakerGuard::refusal(breaker())) {
        return attempt_failed(named(*refusal));
    }
    seq_id_ = sampler_->next_seq_id();  // R-SAMP-04: before any waiting
    dispatch_.restart();
    advance();
}

DispatchPath SampleCall::path() const noexcept {
    auto& core = this->core();
    return {core.count(), core.throttled(), core.bytes(), core.gate()};
}

DispatchPermits* SampleCall::permits() noexcept {
    return exchange_ ? &exchange_->permits() : nullptr;
}

void SampleCall::hold() {
    if (!exchange_) {
        SampleExchange::Owner& owner = *this;
        exchange_ = std::make_unique<SampleExchange>(owner, sizeof *this, *sampler_, order_);
    }
    exchange_->permits().count = Permit{core().count()};
}

void SampleCall::advance() {
    using Action = SampleDispatch::Action;
    if (core().ending()) return;
    auto const now = scheduler().now();
    for (;;) {
        switch (dispatch_.next(path(), permit_waiter(), permits(), order_.prompt_bytes, now)) {
            case Action::wait_for_count:
                return enter_stage(Stage::waiting_for_count);
            case Action::hold:
                hold();
                break;
            case Action::wait_for_throttled:
                return enter_stage(Stage::throttled);
            case Action::wait_for_bytes:
                return enter_stage(Stage::waiting_for_bytes);
            case Action::encode:
                if (!exchange_->write(core().members())) return enter_stage(Stage::encoding);
                dispatch_.encoded();
                break;
            case Action::wait_for_gate:
                until_ = core().gate().closed_until(now).value_or(now);
                scheduler().arm(*this, until_, Precision::exact);
                if (stage_ != Stage::billing_pause) {
                    enter_stage(Stage::backing_off,
                                why_ ? *why_ : "the service refused another request for load");
                }
                return;
            case Action::submit:
                return submit();
        }
    }
}

void SampleCall::on_other_permit() {
    if (dispatch_.granted(path(), permits())) hold();
    advance();
}

void SampleCall::on_written() {
    if (dispatch_.encodes()) advance();
}

void SampleCall::submit() {
    if (auto const refusal = before_repeat()) return attempt_failed(named(*refusal));
    exchange_->submit(seq_id_, retries() ? Repeat::sample_submit : Repeat::once);
}

std::optional<CircuitBreaker> const& SampleCall::breaker() const noexcept {
    auto const& own = order_.call().circuit_breaker;
    return own ? own : sampler_->plan().options.circuit_breaker;
}

/// Each request is one that the breaker lets through, and that `max_retries` counts.
std::optional<Error> SampleCall::before_repeat() {
    if (auto refusal = guard_.enter(breaker())) return refusal;
    ++requests_;
    return std::nullopt;
}

RetryCount SampleCall::count(nanoseconds took) const noexcept {
    return {
        .attempt = attempt_, .requests = requests_, .took = took, .own_budget = own_budget_.get()};
}

/// Asked by the submit loop (R-RETRY-17, R-EXT-03).
bool SampleCall::may_repeat(Error const& error, RepeatCost cost) {
    guard_.failed(error);
    if (BreakerGuard::refusal(breaker())) return false;
    return RetryHandler::retryable(config(), error) && allowed(count(cost.took), cost.wait);
}

bool SampleCall::may_poll_again(RepeatCost cost) {
    auto costs = count(cost.took);
    costs.requests = 0;  // the request itself is not sent again
    return allowed(costs, cost.wait);
}

bool SampleCall::allowed(RetryCount const& count, nanoseconds wait) {
    // A sample that bypasses the handler shares its budget all the same.
    auto* const paying = bypass_handler_ ? sampler_->handler() : handler();
    auto verdict = RetryHandler::within_limits(config(), paying, count, wait, scheduler().now());
    if (verdict.retry) return true;
    denied_ = std::make_unique<RetryVerdict const>(std::move(verdict));
    return false;
}

bool SampleCall::on_accepted() {
    auto const keep_alive = shared_from_this();
    release_permits();  // which lets others go on
    return under_way();
}

void SampleCall::on_refusal(Error const& error) {
    auto const status = error.http_status().value_or(0);
    if (status == 429 || status == 402) return back_off(error);
    if (exchange_->members() == wire::Members::newest && refuses_new_member(error)) {
        if (fits_old_members(order_.settings->options, sampler_->record_stability_info())) {
            core().only_old_members();
            --requests_;  // it is made again for another reason than a failure
            guard_.failed(error);
            exchange_->drop_request();
            dispatch_.encode_again();
            return advance();
        }
        auto details = error.details();
        details.unsupported_feature = "a sampling option newer than the server";
        return attempt_failed(named(Error{std::move(details)}));
    }
    attempt_failed(named(error));
}

/// 429 and 402: the attempt goes on, with the same number, once the gate opens (R-SAMP-30, 52).
void SampleCall::back_off(Error const& error) {
    auto const now = scheduler().now();
    auto const took = requests_ > 1 ? now - exchange_->sent_at() : nanoseconds::zero();
    bool const billing = error.http_status() == 402;
    if (billing) {
        auto const verdict = core().context().billing().on_402(now, error.what());
        if (!verdict.line.empty()) http().log(verdict.level, verdict.line);
        if (!verdict.pause || !retries()) return attempt_failed(named(error));
    } else if (auto const report = wire::decode_queue_report(error.body())) {
        exchange_->report_queue(report->state, report->reason);
    }
    auto const duration = billing ? usual_backoff(order_.prompt_bytes)
                                  : backoff_after(error, order_.prompt_bytes, scheduler().wall());
    core().gate().close(now, duration);
    guard_.failed(error);
    bool const listed = billing || RetryHandler::retryable(config(), error);
    bool const again =
        retries() && listed && !BreakerGuard::refusal(breaker()) && allowed(count(took), duration);
    if (!again) {
        auto details = error.details();  // R-SAMP-33
        if (!billing) {
            details.retry_after = std::chrono::ceil<std::chrono::milliseconds>(duration);
        }
        return attempt_failed(named(Error{std::move(details)}));
    }
    exchange_->drop_request();
    dispatch_.pass_gate_again();
    why_ = std::make_unique<std::string const>(error.what());
    if (billing) enter_stage(Stage::billing_pause, *why_);
    advance();
}

void SampleCall::on_sample(SampleResponse response) {
    guard_.succeeded();
    notes().succeeded(scheduler().now() - attempt_started_);
    end(std::move(response));
}

void SampleCall::attempt_failed(Error error) {
    auto const keep_alive = shared_from_this();
    guard_.failed(error);
    if (exchange_) exchange_->give_up_result();
    drop_attempt();
    release_permits();
    if (!under_way()) return;
    if (bypass_handler_ || !retries()) {
        if (auto const denied = std::move(denied_)) error = Error{with_note(error, *denied)};
        notes().failed(error);
        return end(std::move(error));
    }
    handler()->count(error);
    auto const verdict = judge(error);
    notes().report(error, verdict.retry);
    if (!verdict.retry) {
        notes().failed(error);
        // The caller is told by the future.
        http().log(LogLevel::debug,
                   std::string{order_.operation} + " failed for good: " + error.what());
        return end(Error{with_note(error, verdict)});
    }
    notes().repeated(error, verdict.delay);
    until_ = scheduler().now() + verdict.delay;
    scheduler().arm(*this, until_, Precision::exact);
    enter_stage(Stage::waiting_to_retry, error.what());
}

RetryVerdict SampleCall::judge(Error& error) {
    if (auto const denied = std::move(denied_)) return *denied;
    if (auto const refusal = BreakerGuard::refusal(breaker());
        refusal && error.kind() != ErrorKind::circuit_open &&
        RetryHandler::retryable(config(), error)) {
        error = BreakerGuard::stopped(named(*refusal), error);
    }
    return handler()->judge(config(), error, count({}), core().chance());
}

void SampleCall::on_time() {
    if (stage_ == Stage::waiting_to_retry) return attempt();
    advance();  // the gate, which may have moved
}

void SampleCall::on_stuck(std::chrono::milliseconds progress_timeout) {
    auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(progress_timeout).count();
    end_by_time(Error{
        {.kind = ErrorKind::connection,
         .message = std::string{order_.operation} + ": no sample succeeded for " +
                    std::to_string(seconds) +
                    " s; requests appear stuck (RetryConfig::progress_timeout); this one was " +
                    std::string{to_string(shown())},
         .retryable = true,
         .request_id = request_id(),
         .stopped = RetryEnd::time_spent,
         .attempts = static_cast<int>(requests_)}});
}

/// Counts as a failure of the service if nothing else held it up (R-EXT-03).
void SampleCall::end_by_time(Error const& error) {
    bool const beginning = attempt_ == 0;
    if (waits_for_service() && !(beginning && guard_.enter(breaker()))) guard_.failed(error);
    end(error);
}

bool SampleCall::waits_for_service() const noexcept {
    if (attempt_ == 0) return sampler_->waits_for_service();
    if (!exchange_) return false;
    if (auto const* const call = exchange_->submitting()) return call->waits_for_service();
    if (auto const* const poll = exchange_->poll()) return poll->failing();
    if (stage_ != Stage::waiting_for_completion) return false;
    auto const* const completions = sampler_->completions();
    return completions != nullptr && completions->failing();
}

void SampleCall::stop() noexcept {
    if (under_way()) end(detail::cancelled_error());
}

ErrorDetails SampleCall::with_request(ErrorDetails details) const {
    details.request_id = request_id();
    details.attempts = static_cast<int>(requests_);
    return details;
}

ErrorDetails SampleCall::late_error(std::string const& limit, std::string const& standing) const {
    return with_request(PendingCall::late_error(limit, standing));
}

ErrorDetails SampleCall::closed_error() const { return with_request(PendingCall::closed_error()); }

void SampleCall::release_permits() {
    if (exchange_) exchange_->permits().release();
}

void SampleCall::drop_attempt() noexcept {
    scheduler().disarm(*this);
    if (!waits()) permit_waiter().stop_waiting();  // for a permit of dispatch
    if (exchange_) exchange_->drop();
}

void SampleCall::end(Result<SampleResponse> result) {
    auto keep_alive = PendingCall::leave();
    // Accepted, and given up: the server may stop too (R-SAMP-42).
    bool const abandoned = !result && (result.error().kind() == ErrorKind::cancelled ||
                                       result.error().kind() == ErrorKind::timeout);
    if (abandoned && !request_id().empty()) sampler_->cancel_on_server(request_id());
    sampler_->forget(static_cast<SamplerWaiter&>(*this));
    guard_.leave();
    drop_attempt();
    release_permits();
    HandledCall::leave(result.has_value());
    if (!result && result.error().kind() != ErrorKind::cancelled) {
        sampler_->capture(result.error());
    }
    exchange_.reset();
    order_.place.reset();
    if (result) {
        promise_.set_value(*std::move(result));
    } else {
        promise_.set_error(result.error());
    }
    if (order_.prompt_bytes >= free_elsewhere_bytes && !http().runtime().zero_thread()) {
        http().runtime().run_callback([last = std::move(keep_alive)] {});
    }
}

void SampleCall::enter_stage(Stage stage, std::string why) {
    stage_ = stage;
    why_ = why.empty() ? nullptr : std::make_unique<std::string const>(std::move(why));
    look();
}

Error SampleCall::named(Error const& error) const {
    auto details = error.details();
    details.message = with_operation(order_.operation, details.message);
    if (details.request_id.empty()) details.request_id = request_id();
    details.attempts = static_cast<int>(requests_);
    return Error{std::move(details)};
}

void SampleCall::log_progress(std::string line) { http().log(LogLevel::debug, std::move(line)); }

bool SampleCall::logs_progress() const noexcept { return http().logs(LogLevel::debug); }

AttemptNotes SampleCall::notes() const noexcept {
    return {*sampler_,
            order_,
            {.id = id(), .attempt = attempt_, .requests = requests_, .started = started()}};
}

}  // namespace tinkxx::service
