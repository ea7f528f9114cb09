#pragma once

#include <tinkxx/log.hpp>
#include <tinkxx/retry_config.hpp>
#include <tinkxx/scheduler.hpp>

#include "base/common/intrusive_list.hpp"
#include "service/limits/permits.hpp"
#include "service/retry/retry_budget.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tinkxx::service {

class RetryHandler;

/// What a handler did so far (R-RETRY-26).
struct RetryStats {
    std::int64_t waiting{0};
    std::int64_t in_retry_loop{0};
    std::int64_t processed{0};
    std::int64_t retries{0};
    /// "kind: message" and how often, since the last progress line.
    std::map<std::string, std::int64_t> errors{};
    TimePoint last_progress{};
};

/// How far a call is when an attempt of it has failed.
struct RetryCount {
    /// Rounds of the handler, 1 for the first.
    std::int64_t attempt{1};
    /// Requests sent, by all layers.
    std::int64_t requests{1};
    /// How long the failed request took, if it was a repetition.
    std::chrono::nanoseconds took{0};
    /// In place of the handler's; null for none.
    RetryBudgetState* own_budget{nullptr};
};

/// What follows a failed attempt.
struct RetryVerdict {
    bool retry{false};
    std::chrono::nanoseconds delay{};
    /// Why there is no further attempt.
    RetryEnd end{RetryEnd::permanent};
    /// To be added to the error; empty if nothing is.
    std::string note{};
};

/// One call that goes through a handler: a base of it. Destroying it leaves.
class HandledCall : private PermitWaiter {
public:
    HandledCall() noexcept = default;
    HandledCall(HandledCall const&) = delete;
    HandledCall& operator=(HandledCall const&) = delete;

    /// Waits for the handler's semaphore (R-RETRY-10). True if it is inside at once; else
    /// `on_entered` follows. `config` are the settings of this call.
    [[nodiscard]] bool enter(std::shared_ptr<RetryHandler> handler,
                             std::shared_ptr<RetryConfig const> config, bool stuck_detection);
    /// Goes out, or stops waiting (R-RETRY-16). Harmless if it is not in.
    void leave(bool success) noexcept;

    [[nodiscard]] bool waits() const noexcept { return place_ == Place::waiting; }
    [[nodiscard]] bool inside() const noexcept { return place_ == Place::inside; }

protected:
    ~HandledCall() override { leave(false); }
    virtual void on_entered() = 0;
    /// For the permits of other limits, while it does not wait for the handler's; told by
    /// `on_other_permit`. One waiter serves both, since calls may wait by the million.
    [[nodiscard]] PermitWaiter& permit_waiter() noexcept { return *this; }
    virtual void on_other_permit() {}
    /// Null outside.
    [[nodiscard]] RetryHandler* handler() const noexcept { return handler_.get(); }
    /// The settings of this call: those it entered with, or those of a call that never enters.
    [[nodiscard]] RetryConfig const& config() const noexcept { return *config_; }
    void configure(std::shared_ptr<RetryConfig const> config) noexcept {
        config_ = std::move(config);
    }
    /// The watchdog found that nothing succeeds (R-RETRY-34). May leave and destroy.
    virtual void on_stuck(std::chrono::milliseconds progress_timeout) = 0;
    /// For the handler's progress lines.
    virtual void log_progress(std::string line) = 0;
    [[nodiscard]] virtual bool logs_progress() const noexcept = 0;

private:
    friend class RetryHandler;
    enum class Place : std::uint8_t { outside, waiting, inside };
    void on_permit() override;

    std::shared_ptr<RetryHandler> handler_{};
    std::shared_ptr<RetryConfig const> config_{};
    base::ListLinks<HandledCall> links_{};
    Place place_{Place::outside};
    bool watched_{false};
    bool has_permit_{false};
};

