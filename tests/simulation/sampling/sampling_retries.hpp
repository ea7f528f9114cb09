#pragma once

#include <tinkxx/retry_config.hpp>

#include "service/common/random.hpp"
#include "simulation/common/sampling_recorder.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace tinkxx::simulation {

/// Settings of a sampler, from the defaults to odd ones.
[[nodiscard]] RetryConfig draw_retry(service::Random& random);
/// Settings of a single call.
[[nodiscard]] RetryOverrides draw_overrides(service::Random& random);
/// Whether a failure of this kind, with a status of the server if there is one, is to be repeated.
[[nodiscard]] bool listed(RetryConfig const& config, ErrorKind kind, int status);

/// What a retry budget has been spent on by requests that were sent again (R-RETRY-05). It pays for
/// polls too, so that this is the least.
class BudgetJudge {
public:
    /// The first request of a call is sent.
    void begin(TimePoint now) {
        if (!since_) since_ = now;
    }
    /// A request is sent again; false if the budget cannot have paid for it.
    [[nodiscard]] bool pays(RetryBudget const& budget, TimePoint now) {
        auto const seconds = std::chrono::duration<double>{now - *since_}.count();
        auto const most =
            static_cast<double>(budget.capacity.value_or(0)) + seconds * budget.refill_per_second;
        return static_cast<double>(++spent_) <= most + 1e-6;
    }

private:
    std::optional<TimePoint> since_{};
    std::int64_t spent_{0};
};

/// Holds the requests of one sample against its settings (R-RETRY-17).
class RequestJudge {
public:
    /// A request is sent, the first or another: what is wrong with that, or nothing. `budget` is
    /// what has been spent of the one that the sample has.
    [[nodiscard]] std::string on_request(RetryConfig const& config, BudgetJudge& budget,
                                         TimePoint now);
    void on_answer(RecordedExchange const& exchange);
    /// The service does not know its result any more.
    void on_lost() noexcept { last_ = {.kind = ErrorKind::promise_lost, .status = 410}; }
    /// The poll was refused for good, with this status.
    void on_poll_refused(int status) noexcept {
        last_ = {.kind = ErrorKind::status, .status = status};
    }

    /// Those that count towards `max_retries`.
    [[nodiscard]] std::int64_t requests() const noexcept { return requests_; }

private:
    /// The last request, or its result.
    struct Failure {
        ErrorKind kind{ErrorKind::status};
        int status{0};
        /// A proxy refused it, or the service did: both look alike.
        bool rejected{false};
    };
    [[nodiscard]] bool may_be_repeated(RetryConfig const& config) const;

    std::int64_t requests_{0};
    Failure last_{};
};

}  // namespace tinkxx::simulation
