#include "service/http/http_retry.hpp"

#include "service/text/retry_after.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace tinkxx::service {

bool RejectionBudget::take(Purpose purpose) noexcept {
    auto& left = left_[static_cast<std::size_t>(purpose)];
    if (left == 0) return false;
    --left;
    return true;
}

void RejectionBudget::restore(Purpose purpose) noexcept {
    auto& left = left_[static_cast<std::size_t>(purpose)];
    left = std::min(left + 1, full);
}

int RejectionBudget::left(Purpose purpose) const noexcept {
    return left_[static_cast<std::size_t>(purpose)];
}

bool HttpRetry::retries_status(int status, Headers const& headers) noexcept {
    if (auto const* wish = headers.find("x-should-retry")) {
        if (*wish == "true") return true;
        if (*wish == "false") return false;
    }
    return is_passing(status);
}

bool HttpRetry::retries_failure(Failure const& failure) noexcept {
    auto const kind = failure.kind;
    // An answer that is too large will be as large the next time.
    return !failure.permanent && kind != FailureKind::invalid_request &&
           kind != FailureKind::closed && kind != FailureKind::too_large;
}

std::chrono::nanoseconds HttpRetry::backoff(int retries_taken, double chance) noexcept {
    auto const seconds = std::min(std::ldexp(0.5, std::clamp(retries_taken, 0, 1000)), 10.0);
    return std::chrono::nanoseconds{std::llround(seconds * (1.0 - 0.25 * chance) * 1e9)};
}

bool HttpRetry::is_rejection(int status, Headers const& headers) noexcept {
    if (status != 400) return false;
    auto const* length = headers.find("content-length");
    if (length == nullptr) return true;
    std::uint64_t bytes = 0;
    auto const [end, error] =
        std::from_chars(length->data(), length->data() + length->size(), bytes);
    return error == std::errc{} && end == length->data() + length->size() && bytes == 0;
}

HttpRetry::Action HttpRetry::on_reply(Head const& head, std::string_view body, WallTime now,
                                      double chance, Scrubber const& scrubber) {
    if (is_success(head.status)) {
        budget_->restore(rules_.purpose);
        return Deliver{};
    }
    if (rules_.redirect_answers && head.status >= 300 && head.status < 400) return Deliver{};
    // On a new connection the submit loop may be luckier; this layer does not try (R-RETRY-75).
    if (is_rejection(head.status, head.headers) && budget_->take(rules_.purpose)) {
        return give_up(RetryEnd::attempts_spent, rejection_error(*operation_));
    }
    bool const retry = retries_status(head.status, head.headers);
    if (!rules_.fail_on_status && (!retry || retries_ >= rules_.max_retries)) return Deliver{};
    auto const hint = retry_after(head.headers, now, longest_retry_after);
    auto error = status_error(*operation_, head, body, now, scrubber);
    error.retryable = retry;
    if (rules_.plain_500_ends && is_plain_500(head.status, head.headers)) {
        return give_up(RetryEnd::not_repeatable, std::move(error));
    }
    bool const refused = head.status == 409 || head.status == 429;
    if (retry && !rules_.repeat_if_seen && !refused) return maybe_applied(std::move(error));
    return again_or_fail(retry, hint.value_or(backoff(retries_, chance)), std::move(error));
}

HttpRetry::Action HttpRetry::on_failure(Failure const& failure, bool delivered, double chance,
                                        Scrubber const& scrubber) {
    auto error = failure_error(*operation_, failure, scrubber);
    bool const retry = retries_failure(failure);
    if (delivered && retry) {
        error.stopped = RetryEnd::not_repeatable;
        error.attempts = retries_ + 1;
        error.message += "; not repeated, since part of the answer was delivered";
        return Fail{std::move(error)};
    }
    if (retry && !rules_.repeat_if_seen && failure.seen == Seen::maybe) {
        return maybe_applied(std::move(error));
    }
    return again_or_fail(retry, backoff(retries_, chance), std::move(error));
}

HttpRetry::Fail HttpRetry::maybe_applied(ErrorDetails error) const {
    error.message +=
        "; not repeated, since the step may have been applied and this server would apply it "
        "again (ClientOptions::repeat_steps)";
    return give_up(RetryEnd::not_repeatable, std::move(error));
}

HttpRetry::Action HttpRetry::again_or_fail(bool retry, std::chrono::nanoseconds delay,
                                           ErrorDetails error) {
    if (retry && retries_ < rules_.max_retries) {
        ++retries_;
        return Retry{.delay = delay, .error = std::move(error)};
    }
    return give_up(retry ? RetryEnd::attempts_spent : RetryEnd::permanent, std::move(error));
}

ErrorDetails HttpRetry::given_up(ErrorDetails error) {
    --retries_;  // it is not made
    return give_up(RetryEnd::attempts_spent, std::move(error)).error;
}

HttpRetry::Fail HttpRetry::give_up(RetryEnd why, ErrorDetails error) const {
    error.attempts = retries_ + 1;
    error.stopped = why;
    if (retries_ > 0) {
        error.message += "; gave up after " + std::to_string(error.attempts) + " attempts";
    }
    return Fail{std::move(error)};
}

}  // namespace tinkxx::service
