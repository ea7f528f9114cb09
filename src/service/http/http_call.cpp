#include "service/http/http_call.hpp"

#include "base/common/prefetch.hpp"
#include "base/loop/loop_rule.hpp"
#include "service/http/standard_headers.hpp"
#include "transport/start_failure.hpp"

#include <tinkxx/redaction.hpp>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <utility>

namespace tinkxx::service {

namespace {

// A Content-Length is only a promise: never set aside more than this on its word.
constexpr std::uint64_t most_reserved = std::uint64_t{1} << 20U;

// The read timeout, the number of the attempt and the credential.
constexpr std::size_t lines_per_attempt = 3;

std::size_t announced_bytes(Headers const& headers) noexcept {
    auto const* text = headers.find("content-length");
    std::uint64_t bytes = 0;
    if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), bytes);
    return static_cast<std::size_t>(std::min(bytes, most_reserved));
}

bool is_plain_read(std::string_view method) noexcept { return method == "GET" || method == "HEAD"; }

}  // namespace

template <class Event>
Event HttpCall::event() const {
    Event event;
    event.method = order_->operation.method;
    event.path = order_->operation.path;
    event.purpose = order_->purpose;
    event.base_url = context_->config().endpoint.base_url();
    event.metadata = order_->metadata;
    event.metadata.insert(context_->config().metadata.begin(), context_->config().metadata.end());
    return event;
}

HttpCall::~HttpCall() { cancel(); }

bool HttpCall::in_doubt() const noexcept {
    return in_doubt_ || (call_.id != 0 && context_->transport().seen(call_) == Seen::maybe);
}

std::shared_ptr<Headers const> const& HttpCall::common_headers() const noexcept {
    return order_->common_headers ? order_->common_headers : context_->headers();
}

void HttpCall::start(HttpOrder order) {
    HttpParcel parcel{.headers = std::move(order.headers), .body = std::move(order.body)};
    start(std::make_shared<HttpOrder const>(std::move(order)), std::move(parcel));
}

void HttpCall::start(std::shared_ptr<HttpOrder const> order, HttpParcel parcel) {
    TINKXX_ASSERT_LOOP(context_->scheduler());
    assert(state_ == State::idle);
    order_ = std::move(order);
    parcel_ = std::move(parcel);
    retry_.emplace(HttpRetry::Rules{.max_retries = order_->max_retries,
                                    .fail_on_status = order_->fail_on_status,
                                    .redirect_answers = order_->redirect_answers,
                                    .purpose = order_->purpose,
                                    .plain_500_ends = order_->plain_500_ends,
                                    .repeat_if_seen = order_->repeat_if_seen},
                   order_->operation, context_->rejections());
    delivered_ = false;
    paused_ = false;
    started_ = context_->scheduler().now();
    state_ = State::beginning;
    if (!context_->usable()) {
        return refuse(Error{{.kind = ErrorKind::cancelled,
                             .message = order_->operation.name() + ": the client is closed",
                             .stopped = RetryEnd::cancelled}});
    }
    context_->calls_.push_back(*this);
    auto& lines = parcel_.headers;
    has_secrets_ =
        std::ranges::any_of(lines, [](Header const& line) { return is_secret_header(line.name); });
    auto const& key = order_->idempotency_key;
    if (key ? !key->empty()
            : !is_plain_read(order_->operation.method) && !lines.contains("x-idempotency-key")) {
        lines.reserve(lines.size() + 1);
        lines.set("X-Idempotency-Key", key ? *key : context_->new_idempotency_key());
    }
    if (context_->observed()) {
        context_->tell(&Observer::on_http_start, event<HttpStartEvent>());
    }
    attempt();
}

void HttpCall::attempt() {
    if (!order_->send_credential || common_headers()->contains("x-api-key") ||
        parcel_.headers.contains("x-api-key")) {
        return send(nullptr);
    }
    state_ = State::credential;
    auto credential = context_->credentials().get(*this);
    if (!credential) return listener_->on_standing();
    if (*credential) return send(**credential);
    refuse(credential->error());
}

void HttpCall::refuse(Error error) {
    // Told from the loop: the caller of `start` is not ready for an answer.
    state_ = State::beginning;
    trouble().refusal = std::move(error);
    context_->scheduler().arm(trouble(), context_->scheduler().now(), Precision::exact);
}

void HttpCall::on_credential(Result<Credential> credential) {
    if (!credential) return fail(credential.error().details());
    send(*credential);
    listener_->on_standing();
}

