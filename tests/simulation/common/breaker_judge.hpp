#pragma once

#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/common/random.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::simulation {

/// A circuit breaker that several calls have, and what the traffic of these calls says about it
/// (R-EXT-01, R-EXT-03). Counts only what is a failure beyond doubt, and begins anew at whatever
/// could be a success, so that the breaker must be open at the latest when the count is full.
///
/// Loop thread only.
class BreakerJudge {
public:
    using Problem = std::function<void(std::string)>;
    /// Between two changes of state. 0: not known.
    using Period = std::uint64_t;

    BreakerJudge(std::string name, testing::ManualClock& clock, service::Random& random,
                 Problem problem);

    [[nodiscard]] CircuitBreaker const& breaker() const noexcept { return breaker_; }
    /// Whether a call that is made now has to end now.
    [[nodiscard]] bool open();
    /// Whether it was not closed at this moment, so that a call may be refused.
    [[nodiscard]] bool may_have_refused();

    /// A request of a call that has it.
    struct Sent {
        Period period{0};
        /// What is wrong with sending it; empty: nothing.
        std::string wrong{};
    };
    [[nodiscard]] Sent on_request();
    /// A request failed: no answer came, or one of those that tell of trouble.
    void on_failure(Period sent, std::string const& what);
    /// Something came that may count as a success.
    void on_other();

    /// Statuses that count as failures; 0 is no answer.
    [[nodiscard]] static bool is_trouble(int status) noexcept {
        return status == 0 || status == 408 || status == 429 || status >= 500;
    }

private:
    void look();

    testing::ManualClock& clock_;
    Problem const problem_;
    CircuitBreakerOptions const rules_;
    CircuitBreaker breaker_;
    CircuitState state_{CircuitState::closed};
    Period period_{1};
    int failures_{0};
    std::optional<TimePoint> not_closed_{};  ///< when it was last seen so
};

/// None, or a few that calls share.
[[nodiscard]] std::vector<std::unique_ptr<BreakerJudge>> draw_breakers(
    testing::ManualClock& clock, service::Random& random, BreakerJudge::Problem const& problem);

/// One of them, or none.
[[nodiscard]] BreakerJudge* pick_breaker(std::vector<std::unique_ptr<BreakerJudge>> const& breakers,
                                         service::Random& random, double probability);

}  // namespace tinkxx::simulation
