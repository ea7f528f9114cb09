#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tinkxx {

enum class CircuitState : std::uint8_t {
    closed,     ///< calls are made
    open,       ///< calls are refused
    half_open,  ///< a few calls are made on trial
};

[[nodiscard]] std::string_view to_string(CircuitState state) noexcept;

/// Whether an error tells of trouble that sparing the service can cure: no connection, no answer
/// in time, or a status of 408, 429 or from 500; never an error that is the user's.
[[nodiscard]] bool is_service_trouble(Error const& error) noexcept;

/// When a `CircuitBreaker` opens and closes. Every field has a working default.
struct CircuitBreakerOptions {
    /// Failures in a row that open it.
    int failure_threshold{5};
    /// How long it refuses calls before it tries one.
    std::chrono::milliseconds open_duration{std::chrono::seconds{30}};
    /// Calls that are let through on trial at a time.
    int trial_calls{1};
    /// Which errors are failures; all others count as successes. Empty: `is_service_trouble`.
    /// Called on the thread that reports the outcome; if it throws, the error is a failure.
    std::function<bool(Error const&)> is_failure{};
    /// Tells the time; called on any thread. Empty: the steady clock.
    std::function<TimePoint()> clock{};
};

/// Where a breaker stands.
struct CircuitStatus {
    CircuitState state{CircuitState::closed};
    /// Failures in a row, while closed.
    int failures{0};
    /// Trial calls under way, while half-open.
    int trials{0};
    /// While open: how long it stays so.
    std::chrono::nanoseconds open_for{0};

    bool operator==(CircuitStatus const&) const = default;
};

/// Refuses calls for a while once too many in a row have failed, so that a service in trouble is
/// spared and callers learn of it at once. Closed, it lets every call through; open, none; after
/// `open_duration` a trial decides: success closes it, failure opens it again.
///
///     if (auto permit = breaker.admit()) {
///         auto result = pending.result();
///         result ? permit->succeeded() : permit->failed(result.error());
///     }
///
/// A cheap handle: copies share one state. Every member may be called from any thread.
class CircuitBreaker {
public:
    /// Leave to make one call. Report how it ended, once; a permit that goes away without a report
    /// counts as if the call had never been made. May outlive the breaker.
    class Permit {
    public:
        Permit(Permit&& other) noexcept;
        Permit& operator=(Permit&& other) noexcept;
        Permit(Permit const&) = delete;
        Permit& operator=(Permit const&) = delete;
        ~Permit();

        void succeeded() noexcept;
        void failed(Error const& error) noexcept;

    private:
        friend class CircuitBreaker;
        struct Core;
        Permit(std::shared_ptr<Core> core, std::uint64_t period) noexcept;

        std::shared_ptr<Core> core_;
        std::uint64_t period_;
    };

    /// `name` is for messages. Throws `ValidationError` for options that cannot work.
    explicit CircuitBreaker(std::string name);
    CircuitBreaker(std::string name, CircuitBreakerOptions options);

    /// Leave to make a call, or an error of kind `circuit_open` that says when to ask again.
    /// A trial call counts from here on, not from its end.
    [[nodiscard]] Result<Permit> admit();

    /// Makes a call that returns a `Result`, if it is let through, and takes note of how it ends.
    /// What it throws passes through; an `Error` counts as one that was returned.
    template <class Fn>
    std::invoke_result_t<Fn&> call(Fn fn) {
        auto permit = admit();
        if (!permit) return permit.error();
        try {
            auto result = fn();
            if (result) {
                permit->succeeded();
            } else {
                permit->failed(result.error());
            }
            return result;
        } catch (Error const& error) {
            permit->failed(error);
            throw;
        }
    }

    [[nodiscard]] CircuitState state() const { return status().state; }
    [[nodiscard]] CircuitStatus status() const;
    [[nodiscard]] std::string const& name() const noexcept;
    /// Closes it and forgets all failures; calls under way no longer count.
    void reset();

private:
    std::shared_ptr<Permit::Core> core_;
};

/// Circuit breakers by name. Every member may be called from any thread.
class CircuitBreakers {
public:
    CircuitBreakers();
    /// For breakers that are made without options of their own.
    explicit CircuitBreakers(CircuitBreakerOptions defaults);
    ~CircuitBreakers();
    CircuitBreakers(CircuitBreakers const&) = delete;
    CircuitBreakers& operator=(CircuitBreakers const&) = delete;

    /// The breaker of that name, which is made if there is none.
    [[nodiscard]] CircuitBreaker get(std::string_view name);
    /// As above; the options are used only if it is made.
    [[nodiscard]] CircuitBreaker get(std::string_view name, CircuitBreakerOptions options);
    /// The breaker of that name, if there is one.
    [[nodiscard]] std::optional<CircuitBreaker> find(std::string_view name) const;
    /// Its state; closed for a name that is not known, since nothing would be refused.
    [[nodiscard]] CircuitState state(std::string_view name) const;
    /// Closes the breaker of that name. False if there is none.
    bool reset(std::string_view name);
    /// Forgets the breaker of that name; those who hold it keep it. False if there is none.
    bool remove(std::string_view name);
    /// All names with their states, sorted by name.
    [[nodiscard]] std::vector<std::pair<std::string, CircuitState>> list() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx
