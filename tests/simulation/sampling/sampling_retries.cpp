#include "simulation/sampling/sampling_retries.hpp"

#include <algorithm>
#include <functional>
#include <memory>

namespace tinkxx::simulation {

using namespace std::chrono_literals;

namespace {

/// What the one `retry_if` of the simulation wants repeated.
constexpr int retry_if_status = 400;

/// Always the same one: settings are equal only if it is.
RetryPredicate const& own_rule() {
    static RetryPredicate const rule = std::make_shared<std::function<bool(Error const&)> const>(
        [](Error const& error) { return error.http_status() == retry_if_status; });
    return rule;
}

StatusSet draw_statuses(service::Random& random) {
    switch (random.next() % 5) {
        case 0:
            return {};
        case 1:
            return {429};
        case 2:
            return {{500, 503}};
        case 3:
            return {408, 429, {502, 599}};
        default:
            return {408, 409, {500, 599}};
    }
}

std::vector<ErrorKind> draw_errors(service::Random& random) {
    std::vector<ErrorKind> kinds{ErrorKind::timeout, ErrorKind::connection,
                                 ErrorKind::promise_lost};
    auto const without = random.next() % 4;
    if (without < kinds.size()) kinds.erase(kinds.begin() + static_cast<std::ptrdiff_t>(without));
    if (random.unit() < 0.5) kinds.push_back(ErrorKind::circuit_open);
    return kinds;
}

RetryBudget draw_budget(service::Random& random) {
    RetryBudget budget;
    budget.capacity = static_cast<std::int64_t>(random.next() % 6);
    if (random.unit() < 0.3) budget.refill_per_second = 0.05;
    return budget;
}

}  // namespace

RetryConfig draw_retry(service::Random& random) {
    auto const chance = [&](double probability) { return random.unit() < probability; };
    RetryConfig retry;
    if (chance(0.2)) retry.max_connections = 1 + static_cast<std::int64_t>(random.next() % 5);
    if (chance(0.2)) retry.max_retries = static_cast<std::int64_t>(random.next() % 5);
    if (chance(0.1)) retry.enable_retry_logic = false;
    if (chance(0.1)) retry.progress_timeout = 20s;
    if (chance(0.15)) retry.retryable_statuses = draw_statuses(random);
    if (chance(0.1)) retry.retryable_errors = draw_errors(random);
    if (chance(0.05)) retry.retry_if = own_rule();
    if (chance(0.1)) retry.retry_budget = draw_budget(random);
    return retry;
}

RetryOverrides draw_overrides(service::Random& random) {
    auto const chance = [&](double probability) { return random.unit() < probability; };
    RetryOverrides retry;
    if (chance(0.1)) retry.max_retries = static_cast<std::int64_t>(random.next() % 3);
    if (chance(0.03)) retry.max_retries = no_limit;
    if (chance(0.05)) retry.enable_retry_logic = chance(0.5);
    if (chance(0.05)) retry.retryable_statuses = draw_statuses(random);
    if (chance(0.03)) retry.retryable_errors = draw_errors(random);
    if (chance(0.02)) retry.retry_if = own_rule();
    if (chance(0.05)) retry.retry_budget = draw_budget(random);
    return retry;
}

bool listed(RetryConfig const& config, ErrorKind kind, int status) {
    bool const by_kind =
        std::ranges::find(config.retryable_errors, kind) != config.retryable_errors.end();
    bool const by_status = kind == ErrorKind::status && config.retryable_statuses.contains(status);
    return by_kind || by_status || (config.retry_if && status == retry_if_status);
}

std::string RequestJudge::on_request(RetryConfig const& config, BudgetJudge& budget,
                                     TimePoint now) {
    // The service is older than the request, which is made again for that reason alone.
    if (last_.status == 422) return {};
    if (++requests_ == 1) {
        budget.begin(now);
        return {};
    }
    if (!config.enable_retry_logic) return "a second request though retries are off";
    if (config.max_retries && requests_ > *config.max_retries + 1) {
        return "more requests than max_retries allows";
    }
    if (!may_be_repeated(config)) {
        return "a request after a failure that is not listed, " + std::to_string(last_.status) +
               ' ' + std::string{to_string(last_.kind)};
    }
    if (config.retry_budget && !budget.pays(*config.retry_budget, now)) {
        return "more requests than the retry budget pays for";
    }
    return {};
}

bool RequestJudge::may_be_repeated(RetryConfig const& config) const {
    if (last_.status == 402) return true;  // waited out, whatever is listed
    if (listed(config, last_.kind, last_.status)) return true;
    return last_.rejected && listed(config, ErrorKind::connection, last_.status);
}

void RequestJudge::on_answer(RecordedExchange const& exchange) {
    last_ = {.kind = ErrorKind::status, .status = exchange.status};
    if (exchange.failure) {
        last_.kind = is_timeout(*exchange.failure) ? ErrorKind::timeout : ErrorKind::connection;
    }
    last_.rejected = exchange.status == 400 && exchange.answer.empty();
}

}  // namespace tinkxx::simulation
