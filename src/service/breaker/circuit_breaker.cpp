#include <tinkxx/circuit_breaker.hpp>

#include "service/breaker/breaker_machine.hpp"
#include "service/http/standard_headers.hpp"

#include <map>
#include <mutex>

namespace tinkxx {

namespace {

[[noreturn]] void refuse_option(std::string field, std::string value, std::string const& rule) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.message = "CircuitBreakerOptions: " + field + " is " + value + "; it must be " + rule;
    details.field = std::move(field);
    details.value = std::move(value);
    Error{std::move(details)}.raise();
}

// Longer than any program runs, and short enough to be added to any time.
constexpr std::chrono::milliseconds longest_open = std::chrono::hours{24 * 365 * 10};

CircuitBreakerOptions checked(CircuitBreakerOptions options) {
    if (options.failure_threshold < 1) {
        refuse_option("failure_threshold", std::to_string(options.failure_threshold), "1 or more");
    }
    if (options.open_duration.count() <= 0 || options.open_duration > longest_open) {
        refuse_option("open_duration", std::to_string(options.open_duration.count()) + " ms",
                      "above 0 and at most ten years");
    }
    if (options.trial_calls < 1) {
        refuse_option("trial_calls", std::to_string(options.trial_calls), "1 or more");
    }
    if (!options.clock) options.clock = [] { return std::chrono::steady_clock::now(); };
    return options;
}

Error refusal(std::string const& name, CircuitStatus const& status) {
    ErrorDetails details;
    details.kind = ErrorKind::circuit_open;
    details.retryable = true;
    details.message = "circuit breaker '" + name + "' is " + std::string{to_string(status.state)};
    if (status.state == CircuitState::open) {
        details.retry_after = std::chrono::ceil<std::chrono::milliseconds>(status.open_for);
        details.message += " since too many calls failed; try again in " +
                           service::seconds_text(*details.retry_after) +
                           " s, or close it by reset()";
    } else {
        details.message += " and its trial calls are under way; try again once they have ended";
    }
    return Error{std::move(details)};
}

}  // namespace

std::string_view to_string(CircuitState state) noexcept {
    switch (state) {
        case CircuitState::closed:
            return "closed";
        case CircuitState::open:
            return "open";
        case CircuitState::half_open:
            return "half-open";
    }
    return "unknown";
}

bool is_service_trouble(Error const& error) noexcept {
    if (error.category() == ErrorCategory::user) return false;
    if (error.kind() == ErrorKind::connection || error.kind() == ErrorKind::timeout) return true;
    auto const status = error.http_status().value_or(0);
    return status == 408 || status == 429 || status >= 500;
}

/// The mutex guards the machine alone; the clock and the predicate, which are the user's, are
/// called without it. Times read by two threads may reach the machine in the wrong order: it then
/// opens for the moment between them longer or shorter, which is of no consequence.
struct CircuitBreaker::Permit::Core {
    Core(std::string given_name, CircuitBreakerOptions given)
        : name{std::move(given_name)},
          options{checked(std::move(given))},
          machine{{.failure_threshold = options.failure_threshold,
                   .open_duration = options.open_duration,
                   .trial_calls = options.trial_calls}} {}

    [[nodiscard]] TimePoint now() const noexcept try { return options.clock(); } catch (...) {
        return std::chrono::steady_clock::now();
    }
    [[nodiscard]] bool is_failure(Error const& error) const noexcept try {
        return options.is_failure ? options.is_failure(error) : is_service_trouble(error);
    } catch (...) {
        return true;
    }

    std::string const name;
    CircuitBreakerOptions const options;
    std::mutex mutex;
    service::BreakerMachine machine;
};

CircuitBreaker::Permit::Permit(std::shared_ptr<Core> core, std::uint64_t period) noexcept
    : core_{std::move(core)}, period_{period} {}

CircuitBreaker::Permit::Permit(Permit&& other) noexcept
    : core_{std::move(other.core_)}, period_{other.period_} {}

CircuitBreaker::Permit& CircuitBreaker::Permit::operator=(Permit&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(period_, other.period_);
    return *this;
}

