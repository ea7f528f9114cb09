#include "service/results/poll_backoff.hpp"

#include <algorithm>
#include <string>

namespace tinkxx::service {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

ErrorDetails problem(std::string field, std::string value, std::string const& rule) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.message = field + ": " + value + " is not allowed; " + rule;
    details.field = std::move(field);
    details.value = std::move(value);
    return details;
}

}  // namespace

std::optional<ErrorDetails> poll_backoff_problem(PollBackoff const& backoff) {
    if (auto const* exponential = std::get_if<ExponentialPollBackoff>(&backoff)) {
        if (exponential->initial <= milliseconds::zero()) {
            return problem("poll_backoff.initial",
                           std::to_string(exponential->initial.count()) + " ms",
                           "give a time above zero, or NoPollBackoff");
        }
        if (exponential->max < exponential->initial) {
            return problem("poll_backoff.max", std::to_string(exponential->max.count()) + " ms",
                           "give at least `initial`, which is " +
                               std::to_string(exponential->initial.count()) + " ms");
        }
    } else if (auto const* function = std::get_if<PollBackoffFunction>(&backoff)) {
        if (!*function) {
            return problem("poll_backoff", "an empty function", "give one, or NoPollBackoff");
        }
    }
    return std::nullopt;
}

nanoseconds poll_backoff_delay(PollBackoff const& backoff, std::int64_t iteration,
                               int repeats) noexcept {
    milliseconds delay{0};
    if (auto const* exponential = std::get_if<ExponentialPollBackoff>(&backoff)) {
        delay = exponential->initial;
        for (int i = 0; i < repeats && delay < exponential->max; ++i) {
            delay = delay > exponential->max / 2 ? exponential->max : delay * 2;
        }
        delay = std::min(delay, exponential->max);
    } else if (auto const* function = std::get_if<PollBackoffFunction>(&backoff)) {
        try {
            if (*function) delay = (*function)(iteration);
        } catch (...) {
            delay = milliseconds::zero();
        }
    }
    return std::clamp<milliseconds>(delay, milliseconds::zero(), longest_poll_backoff);
}

}  // namespace tinkxx::service
