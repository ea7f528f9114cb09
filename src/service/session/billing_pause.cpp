#include "service/session/billing_pause.hpp"

namespace tinkxx::service {

namespace {

std::string seconds_of(std::chrono::nanoseconds time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

BillingPause::Verdict BillingPause::on_402(TimePoint now, std::string_view detail) {
    if (logged_ && now - *logged_ > memory) {
        first_.reset();
        logged_.reset();
    }
    if (first_ && now - *first_ > limit_) {
        return {.pause = false,
                .level = LogLevel::error,
                .line = "the service has refused requests for billing reasons (402) for " +
                        seconds_of(now - *first_) + ", longer than the " + seconds_of(limit_) +
                        " that are waited out: " + std::string{detail}};
    }
    Verdict verdict{.pause = true};
    if (!first_) first_ = now;
    if (!logged_ || now - *logged_ >= between_warnings) {
        logged_ = now;
        verdict.line = "paused, since the service refuses requests for billing reasons (402): " +
                       std::string{detail} + "; it is asked again for up to " +
                       seconds_of(limit_ - (now - *first_));
    }
    return verdict;
}

}  // namespace tinkxx::service
