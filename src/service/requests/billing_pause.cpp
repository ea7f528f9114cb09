#include "service/requests/billing_pause.hpp"

#include "types/time_text.hpp"

namespace tinkxx::service {

BillingPause::Verdict BillingPause::on_402(TimePoint now, std::string_view detail) {
    if (logged_ && now - *logged_ > memory) {
        first_.reset();
        logged_.reset();
    }
    if (first_ && now - *first_ > limit_) {
        return {.pause = false,
                .level = LogLevel::error,
                .line = "the service has refused requests for billing reasons (402) for " +
                        types::whole_seconds(now - *first_) + ", longer than the " +
                        types::whole_seconds(limit_) +
                        " that are waited out: " + std::string{detail}};
    }
    Verdict verdict{.pause = true};
    if (!first_) first_ = now;
    if (!logged_ || now - *logged_ >= between_warnings) {
        logged_ = now;
        verdict.line = "paused, since the service refuses requests for billing reasons (402): " +
                       std::string{detail} + "; it is asked again for up to " +
                       types::whole_seconds(limit_ - (now - *first_));
    }
    return verdict;
}

}  // namespace tinkxx::service
