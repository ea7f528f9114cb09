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
    half_open,  ///< a few trial calls are made
};

[[nodiscard]] std::string_view to_string(CircuitState state) noexcept;

/// Whether an error indicates an overloaded or failing service: no connection, no answer in time,
/// or a status of 408, 429 or at least 500. User errors never count.
[[nodiscard]] bool is_service_trouble(Error const& error) noexcept;

/// When a `CircuitBreaker` opens and closes. Every field has a working default.
struct CircuitBreakerOptions {
    /// The number of consecutive failures that opens the breaker.
    int failure_threshold{5};
    /// How long calls are refused before a trial call is made.
    std::chrono::milliseconds open_duration{std::chrono::seconds{30}};
    /// The number of concurrent trial calls.
    int trial_calls{1};
    /// Decides which errors are failures; all others count as successes. Empty:
    /// `is_service_trouble`. Called on the thread that reports the outcome. If it throws, the error
    /// counts as a failure.
    std::function<bool(Error const&)> is_failure{};
    /// The clock; called on any thread. Empty: the steady clock.
    std::function<TimePoint()> clock{};
};

/// The state of a breaker.
struct CircuitStatus {
    CircuitState state{CircuitState::closed};
    /// Consecutive failures, while closed.
    int failures{0};
    /// Trial calls under way, while half-open.
    int trials{0};
    /// While open: the time until a trial call is allowed.
    std::chrono::nanoseconds open_for{0};

    bool operator==(CircuitStatus const&) const = default;
};

/// Refuses calls for a while after too many consecutive failures, so that a failing service is not
/// called and callers fail fast. A closed breaker lets every call through, an open one none. After
/// `open_duration`, trial calls decide: success closes the breaker, failure opens it again.
///
///     if (auto permit = breaker.admit()) {
///         auto result = pending.result();
///         result ? permit->succeeded() : permit->failed(result.error());
///     }
///
/// A cheap handle: copies share one state. Every member may be called from any thread.
class CircuitBreaker {
public:
    /// Permission to make one call. Report its outcome once. A permit that is destroyed without a
    /// report counts as if the call had not been made. May outlive the breaker.
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

    /// Permission to make a call, or an error of kind `circuit_open` that says when to try again. A
    /// trial call counts from this moment, not from its end.
    [[nodiscard]] Result<Permit> admit();

    /// Makes a call that returns a `Result`, if the breaker allows it, and records its outcome.
    /// Exceptions are passed on; an `Error` counts as if it had been returned.
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
    /// The options of breakers that are created without options of their own.
    explicit CircuitBreakers(CircuitBreakerOptions defaults);
    ~CircuitBreakers();
    CircuitBreakers(CircuitBreakers const&) = delete;
    CircuitBreakers& operator=(CircuitBreakers const&) = delete;

    /// The breaker with this name, which is created if there is none.
    [[nodiscard]] CircuitBreaker get(std::string_view name);
    /// As above; the options are used only if it is created.
    [[nodiscard]] CircuitBreaker get(std::string_view name, CircuitBreakerOptions options);
    /// The breaker with this name, if there is one.
    [[nodiscard]] std::optional<CircuitBreaker> find(std::string_view name) const;
    /// The state of the breaker with this name; closed if there is none.
    [[nodiscard]] CircuitState state(std::string_view name) const;
    /// Closes the breaker with this name. Returns false if there is none.
    bool reset(std::string_view name);
    /// Removes the breaker with this name; existing handles stay valid. Returns false if there is
    /// none.
    bool remove(std::string_view name);
    /// All names with their states, sorted by name.
    [[nodiscard]] std::vector<std::pair<std::string, CircuitState>> list() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx
