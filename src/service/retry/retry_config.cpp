#include <tinkxx/retry_config.hpp>

#include "service/retry/refusal.hpp"
#include "service/retry/retry_rules.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

namespace tinkxx {
namespace {

/// More samples than any sampler has under way.
constexpr std::int64_t no_bound = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(std::string_view field, std::string const& value, std::string_view rule) {
    service::refuse_field("RetryConfig", field, value, rule);
}

std::string text(std::chrono::milliseconds value) { return std::to_string(value.count()) + " ms"; }

class Hash {
public:
    template <class T>
    void add(T const& value) noexcept {
        sum_ ^= std::hash<T>{}(value) + 0x9e3779b97f4a7c15U + (sum_ << 6U) + (sum_ >> 2U);
    }
    template <class T>
    void add(std::optional<T> const& value) noexcept {
        add(value.has_value());
        if (value) add(*value);
    }
    void add(std::chrono::milliseconds value) noexcept { add(value.count()); }
    [[nodiscard]] std::size_t sum() const noexcept { return sum_; }

private:
    std::size_t sum_{0};
};

template <class T>
void replace(T& field, std::optional<T> const& by) {
    if (by) field = *by;
}

}  // namespace

bool StatusSet::contains(int status) const noexcept {
    return std::ranges::any_of(
        ranges_, [&](Range const& range) { return range.first <= status && status <= range.last; });
}

void RetryConfig::validate() const {
    if (max_connections && *max_connections <= 0) {
        refuse("max_connections", std::to_string(*max_connections),
               "above 0, or empty for the default");
    }
    if (progress_timeout.count() <= 0) {
        refuse("progress_timeout", text(progress_timeout),
               "above 0; enable_stuck_detection = false turns the watchdog off");
    }
    if (retry_delay_base.count() <= 0)
        refuse("retry_delay_base", text(retry_delay_base), "above 0");
    if (retry_delay_max < retry_delay_base) {
        refuse("retry_delay_max", text(retry_delay_max),
               "at least retry_delay_base, " + text(retry_delay_base));
    }
    if (!(jitter_factor >= 0 && jitter_factor <= 1)) {
        refuse("jitter_factor", service::number_text(jitter_factor), "from 0 to 1");
    }
    if (max_retries && *max_retries < 0) {
        refuse("max_retries", std::to_string(*max_retries), "0 or above, or empty for no limit");
    }
    for (auto const kind : retryable_errors) {
        if (service::never_repeated(kind)) {
            refuse("retryable_errors", std::string{to_string(kind)},
                   "kinds that a repetition can help: such an error is never retried");
        }
    }
    for (auto const& range : retryable_statuses.ranges()) {
        if (range.first > range.last) {
            refuse("retryable_statuses",
                   std::to_string(range.first) + " to " + std::to_string(range.last),
                   "a range from a lower to a higher status");
        }
    }
    if (retry_budget) retry_budget->validate();
}

RetryConfig RetryOverrides::over(RetryConfig config) const {
    if (max_connections.is_set()) {
        config.max_connections = max_connections.value().value_or(no_bound);
    }
    replace(config.progress_timeout, progress_timeout);
    replace(config.retry_delay_base, retry_delay_base);
    replace(config.retry_delay_max, retry_delay_max);
    replace(config.jitter_factor, jitter_factor);
    replace(config.enable_retry_logic, enable_retry_logic);
    replace(config.enable_stuck_detection, enable_stuck_detection);
    replace(config.retryable_errors, retryable_errors);
    replace(config.retryable_statuses, retryable_statuses);
    if (retry_if) config.retry_if = retry_if;
    if (max_retries.is_set()) config.max_retries = max_retries.value();
    if (retry_budget.is_set()) config.retry_budget = retry_budget.value();
    replace(config.semaphore_key, semaphore_key);
    return config;
}

}  // namespace tinkxx

std::size_t std::hash<tinkxx::RetryConfig>::operator()(
    tinkxx::RetryConfig const& config) const noexcept {
    tinkxx::Hash all;
    all.add(config.max_connections);
    all.add(config.progress_timeout);
    all.add(config.retry_delay_base);
    all.add(config.retry_delay_max);
    all.add(config.jitter_factor);
    all.add(config.enable_retry_logic);
    all.add(config.enable_stuck_detection);
    for (auto const kind : config.retryable_errors) all.add(static_cast<int>(kind));
    for (auto const& range : config.retryable_statuses.ranges()) {
        all.add(range.first);
        all.add(range.last);
    }
    all.add(config.retry_if.get());
    all.add(config.max_retries);
    all.add(config.retry_budget.has_value());
    if (config.retry_budget) {
        all.add(config.retry_budget->capacity);
        all.add(config.retry_budget->refill_per_second);
        all.add(config.retry_budget->total_delay.has_value());
        all.add(config.retry_budget->total_delay.value_or(std::chrono::milliseconds{0}));
    }
    all.add(config.semaphore_key);
    return all.sum();
}