/// The outer retry engine around samples: semaphore, counters, judgement and watchdog, shared by
/// all calls of one sampler and by samplers made again for the same session. Loop thread only;
/// held by `std::shared_ptr`.
class RetryHandler final : public std::enable_shared_from_this<RetryHandler>, private Timer {
public:
    /// `limit` is null for no limit. The scheduler outlives this.
    RetryHandler(std::string name, RetryConfig const& config, std::shared_ptr<CountLimit> limit,
                 Scheduler& scheduler);

    /// Judges a failed attempt (R-RETRY-14, 17, 20), and counts it if it is repeated.
    [[nodiscard]] RetryVerdict judge(RetryConfig const& config, Error const& error,
                                     RetryCount const& count, double chance);
    /// Takes note of an error, for the progress lines.
    void count(Error const& error);
    /// R-RETRY-20. An error is final if `retry_if` throws.
    [[nodiscard]] static bool retryable(RetryConfig const& config, Error const& error);
    /// Whether the limits of a call allow another request after `delay`, and pays for it if they do
    /// (R-RETRY-17, 23). `handler` may be null.
    [[nodiscard]] static RetryVerdict within_limits(RetryConfig const& config,
                                                    RetryHandler* handler, RetryCount const& count,
                                                    std::chrono::nanoseconds delay, TimePoint now);

    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] RetryStats stats() const;
    /// When everything is called stuck if nothing succeeds; none while nothing is under way.
    [[nodiscard]] std::optional<TimePoint> stuck_at() const noexcept;
    /// The line of R-RETRY-50, if it is time for one; through the log of `call`.
    void progress(HandledCall& call);

private:
    friend class HandledCall;
    [[nodiscard]] static RetryVerdict classify(RetryConfig const& config, Error const& error);
    void entered(HandledCall& call);
    void left(HandledCall& call, bool success) noexcept;
    void watch();
    void on_time() override;

    std::string const name_;
    std::shared_ptr<CountLimit> const limit_;
    Scheduler& scheduler_;
    std::optional<RetryBudgetState> budget_{};
    base::IntrusiveList<HandledCall, &HandledCall::links_> watched_{};
    /// The timeouts of the watched calls, and how many have each.
    std::map<std::chrono::milliseconds, std::int64_t> timeouts_{};
    std::int64_t waiting_{0};
    std::int64_t in_loop_{0};
    std::int64_t processed_{0};
    std::int64_t retries_{0};
    std::map<std::string, std::int64_t> errors_{};
    TimePoint last_progress_{};
    TimePoint last_line_{};
    TimePoint watched_until_{};  ///< what the timer is armed for
};

/// The handlers of one runtime: an LRU of a hundred, keyed by name, settings and telemetry sink
/// (R-RETRY-25), and by account, since names are unique within one only; and the semaphores that
/// are shared by key (R-RETRY-22). Loop thread only.
class RetryHandlers {
public:
    static constexpr std::size_t most = 100;

    /// Tells endpoints and credentials apart without keeping the latter, which are secrets.
    using Account = std::uint64_t;
    [[nodiscard]] static Account account(std::string_view endpoint, std::string_view credential);

    [[nodiscard]] std::shared_ptr<RetryHandler> get(Account account, std::string const& name,
                                                    RetryConfig const& config,
                                                    std::optional<std::int64_t> limit,
                                                    void const* telemetry, Scheduler& scheduler);
    [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }

private:
    struct Key {
        Account account{0};
        std::string name{};
        RetryConfig config{};
        std::optional<std::int64_t> limit{};
        void const* telemetry{};
        bool operator==(Key const&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(Key const& key) const noexcept;
    };
    using Order = std::list<std::pair<Key, std::shared_ptr<RetryHandler>>>;

    [[nodiscard]] std::shared_ptr<CountLimit> limit_of(RetryConfig const& config,
                                                       std::optional<std::int64_t> limit);

    Order order_{};  ///< newest use first
    std::unordered_map<Key, Order::iterator, KeyHash> by_key_{};
    std::unordered_map<std::string, std::weak_ptr<CountLimit>> by_semaphore_key_{};
};

}  // namespace tinkxx::service
