#include "service/passes/submission.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/results/standing.hpp"
#include "wire/sampling/sample.hpp"

#include <utility>

namespace tinkxx::service {

Submission::Submission(ClientCore& core, Listener& listener, std::size_t index,
                       std::shared_ptr<RequestExtras const> extras,
                       std::optional<CircuitBreaker> breaker)
    : core_{&core},
      listener_{&listener},
      index_{index},
      extras_{std::move(extras)},
      breaker_{std::move(breaker)} {}

Submission::~Submission() { core_->scheduler().disarm(refused_); }

void Submission::start(SubmitOrder const& order, Judgement judgement) {
    TINKXX_ASSERT_LOOP(core_->scheduler());
    permit_.release();
    // What is to be settled may be there, whether this comes to be sent or not.
    fate_ = result_wanted_ ? Fate::not_taken : Fate::unknown;
    order_ = order;
    judgement_ = judgement;
    request_type_ = order.request_type;
    protobuf_result_ = order.protobuf_result;
    refusal_ = BreakerGuard::refusal_while_open(breaker_);
    if (refusal_) return refuse_later();
    if (order.bytes > 0 && !core_->forward_backward_bytes().acquire(*this, order.bytes)) {
        return listener_->on_standing();
    }
    on_permit();
}

void Submission::settle(SubmitOrder const& order, Judgement judgement) {
    result_wanted_ = false;
    start(order, judgement);
}

Fate Submission::fate() const noexcept {
    auto const* const call = std::get_if<ServiceRequest>(&request_);
    if (call == nullptr) return fate_;
    if (!call->in_doubt()) return Fate::not_taken;
    return judgement_.repeat_if_seen ? Fate::unknown : Fate::taken;
}

/// What is known once the submit has failed for good.
Fate Submission::fate_after(Error const& error) const noexcept {
    auto const status = error.kind() == ErrorKind::status ? error.http_status().value_or(0) : 0;
    auto const* const call = std::get_if<ServiceRequest>(&request_);
    bool const again = !result_wanted_;
    if (!again && (call == nullptr || !call->in_doubt())) {
        // The number was used before. A save is refused so if its name exists.
        return status == 409 && order_.step ? Fate::taken : Fate::not_taken;
    }
    if (!judgement_.repeat_if_seen && call != nullptr && call->in_doubt()) return Fate::taken;
    // A server that falls over a request does so each time: asking again would hold up the rest.
    // One that was not asked again, since a circuit breaker opened, may have been unlucky once; and
    // what one says that cannot read the encoding says nothing of what came before.
    bool const unread = judgement_.plain_500_ends && error.stopped() == RetryEnd::not_repeatable;
    if ((status == 500 || status == 409) && !refusal_ && !unread) return Fate::taken;
    bool const refused = status == 400 || (status >= 404 && status < 500 && status != 408 &&
                                           status != 425 && status != 429);
    if (!refused || !again) return Fate::unknown;
    // Not all servers know a load again that they have taken; they refuse it as too late.
    return request_type_ == "LoadWeights" ? Fate::taken : Fate::not_taken;
}

void Submission::stop_waiting() noexcept {
    PermitWaiter::stop_waiting();
    auto* const poll = std::get_if<ResultPoll>(&request_);
    if (poll != nullptr && poll->doing() == PollStanding::Doing::download) poll->cancel();
}

void Submission::on_permit() {
    if (order_.bytes > 0) permit_ = Permit{core_->forward_backward_bytes(), order_.bytes};
    if (core_->ending()) return;  // the end comes to everyone in turn
    submit();
}

void Submission::submit() {
    refusal_ = guard_.enter(breaker_);
    if (refusal_) return refuse_later();
    auto& http = core_->http();
    HttpOrder order;
    order.operation = {
        .method = "POST", .path = std::string{order_.path}, .feature = std::string{order_.feature}};
    auto const& config = http.config();
    order.url = config.url(order_.path);
    order.common_headers = http.json_headers();
    if (order_.content_type != "application/json") {
        auto lines = *order.common_headers;
        lines.set("Content-Type", std::string{order_.content_type});
        order.common_headers = std::make_shared<Headers const>(std::move(lines));
    }
    order.headers = extras_->headers;
    if (!order_.content_encoding.empty()) {
        order.headers.add("Content-Encoding", std::string{order_.content_encoding});
    }
    order.body.tail = order_.body;
    order.purpose = Purpose::train;
    order.timeouts = config.timeouts;
    order.max_retries = order_.http_retries ? config.max_retries : 0;
    order.plain_500_ends = judgement_.plain_500_ends;
    order.repeat_if_seen = judgement_.repeat_if_seen;
    order.metadata = extras_->metadata;
    order.secret = order_.secret;
    started_ = core_->scheduler().now();
    ServiceRequest::Listener& listener = *this;
    request_.emplace<ServiceRequest>(core_->context(), listener)
        .start(std::move(order), order_.repeat);
    listener_->on_standing();
}

/// From the loop: the caller of `start` is not ready for an answer.
void Submission::refuse_later() noexcept {
    auto& scheduler = core_->scheduler();
    scheduler.arm(refused_, scheduler.now(), Precision::exact);
}

void Submission::refused() { listener_->on_refused(*this, *std::exchange(refusal_, {})); }

bool Submission::may_repeat(Error const& error, RepeatCost /*cost*/) {
    guard_.failed(error);
    refusal_ = BreakerGuard::refusal(breaker_);
    return !refusal_;
}

void Submission::out_of_time(Error const& error) noexcept {
    auto const* const call = std::get_if<ServiceRequest>(&request_);
    auto const* const poll = std::get_if<ResultPoll>(&request_);
    bool const silent = call != nullptr && call->waits_for_service();
    if (silent || (poll != nullptr && poll->failing())) guard_.failed(error);
}

void Submission::on_response(HttpResponse response) {
    fate_ = Fate::taken;
    auto submitted = wire::decode_submitted(response.body, order_.path);
    if (!submitted) {
        auto const& error = submitted.error();
        request_.emplace<std::monostate>();
        return listener_->on_refused(*this, error);
    }
    request_id_ = std::move(submitted->request_id);
    std::optional<RetrievedResult> inlined;
    if (!submitted->result.empty()) {  // some servers answer at once
        inlined.emplace();
        inlined->offset = static_cast<std::size_t>(submitted->result.data() - response.body.data());
        inlined->size = submitted->result.size();
        inlined->body = std::move(response.body);
    }
    request_.emplace<std::monostate>();
    order_ = {};
    permit_.release();
    if (!result_wanted_) return listener_->on_accepted(*this);
    if (!inlined) poll();
    if (inlined) guard_.succeeded();
    listener_->on_accepted(*this);
    if (inlined) listener_->on_result(*this, *std::move(inlined));
}

void Submission::on_error(Error error) {
    bool const accepted = std::holds_alternative<ResultPoll>(request_);
    if (!accepted) fate_ = fate_after(error);
    request_.emplace<std::monostate>();
    guard_.failed(error);
    if (auto const refusal = std::exchange(refusal_, {})) {
        error = BreakerGuard::stopped(*refusal, error);
    }
    if (accepted) return listener_->on_failed(*this, std::move(error));
    listener_->on_refused(*this, std::move(error));
}

void Submission::poll() {
    ResultOrder order;
    order.request_id = request_id_;
    order.request_type = request_type_;
    order.protobuf_wanted = protobuf_result_;
    order.submit_roundtrip = core_->scheduler().now() - started_;
    order.extras = extras_;
    ResultPoll::Listener& listener = *this;
    request_.emplace<ResultPoll>(core_->results(), listener).start(std::move(order));
}

void Submission::on_result(RetrievedResult result) {
    guard_.succeeded();
    request_.emplace<std::monostate>();
    listener_->on_result(*this, std::move(result));
}

void Submission::on_queue_state(QueueState state, std::string const& reason) {
    queue_state_ = state;
    queue_reason_ = reason;
    listener_->on_queue_state(*this, state, reason);
}

Stage Submission::stage() const noexcept {
    if (waits()) return Stage::waiting_for_bytes;
    if (auto const* call = std::get_if<ServiceRequest>(&request_)) return stage_of(call->doing());
    if (auto const* poll = std::get_if<ResultPoll>(&request_)) return stage_of(*poll);
    return Stage::decoding;
}

void Submission::describe(OperationStatus& status, TimePoint now) const {
    status.request_id = request_id_;
    status.queue_state = queue_state_;
    status.queue_reason = queue_reason_;
    if (waits()) {
        status.why =
            "other chunks are being submitted (ChunkLimits::bytes_in_flight); this one "
            "counts " +
            std::to_string(order_.bytes) + " bytes";
    } else if (auto const* call = std::get_if<ServiceRequest>(&request_)) {
        status.attempt = call->standing().attempt;
        service::describe(status, *call, now);
    } else if (auto const* poll = std::get_if<ResultPoll>(&request_)) {
        service::describe(status, *poll, core_->http(), now);
    }
}

}  // namespace tinkxx::service
