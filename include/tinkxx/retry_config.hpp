#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/retry_budget.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx {

/// A set of HTTP statuses, written as single ones and ranges: `{408, 409, {500, 599}}`.
class StatusSet {
public:
    struct Range {
        int first{0};
        int last{0};

        Range() = default;
        Range(int only) : first{only}, last{only} {}
        Range(int from, int to) : first{from}, last{to} {}
        bool operator==(Range const&) const = default;
    };

    StatusSet() = default;
    StatusSet(std::initializer_list<Range> ranges) : ranges_{ranges} {}

    [[nodiscard]] bool contains(int status) const noexcept;
    [[nodiscard]] std::vector<Range> const& ranges() const noexcept { return ranges_; }

    bool operator==(StatusSet const&) const = default;

private:
    std::vector<Range> ranges_{};
};

/// Decides whether to retry an error that no other rule makes retryable. Called on the I/O thread,
/// so it must be fast. If it throws, the error is not retried, and its message says why. Two
/// predicates are equal if they are the same object.
using RetryPredicate = std::shared_ptr<std::function<bool(Error const&)> const>;

/// How failed samples are retried, by every layer of the client. Every field has a working default.
/// Samplers of one session with equal settings share one retry handler.
///
///     auto sampler = service.create_sampling_client("Qwen/Qwen3-8B",
///                                                   RetryConfig{.progress_timeout = 30min});
struct RetryConfig {
    /// The number of samples that one sampler may have in flight, at most what the server allows.
    /// Empty: the server's limit, or else 1000; no limit with the completion poll.
    std::optional<std::int64_t> max_connections{};
    /// If no sample of the sampler succeeds for this long, all of them fail as stuck.
    std::chrono::milliseconds progress_timeout{std::chrono::minutes{120}};
    /// The delay before the first retry; it doubles with each further one.
    std::chrono::milliseconds retry_delay_base{500};
    std::chrono::milliseconds retry_delay_max{std::chrono::seconds{10}};
    /// Each delay is increased or reduced by a random fraction of up to this.
    double jitter_factor{0.25};
    /// If false, every failure is reported at once, including refusals for load (429).
    bool enable_retry_logic{true};
    /// If false, `progress_timeout` has no effect.
    bool enable_stuck_detection{true};
    /// Failures after which a request is sent again. No layer retries a failure that is listed
    /// neither here nor in `retryable_statuses`. Polling for the result of an accepted request is
    /// not a retry: see `ClientOptions::poll_error_limit`.
    std::vector<ErrorKind> retryable_errors{ErrorKind::timeout, ErrorKind::connection,
                                            ErrorKind::promise_lost};
    StatusSet retryable_statuses{408, 409, 429, {500, 599}};
    /// Empty: no further errors are retryable.
    RetryPredicate retry_if{};
    /// The number of requests that may follow the first one of a sample, whichever layer sends
    /// them; 0 means one request. Empty: no limit. (`ClientOptions::max_retries` is for other
    /// calls.)
    std::optional<std::int64_t> max_retries{};
    /// What all samples of one handler together may spend on retries. Empty: no limit.
    std::optional<RetryBudget> retry_budget{};
    /// Samplers with the same key share one semaphore, whose size the first of them sets. Empty:
    /// each handler has its own.
    std::string semaphore_key{};

    /// Throws `ValidationError`, naming field and value, for settings that cannot work.
    void validate() const;

    bool operator==(RetryConfig const&) const = default;
};

/// Removes a limit: `RetryOverrides{.max_retries = no_limit}`.
struct NoLimit {
    bool operator==(NoLimit const&) const = default;
};
inline constexpr NoLimit no_limit{};

/// A limit for one call: a value, `no_limit`, or by default the sampler's limit.
template <class T>
class LimitOverride {
public:
    constexpr LimitOverride() = default;
    constexpr LimitOverride(T value) : set_{true}, value_{std::move(value)} {}
    constexpr LimitOverride(NoLimit) : set_{true} {}

    /// Whether it overrides the sampler's limit.
    [[nodiscard]] constexpr bool is_set() const noexcept { return set_; }
    /// If set: the value, or nothing for no limit.
    [[nodiscard]] constexpr std::optional<T> const& value() const noexcept { return value_; }

    bool operator==(LimitOverride const&) const = default;

private:
    bool set_{false};
    std::optional<T> value_{};
};

/// Retry settings for one call. Members that are not set keep the sampler's values.
struct RetryOverrides {
    /// Calls with an equal limit share it. `no_limit`: the server's limit only.
    LimitOverride<std::int64_t> max_connections{};
    std::optional<std::chrono::milliseconds> progress_timeout{};
    std::optional<std::chrono::milliseconds> retry_delay_base{};
    std::optional<std::chrono::milliseconds> retry_delay_max{};
    std::optional<double> jitter_factor{};
    std::optional<bool> enable_retry_logic{};
    std::optional<bool> enable_stuck_detection{};
    std::optional<std::vector<ErrorKind>> retryable_errors{};
    std::optional<StatusSet> retryable_statuses{};
    RetryPredicate retry_if{};
    LimitOverride<std::int64_t> max_retries{};
    /// A budget for this call alone.
    LimitOverride<RetryBudget> retry_budget{};
    /// An empty string: a semaphore of the handler's own.
    std::optional<std::string> semaphore_key{};

    [[nodiscard]] RetryConfig over(RetryConfig config) const;

    bool operator==(RetryOverrides const&) const = default;
};

}  // namespace tinkxx

/// Covers every field that equality covers.
template <>
struct std::hash<tinkxx::RetryConfig> {
    std::size_t operator()(tinkxx::RetryConfig const& config) const noexcept;
};
