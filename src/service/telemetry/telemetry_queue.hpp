#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/scheduler.hpp>

#include "wire/session/telemetry.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::service {

/// The numbers of R-TEL-20 and R-TEL-22.
struct TelemetryRules {
    std::size_t most_queued{10'000};
    std::size_t most_in_batch{100};
    /// Longest time that an event waits before its batch is begun.
    std::chrono::nanoseconds flush_interval{std::chrono::seconds{10}};
    /// Before a batch that the service did not take is sent again.
    std::chrono::nanoseconds retry_delay{std::chrono::seconds{1}};
    /// Times that a batch is sent again before it is given up. Empty: no limit.
    std::optional<int> max_retries{};
    /// Warnings of one sort come no closer than this.
    std::chrono::nanoseconds warning_interval{std::chrono::minutes{1}};
};

/// What was done so far, in events but for the last two.
struct TelemetryCounts {
    std::uint64_t logged{0};    ///< queued
    std::uint64_t dropped{0};   ///< never queued: the queue was full, or closed
    std::uint64_t flushed{0};   ///< taken by the service or given up
    std::uint64_t accepted{0};  ///< taken by the service
    std::uint64_t batches{0};   ///< that the service took
    std::uint64_t failures{0};  ///< to send a batch

    bool operator==(TelemetryCounts const&) const = default;
};

/// Holds events until they are sent, and decides when that is and what follows (R-TEL-20..22).
/// Touches no socket and reads no clock.
///
/// At most one batch is under way; while there is one nothing else happens. Every member says
/// what to do next: send `batch()` and report by `on_accepted` or `on_failure`; or call `on_time`
/// after a delay, in place of any delay given before.
class TelemetryQueue {
public:
    enum class Next : std::uint8_t { nothing, send, wait };
    struct Step {
        Next next{Next::nothing};
        std::chrono::nanoseconds delay{0};
        /// For the log, if not empty.
        std::string warning{};
    };
    struct Added {
        bool queued{false};
        Step step{};
    };

    explicit TelemetryQueue(TelemetryRules rules) noexcept : rules_{rules} {}

    /// All of a group or none of it.
    [[nodiscard]] Added add(std::vector<wire::TelemetryEvent> group, TimePoint now);
    /// Sends what is there, without waiting for the interval.
    [[nodiscard]] Step flush();
    [[nodiscard]] Step on_time();
    [[nodiscard]] Step on_accepted();
    [[nodiscard]] Step on_failure(Error const& error, TimePoint now);
    /// Forgets everything and takes nothing more.
    void stop() noexcept;

    [[nodiscard]] std::span<wire::TelemetryEvent const> batch() const noexcept { return batch_; }
    [[nodiscard]] std::deque<wire::TelemetryEvent> const& waiting() const noexcept {
        return waiting_;
    }
    [[nodiscard]] TelemetryCounts const& counts() const noexcept { return counts_; }
    /// Whether a batch is being sent; the wait before it is sent again apart.
    [[nodiscard]] bool sending() const noexcept { return state_ == State::sending; }
    [[nodiscard]] bool stopped() const noexcept { return state_ == State::stopped; }

private:
    enum class State : std::uint8_t {
        idle,       ///< nothing is queued
        gathering,  ///< until the interval is over or a batch is full
        sending,
        pausing,  ///< before the same batch is sent again
        stopped,
    };

    Step send_next();
    Step end_batch();
    static bool warns(std::optional<TimePoint>& last, TimePoint now,
                      std::chrono::nanoseconds interval) noexcept;

    TelemetryRules rules_;
    State state_{State::idle};
    std::deque<wire::TelemetryEvent> waiting_{};
    std::vector<wire::TelemetryEvent> batch_{};
    int retries_{0};  ///< of this batch
    TelemetryCounts counts_{};
    std::optional<TimePoint> warned_full_{};
    std::optional<TimePoint> warned_failure_{};
};

}  // namespace tinkxx::service