void HttpCall::send(Credential const& credential) {
    credential_ = credential;
    Request request;
    request.method = order_->operation.method;
    request.url = order_->url;
    if (retry_->retries() >= order_->max_retries && !has_secrets_) {
        request.headers = std::move(parcel_.headers);  // nobody needs them any more
    } else {
        request.headers.reserve(parcel_.headers.size() + lines_per_attempt);
        for (auto const& line : parcel_.headers) request.headers.add(line.name, line.value);
    }
    if (retry_->retries() == 0) {
        request.common_headers =
            context_->first_attempt_headers(common_headers(), order_->timeouts.read, credential);
    } else {
        request.common_headers = common_headers();
        add_attempt_lines(request.headers, order_->timeouts.read, retry_->retries(), credential);
    }
    request.body = parcel_.body;
    request.purpose = order_->purpose;
    request.timeouts = order_->timeouts;
    request.redirects = order_->redirects;
    request.max_response_bytes = order_->max_response_bytes;
    if (context_->dumps()) context_->dump(order_->operation, request, scrubber());
    answer_.reset();
    state_ = State::sending;
    sent_at_ = context_->scheduler().now();
    try {
        call_ = context_->transport().start(std::move(request), *this);
    } catch (...) {
        // Told from the loop, as by any other transport.
        trouble().thrown = base::start_failure();
        in_doubt_ = true;
        return context_->scheduler().arm(trouble(), sent_at_, Precision::exact);
    }
    if (paused_) context_->transport().pause(call_, true);
}

void HttpCall::on_head(Head head) {
    listener_->on_coming();
    // It will leave those it is among.
    if (links.previous != nullptr) base::prefetch(&links.previous->links, 1);
    if (links.next != nullptr) base::prefetch(&links.next->links, 1);
    auto& [got, body] = answer();
    got = std::move(head);
    // A server that falls over what it cannot read may close the connection after its answer,
    // without saying so; what follows must not go there, since nobody would know whether it was
    // seen.
    bool const fell_over = order_->plain_500_ends && is_plain_500(got.status, got.headers);
    if (fell_over || HttpRetry::is_rejection(got.status, got.headers)) {
        context_->transport().discard(call_);
    }
    if (!order_->stream || !is_success(got.status)) {
        body = context_->take_text(announced_bytes(got.headers));
    }
}

void HttpCall::on_data(std::span<char const> data) {
    auto& [head, body] = answer();
    if (order_->stream && is_success(head.status)) {
        delivered_ = true;
        return listener_->on_body(data);
    }
    body.append(data.data(), data.size());
}

void HttpCall::on_done(Timing const& timing) {
    call_ = {};
    auto const& [head, body] = answer();
    if (context_->dumps()) context_->dump(order_->operation, head, body, scrubber());
    auto const now = context_->scheduler().wall();
    // A gateway answers so for servers that did act. A refusal says nothing of earlier attempts;
    // neither does a server that cannot read the request.
    bool const unread = order_->plain_500_ends && is_plain_500(head.status, head.headers);
    in_doubt_ = in_doubt_ || head.status == 408 || (head.status >= 500 && !unread);
    if (is_success(head.status)) {
        return follow(retry_->on_reply(head, body, now, 0, context_->config().scrubber), timing);
    }
    follow(retry_->on_reply(head, body, now, context_->chance(), scrubber()), timing);
}

void HttpCall::on_failure(Failure failure) {
    call_ = {};
    in_doubt_ = in_doubt_ || failure.seen == Seen::maybe;
    auto const timing = failure.timing;
    answer_.reset();
    follow(retry_->on_failure(failure, delivered_, context_->chance(), scrubber()), timing);
}