CircuitBreaker::Permit::~Permit() {
    if (!core_) return;
    std::lock_guard const lock{core_->mutex};
    core_->machine.on_abandoned(period_);
}

void CircuitBreaker::Permit::succeeded() noexcept {
    auto const core = std::exchange(core_, nullptr);
    if (!core) return;
    std::lock_guard const lock{core->mutex};
    core->machine.on_success(period_);
}

void CircuitBreaker::Permit::failed(Error const& error) noexcept {
    if (!core_) return;
    if (!core_->is_failure(error)) return succeeded();
    auto const core = std::exchange(core_, nullptr);
    auto const now = core->now();
    std::lock_guard const lock{core->mutex};
    core->machine.on_failure(period_, now);
}

CircuitBreaker::CircuitBreaker(std::string name) : CircuitBreaker{std::move(name), {}} {}

CircuitBreaker::CircuitBreaker(std::string name, CircuitBreakerOptions options)
    : core_{std::make_shared<Permit::Core>(std::move(name), std::move(options))} {}

Result<CircuitBreaker::Permit> CircuitBreaker::admit() {
    auto const now = core_->now();
    std::unique_lock lock{core_->mutex};
    if (auto const period = core_->machine.admit(now)) return Permit{core_, *period};
    auto const status = core_->machine.status(now);
    lock.unlock();
    return refusal(core_->name, status);
}

CircuitStatus CircuitBreaker::status() const {
    auto const now = core_->now();
    std::lock_guard const lock{core_->mutex};
    return core_->machine.status(now);
}

std::string const& CircuitBreaker::name() const noexcept { return core_->name; }

void CircuitBreaker::reset() {
    std::lock_guard const lock{core_->mutex};
    core_->machine.reset();
}

struct CircuitBreakers::Impl {
    CircuitBreakerOptions defaults{};
    mutable std::mutex mutex{};
    std::map<std::string, CircuitBreaker, std::less<>> breakers{};
};

CircuitBreakers::CircuitBreakers() : CircuitBreakers{CircuitBreakerOptions{}} {}

CircuitBreakers::CircuitBreakers(CircuitBreakerOptions defaults) : impl_{std::make_unique<Impl>()} {
    impl_->defaults = checked(std::move(defaults));
}

CircuitBreakers::~CircuitBreakers() = default;

CircuitBreaker CircuitBreakers::get(std::string_view name) { return get(name, impl_->defaults); }

CircuitBreaker CircuitBreakers::get(std::string_view name, CircuitBreakerOptions options) {
    std::lock_guard const lock{impl_->mutex};
    auto found = impl_->breakers.find(name);
    if (found == impl_->breakers.end()) {
        std::string const key{name};
        found = impl_->breakers.emplace(key, CircuitBreaker{key, std::move(options)}).first;
    }
    return found->second;
}

std::optional<CircuitBreaker> CircuitBreakers::find(std::string_view name) const {
    std::lock_guard const lock{impl_->mutex};
    auto const found = impl_->breakers.find(name);
    if (found == impl_->breakers.end()) return std::nullopt;
    return found->second;
}

CircuitState CircuitBreakers::state(std::string_view name) const {
    auto const found = find(name);
    return found ? found->state() : CircuitState::closed;
}

bool CircuitBreakers::reset(std::string_view name) {
    auto found = find(name);
    if (found) found->reset();
    return found.has_value();
}

bool CircuitBreakers::remove(std::string_view name) {
    std::lock_guard const lock{impl_->mutex};
    auto const found = impl_->breakers.find(name);
    if (found == impl_->breakers.end()) return false;
    impl_->breakers.erase(found);
    return true;
}

std::vector<std::pair<std::string, CircuitState>> CircuitBreakers::list() const {
    std::vector<CircuitBreaker> all;
    {
        std::lock_guard const lock{impl_->mutex};
        for (auto const& [name, breaker] : impl_->breakers) all.push_back(breaker);
    }
    std::vector<std::pair<std::string, CircuitState>> listed;
    listed.reserve(all.size());
    for (auto const& breaker : all) listed.emplace_back(breaker.name(), breaker.state());
    return listed;
}

}  // namespace tinkxx
