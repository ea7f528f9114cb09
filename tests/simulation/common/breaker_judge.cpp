#include "simulation/common/breaker_judge.hpp"

#include <utility>

namespace tinkxx::simulation {

namespace {

CircuitBreakerOptions draw_rules(testing::ManualClock& clock, service::Random& random) {
    CircuitBreakerOptions rules;
    rules.failure_threshold = 1 + static_cast<int>(random.next() % 6);
    rules.open_duration = std::chrono::milliseconds{500 + random.next() % 40'000};
    rules.trial_calls = 1 + static_cast<int>(random.next() % 2);
    rules.clock = [&clock] { return clock.now(); };
    return rules;
}

}  // namespace

BreakerJudge::BreakerJudge(std::string name, testing::ManualClock& clock, service::Random& random,
                           Problem problem)
    : clock_{clock},
      problem_{std::move(problem)},
      rules_{draw_rules(clock, random)},
      breaker_{std::move(name), rules_} {}

void BreakerJudge::look() {
    auto const state = breaker_.state();
    if (state != CircuitState::closed) not_closed_ = clock_.now();
    if (state == state_) return;
    state_ = state;
    ++period_;
    failures_ = 0;
}

bool BreakerJudge::open() {
    look();
    return state_ == CircuitState::open;
}

bool BreakerJudge::may_have_refused() {
    look();
    return not_closed_ == clock_.now();
}

BreakerJudge::Sent BreakerJudge::on_request() {
    look();
    if (state_ == CircuitState::open) {
        return {.wrong = "a request while its circuit breaker is open: "};
    }
    if (state_ == CircuitState::half_open && breaker_.status().trials == 0) {
        return {.wrong = "a request that no circuit breaker let through: "};
    }
    return {.period = period_};
}

void BreakerJudge::on_failure(Period sent, std::string const& what) {
    look();
    if (sent != period_) return;
    ++failures_;
    bool const enough = state_ == CircuitState::half_open || failures_ >= rules_.failure_threshold;
    // The client is told next, and the breaker by it.
    clock_.post([this, enough, what] {
        look();
        if (enough && state_ != CircuitState::open) {
            problem_("a circuit breaker is not open after " +
                     std::to_string(rules_.failure_threshold) + " failures: " + what);
        }
    });
}

void BreakerJudge::on_other() {
    look();
    failures_ = 0;
    clock_.post([this] { look(); });
}

std::vector<std::unique_ptr<BreakerJudge>> draw_breakers(testing::ManualClock& clock,
                                                         service::Random& random,
                                                         BreakerJudge::Problem const& problem) {
    std::vector<std::unique_ptr<BreakerJudge>> made;
    if (random.unit() < 0.6) return made;
    auto const count = 1 + random.next() % 2;
    for (std::size_t i = 0; i < count; ++i) {
        made.push_back(
            std::make_unique<BreakerJudge>("breaker " + std::to_string(i), clock, random, problem));
    }
    return made;
}

BreakerJudge* pick_breaker(std::vector<std::unique_ptr<BreakerJudge>> const& breakers,
                           service::Random& random, double probability) {
    if (breakers.empty() || random.unit() >= probability) return nullptr;
    return breakers[random.next() % breakers.size()].get();
}

}  // namespace tinkxx::simulation
