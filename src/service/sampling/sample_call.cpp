#include "service/sampling/sample_call.hpp"

#include "base/common/forever.hpp"
#include "base/loop/loop_rule.hpp"
#include "service/retry/user_error.hpp"
#include "service/sampling/dispatched_sample.hpp"
#include "service/telemetry/error_text.hpp"
#include "service/text/retry_after.hpp"
#include "wire/session/result_answer.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx::service {
namespace {

using std::chrono::nanoseconds;

// R-SAMP-31: how long a refusal holds requests back if the server does not say.
constexpr std::int64_t small_prompt_bytes = std::int64_t{128} * 1024;
constexpr std::chrono::seconds small_prompt_backoff{1};
constexpr std::chrono::seconds large_prompt_backoff{5};

// Longer ones are written, or read, where they do not keep the loop from others.
constexpr std::int64_t encode_on_loop_bytes = std::int64_t{32} * 1024;
constexpr std::size_t decode_on_loop_bytes = std::size_t{64} * 1024;
constexpr std::size_t decode_json_on_loop_bytes = std::size_t{16} * 1024;
// Samples with such prompts are freed elsewhere too: the last one of a million gives gigabytes back
// to the system.
constexpr std::int64_t free_elsewhere_bytes = std::int64_t{4} * 1024;

ErrorDetails with_note(Error const& error, RetryVerdict const& verdict) {
    auto details = error.details();
    details.stopped = verdict.end;
    if (!verdict.note.empty()) details.message += "; " + verdict.note;
    return details;
}

std::shared_ptr<std::string const> encode_tail(SampleOrder const& order, bool stability,
                                               wire::Members members) {
    return std::make_shared<std::string const>(
        wire::encode_sample_tail(order.prompt.chunks(), order.settings->params,
                                 order.settings->options, stability, members));
}

/// Whether a request without the members newer than 0.25.0 would ask for the same.
bool fits_old_members(SampleOptions const& options, bool stability) {
    return options.topk_sample_logprobs == 0 && !options.target_prompt_logprobs &&
           options.prompt_alt_tokens_k == 0 && !options.prompt_logprobs_last_n && !stability;
}

/// How long the server asks to wait: the first of the three places that makes sense (R-SAMP-31).
std::optional<nanoseconds> backoff_hint(Error const& error, WallTime now) {
    Headers lines;
    for (auto const& [name, value] : error.details().headers) lines.add(name, value);
    if (auto const* text = lines.find("retry-after-ms")) {
        Headers const line{{"retry-after-ms", *text}};
        if (auto const wait = retry_after(line, now, longest_retry_after)) return wait;
        lines.remove("retry-after-ms");
    }
    if (auto const wait = wire::decode_retry_after(error.body()); wait && wait->count() > 0) {
        return std::min<nanoseconds>(*wait, longest_retry_after);
    }
    return retry_after(lines, now, longest_retry_after);
}

bool names_new_member(std::string_view body) {
    constexpr std::string_view names[] = {"topk_sample_logprobs", "target_prompt_logprobs",
                                          "prompt_alt_tokens_k", "prompt_logprobs_last_n",
                                          "record_stability_info"};
    return std::ranges::any_of(
        names, [&](std::string_view name) { return body.find(name) != std::string_view::npos; });
}

Result<SampleResponse> decode_body(std::string_view body, bool protobuf) {
    return protobuf ? wire::decode_sample_proto(body) : wire::decode_sample_json(body);
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
    return dispatched_ ? dispatched_->request_id : none.get();
}

SampleCall::SampleCall(std::shared_ptr<Sampler> sampler, SampleOrder order,
                       Promise<SampleResponse> promise)
    : sampler_{std::move(sampler)}, order_{std::move(order)}, promise_{std::move(promise)} {}

SampleCall::~SampleCall() = default;

std::shared_ptr<SampleCall> SampleCall::self() {
    return std::static_pointer_cast<SampleCall>(shared_from_this());
}

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
    if (http().observed()) {
        http().tell(&Observer::on_attempt_start, event<AttemptStartEvent>());
    }
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
    return dispatched_ ? &dispatched_->permits : nullptr;
}

