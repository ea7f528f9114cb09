#include "service/requests/submit_retry.hpp"

#include "service/requests/billing_pause.hpp"

#include <algorithm>

namespace tinkxx::service {

bool repeats_submit(Error const& error) noexcept {
    if (error.stopped() == RetryEnd::not_repeatable) return false;
    switch (error.kind()) {
        case ErrorKind::timeout:
        case ErrorKind::connection:
            return error.retryable();
        case ErrorKind::status: {
            // By the status alone: what `x-should-retry` says is for repeats of the HTTP call.
            auto const status = error.http_status().value_or(0);
            return status == 408 || status == 409 || status == 429 ||
                   (status >= 500 && status < 600);
        }
        default:
            return false;
    }
}

SubmitRetry::Action SubmitRetry::on_error(Error const& error, TimePoint now) noexcept {
    auto const taken = attempts_++;
    if (!repeats_submit(error)) return Fail{};
    auto const left = budget - elapsed(now);
    if (left <= std::chrono::nanoseconds::zero()) return Fail{.out_of_time = true};
    std::chrono::nanoseconds const step =
        taken < 5 ? std::chrono::seconds{1 << taken} : longest_wait;
    auto const delay = std::min(step, left);
    attempt_started_ = now + delay;
    return Wait{delay};
}

SubmitRetry::Wait SubmitRetry::on_billing_pause(TimePoint now) noexcept {
    auto const resumed = now + BillingPause::step;
    paused_ += resumed - attempt_started_;
    attempt_started_ = resumed;
    return {BillingPause::step};
}

}  // namespace tinkxx::service