void HttpCall::follow(HttpRetry::Action action, Timing const& timing) {
    if (auto* again = std::get_if<HttpRetry::Retry>(&action)) {
        auto& scheduler = context_->scheduler();
        bool const repeated = retry_->retries() > 1;
        Error const error{again->error};
        if (!listener_->may_repeat(error, {.wait = again->delay,
                                           .took = repeated ? scheduler.now() - sent_at_
                                                            : std::chrono::nanoseconds{0}})) {
            return fail(retry_->given_up(std::move(again->error)));
        }
        if (context_->observed()) {
            auto told = event<HttpRetryEvent>();
            told.retry_count = retry_->retries();
            told.delay = again->delay;
            told.reason = error.what();
            context_->tell(&Observer::on_http_retry, std::move(told));
        }
        if (context_->logs(LogLevel::info)) {
            auto const ms = std::chrono::ceil<std::chrono::milliseconds>(again->delay);
            context_->log(LogLevel::info, std::string{error.what()} + "; retry " +
                                              std::to_string(retry_->retries()) + " in " +
                                              seconds_text(ms) + " s");
        }
        answer_.reset();
        state_ = State::waiting;
        trouble().retry_at = scheduler.now() + again->delay;
        trouble().why = error.what();
        scheduler.arm(trouble(), trouble().retry_at, Precision::exact);
        listener_->on_standing();
    } else if (auto* failed = std::get_if<HttpRetry::Fail>(&action)) {
        if (answer_) context_->note_deprecation(order_->operation, answer_->head.headers);
        fail(std::move(failed->error));
    } else {
        context_->note_deprecation(order_->operation, answer().head.headers);
        deliver(timing);
    }
}

void HttpCall::deliver(Timing const& timing) {
    auto& [head, body] = answer();
    HttpResponse response;
    response.status = head.status;
    response.headers = std::move(head.headers);
    response.body = std::move(body);
    response.http_version = head.http_version;
    response.url = std::move(head.redirected_url);
    response.retries = retry_->retries();
    response.elapsed = context_->scheduler().now() - started_;
    response.timing = timing;
    if (context_->observed()) {
        auto told = event<HttpStopEvent>();
        told.status = response.status;
        told.retry_count = response.retries;
        told.duration = response.elapsed;
        context_->tell(&Observer::on_http_stop, std::move(told));
    }
    end();
    listener_->on_response(std::move(response));
}

void HttpCall::fail(ErrorDetails error) {
    if (context_->observed()) {
        auto const duration = context_->scheduler().now() - started_;
        if (answer_) {
            auto told = event<HttpStopEvent>();
            told.status = answer_->head.status;
            told.retry_count = retry_->retries();
            told.duration = duration;
            context_->tell(&Observer::on_http_stop, std::move(told));
        } else {
            auto told = event<HttpExceptionEvent>();
            told.error = Error{error};
            told.retry_count = retry_->retries();
            told.duration = duration;
            context_->tell(&Observer::on_http_exception, std::move(told));
        }
    }
    end();
    listener_->on_error(Error{std::move(error)});
}

void HttpCall::on_time() {
    if (trouble_->thrown) return on_failure(*std::exchange(trouble_->thrown, std::nullopt));
    if (state_ == State::waiting) {
        if (auto const refusal = listener_->before_repeat()) return fail(refusal->details());
        attempt();
        return listener_->on_standing();
    }
    fail(trouble_->refusal->details());
}

void HttpCall::shut(ErrorDetails error) {
    if (call_.id != 0) context_->transport().cancel(std::exchange(call_, {}));
    if (state_ == State::credential) context_->credentials().forget(*this);
    answer_.reset();
    fail(std::move(error));
}

void HttpCall::cancel() noexcept {
    if (state_ == State::idle) return;
    if (call_.id != 0) context_->transport().cancel(std::exchange(call_, {}));
    if (state_ == State::credential) context_->credentials().forget(*this);
    if (context_->observed()) {
        auto told = event<HttpExceptionEvent>();
        told.error = Error{{.kind = ErrorKind::cancelled,
                            .message = order_->operation.name() + ": cancelled",
                            .stopped = RetryEnd::cancelled}};
        told.retry_count = retry_->retries();
        told.duration = context_->scheduler().now() - started_;
        context_->tell(&Observer::on_http_exception, std::move(told));
    }
    end();
}

void HttpCall::end() noexcept {
    if (links.linked()) context_->calls_.erase(*this);
    state_ = State::idle;
    trouble_.reset();
    credential_.reset();
    order_.reset();
    parcel_ = {};
    answer_.reset();
}

void HttpCall::pause(bool on) noexcept {
    TINKXX_ASSERT_LOOP(context_->scheduler());
    paused_ = on;
    if (call_.id != 0) context_->transport().pause(call_, on);
}

Scrubber HttpCall::scrubber() const {
    auto all = context_->config().scrubber;
    all.add_secrets_of(parcel_.headers);
    if (credential_) all.add(*credential_);
    if (!order_->secret.empty()) all.add(order_->secret);
    return all;
}

}  // namespace tinkxx::service
