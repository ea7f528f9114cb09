#pragma once

#include <tinkxx/error.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <variant>

namespace tinkxx {

struct Recovery;

/// The latest checkpoint of the run that the service knows.
struct LatestCheckpoint {
    bool operator==(LatestCheckpoint const&) const = default;
};
/// A given checkpoint, `tinker://…`.
struct SpecificCheckpoint {
    std::string path{};

    bool operator==(SpecificCheckpoint const&) const = default;
};
/// Which checkpoint a run is restored from.
using CheckpointStrategy = std::variant<LatestCheckpoint, SpecificCheckpoint>;

/// How training runs are recovered. Invalid values, such as a negative time, are replaced by their
/// defaults.
struct RecoveryPolicy {
    /// If false, nothing is recovered.
    bool enabled{false};
    int max_attempts{3};
    /// The delay before the second attempt; it doubles with each further one, up to `max_backoff`.
    std::chrono::milliseconds backoff{std::chrono::seconds{5}};
    std::chrono::milliseconds max_backoff{std::chrono::seconds{60}};
    /// The interval at which a watched run is polled.
    std::chrono::milliseconds poll_interval{std::chrono::seconds{30}};
    /// An empty path means the latest checkpoint.
    CheckpointStrategy checkpoint{};
    /// Whether the optimizer state is restored too.
    bool restore_optimizer{true};
    /// Called on the callback executor; exceptions are logged and otherwise ignored.
    std::function<void(Recovery const& recovery)> on_recovery{};
    std::function<void(std::string const& run_id, Error const& reason)> on_failure{};
    /// The number of runs that are recovered concurrently.
    int max_concurrent{1};

    /// A copy with invalid values replaced by their defaults.
    [[nodiscard]] RecoveryPolicy checked() const;
};

}  // namespace tinkxx
