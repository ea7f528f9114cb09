#include "service/auth/token_exchange.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/http/standard_headers.hpp"
#include "wire/session/jwt.hpp"
#include "wire/session/service_messages.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

namespace {

ErrorDetails invalid(Error const& error) {
    auto details = error.details();
    details.message = with_operation("POST " + std::string{TokenExchange::path}, details.message);
    return details;
}

}  // namespace

TokenExchange::TokenExchange(HttpContext& context, std::shared_ptr<CredentialSource> raw)
    : context_{&context}, raw_{std::move(raw)}, call_{context, *this} {}

TokenExchange::~TokenExchange() { stop(); }

std::optional<Result<Credential>> TokenExchange::get(CredentialWaiter& waiter) {
    TINKXX_ASSERT_LOOP(context_->scheduler());
    if (token_ && (stopped_ || clock_.fresh(context_->scheduler().wall()))) {
        return Result<Credential>{token_};
    }
    if (stopped_) {
        return Result<Credential>{ErrorDetails{.kind = ErrorKind::cancelled,
                                               .message = "the client was closed before it had a "
                                                          "token",
                                               .stopped = RetryEnd::cancelled}};
    }
    waiters_.push(waiter);
    if (!exchanging_) begin(false);
    return std::nullopt;
}

void TokenExchange::forget(CredentialWaiter& waiter) noexcept { waiters_.forget(waiter); }

CredentialStanding TokenExchange::standing() const {
    if (!call_.under_way()) return raw_->standing();
    CredentialStanding standing{.why = "a token is being asked for"};
    if (auto const at = call_.retry_at()) {
        auto const left = std::max(*at - context_->scheduler().now(), std::chrono::nanoseconds{0});
        standing.why = "a token will be asked for again in " +
                       seconds_text(std::chrono::ceil<std::chrono::milliseconds>(left)) +
                       " s; last: " + std::string{call_.retry_reason()};
    }
    return standing;
}

void TokenExchange::begin(bool background) {
    exchanging_ = true;
    background_ = background;
    auto raw = raw_->get(*this);
    if (!raw) return;
    if (*raw) return send(**raw);
    // Told from the loop: whoever asks is not ready for an answer.
    error_ = raw->error();
    context_->scheduler().arm(failure_, context_->scheduler().now(), Precision::exact);
}

void TokenExchange::on_credential(Result<Credential> credential) {
    if (credential) return send(*credential);
    failed(credential.error());
}

void TokenExchange::send(Credential const& credential) {
    auto const& config = context_->config();
    HttpOrder order;
    order.operation = {.method = "POST", .path = std::string{path}};
    order.url = config.url(path);
    order.common_headers = context_->json_headers();
    order.body.tail = std::make_shared<std::string const>(wire::encode_auth_token_request());
    order.purpose = Purpose::auth;
    order.timeouts = config.timeouts;
    order.max_retries = config.max_retries;
    order.send_credential = false;  // it would be this token
    if (credential && !order.common_headers->contains("x-api-key")) {
        order.headers.add("X-API-Key", *credential);
    }
    call_.start(std::move(order));
}

void TokenExchange::on_response(HttpResponse response) {
    auto jwt = wire::decode_auth_token(response.body);
    if (!jwt) return failed(Error{invalid(jwt.error())});
    bool const fits = !jwt->empty() && std::ranges::all_of(*jwt, [](char c) {
        auto const byte = static_cast<unsigned char>(c);
        return byte > 0x20 && byte < 0x7f;
    });
    if (!fits) {
        return failed(Error{{.kind = ErrorKind::validation,
                             .message = "POST " + std::string{path} +
                                        ": the token in the answer is no JSON web token",
                             .field = "/jwt"}});
    }
    exchanging_ = false;
    auto& scheduler = context_->scheduler();
    auto const claims = wire::decode_jwt(*jwt);
    token_ = std::make_shared<std::string const>(std::move(*jwt));
    auto const wait = clock_.on_token(claims ? claims->exp : std::nullopt, scheduler.wall());
    scheduler.arm(renewal_, scheduler.now() + wait, Precision::coarse);
    waiters_.tell(token_);
}

void TokenExchange::on_error(Error error) { failed(std::move(error)); }

void TokenExchange::tell_failure() { failed(std::move(*std::exchange(error_, std::nullopt))); }

void TokenExchange::failed(Error error) {
    exchanging_ = false;
    auto& scheduler = context_->scheduler();
    if (token_) {
        if (!renewal_.armed()) {
            scheduler.arm(renewal_, scheduler.now() + clock_.on_failure(), Precision::coarse);
        }
        context_->log(
            background_ && waiters_.empty() ? LogLevel::debug : LogLevel::warning,
            std::string{"the token could not be renewed and is used as it is: "} + error.what());
        return waiters_.tell(token_);
    }
    waiters_.tell(std::move(error));
}

void TokenExchange::renew() {
    if (exchanging_) return;  // somebody who needs it is at it, and arms this anew
    auto& scheduler = context_->scheduler();
    if (auto const left = clock_.due_in(scheduler.wall()); left > left.zero()) {
        return scheduler.arm(renewal_, scheduler.now() + left, Precision::coarse);
    }
    begin(true);
}

void TokenExchange::stop() noexcept {
    if (std::exchange(stopped_, true)) return;
    context_->scheduler().disarm(renewal_);
    context_->scheduler().disarm(failure_);
    raw_->forget(*this);
    call_.cancel();
    if (std::exchange(exchanging_, false)) {
        if (token_) return waiters_.tell(token_);
        waiters_.tell(ErrorDetails{.kind = ErrorKind::cancelled,
                                   .message = "the client was closed before it had a token",
                                   .stopped = RetryEnd::cancelled});
    }
}

}  // namespace tinkxx::service