void SampleCall::hold() {
    if (!dispatched_) dispatched_ = std::make_unique<Dispatched>(*this);
    dispatched_->permits.count = Permit{core().count()};
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
                if (!encode()) return enter_stage(Stage::encoding);
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

bool SampleCall::encode() {
    auto const members = core().members();
    if (tail_ && tail_members_ == members) return true;
    tail_members_ = members;
    bool const stability = sampler_->record_stability_info();
    if (order_.prompt_bytes <= encode_on_loop_bytes) {
        tail_ = encode_tail(order_, stability, members);
        return true;
    }
    // The order is left alone until the tail comes back: the call keeps both alive.
    http().runtime().run_callback(
        [call = self(), stability, members] {
            auto tail = encode_tail(call->order_, stability, members);
            auto& scheduler = call->scheduler();
            scheduler.post(
                [call, tail = std::move(tail)]() mutable { call->encoded(std::move(tail)); });
        },
        [call = self()](Error error) { call->not_done(error); });
    return false;
}

void SampleCall::encoded(std::shared_ptr<std::string const> tail) {
    if (!under_way() || !dispatch_.encodes()) return;
    tail_ = std::move(tail);
    advance();
}

void SampleCall::submit() {
    if (auto const refusal = before_repeat()) return attempt_failed(named(*refusal));
    auto order = core().submit_order();
    if (auto const& metadata = order_.call().metadata; !metadata.empty()) {
        auto own = *order;
        own.metadata = metadata;
        order = std::make_shared<HttpOrder const>(std::move(own));
    }
    HttpParcel parcel;
    parcel.headers = order_.headers();
    parcel.body.head =
        std::make_shared<std::string const>(wire::encode_sample_head(sampler_->id(), seq_id_));
    parcel.body.tail = tail_;
    dispatched_->submit_started = scheduler().now();
    if (dispatched_->stalled_since == TimePoint{}) {
        dispatched_->stalled_since = dispatched_->submit_started;
    }
    dispatched_->new_submit(core().context())
        .start(std::move(order), std::move(parcel),
               retries() ? Repeat::sample_submit : Repeat::once);
    enter_stage(Stage::submitting);
}

std::optional<CircuitBreaker> const& SampleCall::breaker() const noexcept {
    auto const& own = order_.call().circuit_breaker;
    return own ? own : sampler_->plan().breaker;
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

void SampleCall::submitted(HttpResponse const& response) {
    // By the attempt that was accepted: the loop around it may have begun before the refusal.
    core().gate().accepted(dispatched_->submit()->sent_at());
    auto answer = wire::decode_submitted(response.body);
    if (!answer) return attempt_failed(named(answer.error()));
    if (answer->result.empty()) return accepted(*std::move(answer));
    // Some servers answer at once (R-SAMP-03).
    auto const keep_alive = shared_from_this();
    auto inlined = wire::decode_sample_json(answer->result);
    release_permits();
    if (under_way()) decoded(std::move(inlined), false);
}

void SampleCall::submit_failed(Error const& error) {
    auto const status = error.http_status().value_or(0);
    if (status == 429 || status == 402) return refused(error);
    bool const stability = sampler_->record_stability_info();
    if (status == 422 && tail_members_ == wire::Members::newest && names_new_member(error.body())) {
        if (fits_old_members(order_.settings->options, stability)) {
            core().only_old_members();
            --requests_;  // it is made again for another reason than a failure
            guard_.failed(error);
            dispatched_->drop_request();
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
void SampleCall::refused(Error const& error) {
    auto const now = scheduler().now();
    auto const took = requests_ > 1 ? now - dispatched_->submit()->sent_at() : nanoseconds::zero();
    bool const billing = error.http_status() == 402;
    if (billing) {
        auto const verdict = core().context().billing().on_402(now, error.what());
        if (!verdict.line.empty()) http().log(verdict.level, verdict.line);
        if (!verdict.pause || !retries()) return attempt_failed(named(error));
    } else if (auto const report = wire::decode_queue_report(error.body())) {
        queue_reported(report->state, report->reason);
    }
    nanoseconds duration = order_.prompt_bytes <= small_prompt_bytes
                               ? nanoseconds{small_prompt_backoff}
                               : nanoseconds{large_prompt_backoff};
    if (!billing) duration = backoff_hint(error, scheduler().wall()).value_or(duration);
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
    dispatched_->drop_request();
    dispatch_.pass_gate_again();
    why_ = std::make_unique<std::string const>(error.what());
    if (billing) enter_stage(Stage::billing_pause, *why_);
    advance();
}

void SampleCall::accepted(wire::Submitted submitted) {
    dispatched_->request_id = std::move(submitted.request_id);
    dispatched_->stalled_since = {};
    if (submitted.sample_sequence_ids) {
        dispatched_->sequence_ids = std::make_unique<std::vector<std::string> const>(
            *std::move(submitted.sample_sequence_ids));
    }
    dispatched_->drop_request();
    tail_.reset();  // made again for another attempt, which few need
    auto const keep_alive = shared_from_this();
    release_permits();  // which lets others go on
    if (!under_way()) return;
    if (auto* const completions = sampler_->completions()) {
        enter_stage(Stage::waiting_for_completion);
        return completions->wait(dispatched_->new_completion(), dispatched_->request_id);
    }
    poll(0);
}

void SampleCall::completed(Completed completed) { poll(completed.payload_bytes); }

void SampleCall::poll(std::int64_t known_bytes) {
    ResultOrder order;
    order.request_id = dispatched_->request_id;
    order.request_type = "Sample";
    order.protobuf_wanted = true;
    order.submit_roundtrip = scheduler().now() - dispatched_->submit_started;
    order.known_payload_bytes = known_bytes;
    if (order_.extras) {
        order.extras = std::make_shared<RequestExtras const>(
            RequestExtras{.headers = order_.headers(), .metadata = order_.call().metadata});
    }
    auto& future = dispatched_->new_poll(core().results());
    future.start(std::move(order));
    enter_stage(Stage::polling);
}

void SampleCall::queue_reported(QueueState state, std::string const& reason) {
    QueueStateEvent told;
    told.state = state;
    told.reason = reason;
    told.request_id = dispatched_->request_id;
    told.request_type = "Sample";
    told.owner_id = sampler_->id();
    auto now = std::make_unique<QueueStanding const>(QueueStanding{state, reason});
    told.changed = !dispatched_->queue || *dispatched_->queue != *now;
    told.metadata = sampler_->metadata(order_.call().metadata);
    dispatched_->queue = std::move(now);
    sampler_->reporter().tell(http(), order_.call(), std::move(told));
}

void SampleCall::retrieved(RetrievedResult result) {
    if (auto* const completions = sampler_->completions()) completions->retrieved(request_id());
    decode(std::move(result));
}

void SampleCall::decode(RetrievedResult result) {
    if (result.size <= (result.protobuf ? decode_on_loop_bytes : decode_json_on_loop_bytes)) {
        auto response = decode_body(result.view(), result.protobuf);
        http().give_text(std::move(result.body));
        return decoded(std::move(response), result.protobuf);
    }
    dispatched_->drop_request();
    enter_stage(Stage::decoding);
    http().runtime().run_callback(
        [call = self(), result = std::move(result)] {
            auto response = decode_body(result.view(), result.protobuf);
            auto& scheduler = call->scheduler();
            scheduler.post(
                [call, response = std::move(response), protobuf = result.protobuf]() mutable {
                    if (call->under_way()) call->decoded(std::move(response), protobuf);
                });
        },
        [call = self()](Error error) { call->not_done(error); });
}

/// What was to be written or read elsewhere was not.
void SampleCall::not_done(Error const& error) {
    if (under_way()) attempt_failed(named(error));
}

void SampleCall::decoded(Result<SampleResponse> response, bool protobuf) {
    if (response) {
        auto const length = order_.prompt_length;
        auto completed =
            wire::complete_sample(*std::move(response), dispatched_->sequence_ids.get(),
                                  length < 0 ? std::nullopt : std::optional{length},
                                  order_.settings->options, sampler_->record_stability_info());
        if (completed) {
            sampler_->warn_unanswered(completed->unanswered);
            response = std::move(completed->response);
        } else {
            response = completed.error();
        }
    }
    if (!response) {
        sampler_->report_undecodable(response.error(), request_id(), protobuf);
        return attempt_failed(named(response.error()));
    }
    guard_.succeeded();
    if (http().observed()) {
        auto told = event<AttemptStopEvent>();
        told.duration = scheduler().now() - attempt_started_;
        http().tell(&Observer::on_attempt_stop, std::move(told));
    }
    end(*std::move(response));
}

void SampleCall::attempt_failed(Error error) {
    auto const keep_alive = shared_from_this();
    guard_.failed(error);
    if (auto* const completions = sampler_->completions(); completions != nullptr && dispatched_ &&
                                                           dispatched_->poll() != nullptr &&
                                                           !request_id().empty()) {
        completions->retrieved(request_id());
    }
    drop_attempt();
    release_permits();
    if (!under_way()) return;
    if (bypass_handler_ || !retries()) {
        if (auto const denied = std::move(denied_)) error = Error{with_note(error, *denied)};
        if (http().observed()) {
            auto told = event<AttemptFailedEvent>();
            told.error = error;
            http().tell(&Observer::on_attempt_failed, std::move(told));
        }
        return end(std::move(error));
    }
    handler()->count(error);
    auto const verdict = judge(error);
    report_attempt(error, verdict.retry);
    if (!verdict.retry) {
        if (http().observed()) {
            auto told = event<AttemptFailedEvent>();
            told.error = error;
            http().tell(&Observer::on_attempt_failed, std::move(told));
        }
        // The caller is told by the future.
        http().log(LogLevel::debug,
                   std::string{order_.operation} + " failed for good: " + error.what());
        return end(Error{with_note(error, verdict)});
    }
    if (http().observed()) {
        auto told = event<AttemptRetryEvent>();
        told.error = error;
        told.delay = verdict.delay;
        http().tell(&Observer::on_attempt_retry, std::move(told));
    }
    if (http().logs(LogLevel::debug)) {
        http().log(LogLevel::debug, std::string{order_.operation} + ": attempt " +
                                        std::to_string(attempt_) +
                                        " failed and is made again: " + error.what());
    }
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
         .stopped = RetryEnd::permanent,
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
    if (!dispatched_) return false;
    if (auto const* const call = dispatched_->submit()) return call->waits_for_service();
    if (auto const* const poll = dispatched_->poll()) return poll->failing();
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
    if (dispatched_) dispatched_->permits.release();
}

void SampleCall::drop_attempt() noexcept {
    scheduler().disarm(*this);
    if (!waits()) permit_waiter().stop_waiting();  // for a permit of dispatch
    if (!dispatched_) return;
    dispatched_->drop_request();
    dispatched_->request_id.clear();
    dispatched_->sequence_ids.reset();
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
    dispatched_.reset();
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

/// R-RETRY-40.
void SampleCall::report_attempt(Error const& error, bool retry) const {
    auto* const telemetry = core().context().telemetry();
    if (telemetry == nullptr) return;
    auto const user = find_user_error(error).has_value();
    boost::json::object data;
    data["func"] = std::string{order_.operation};
    data["exception"] = error.what();
    data["exception_type"] = std::string{error_type(error)};
    data["exception_stack"] = error_stack(order_.operation, static_cast<int>(requests_), error);
    if (error.http_status()) {
        data["status_code"] = *error.http_status();
    } else {
        data["status_code"] = nullptr;
    }
    data["should_retry"] = retry;
    data["is_user_error"] = user;
    data["attempt_count"] = attempt_;
    auto const wall = [&](TimePoint point) {
        auto const at = scheduler().wall() - (scheduler().now() - point);
        return std::chrono::duration<double>{at.time_since_epoch()}.count();
    };
    auto const now = scheduler().now();
    data["start_time"] = wall(started());
    data["current_time"] = wall(now);
    data["elapsed_time"] = std::chrono::duration<double>{now - started()}.count();
    telemetry->event("RetryHandler.execute.exception",
                     retry || user ? Severity::warning : Severity::error, std::move(data));
}

template <class Event>
Event SampleCall::event() const {
    Event event;
    event.id = id();
    event.operation = order_.operation;
    event.attempt = attempt_;
    event.metadata = sampler_->metadata(order_.call().metadata);
    return event;
}

}  // namespace tinkxx::service
