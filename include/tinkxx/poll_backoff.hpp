#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <variant>

namespace tinkxx {

/// Polls again at once for a result that is not ready: the service holds each poll until it has
/// news.
struct NoPollBackoff {
    bool operator==(NoPollBackoff const&) const = default;
};

/// Waits `initial` before the next poll, then twice as long each time, up to `max`. An answer of
/// another kind resets the delay.
struct ExponentialPollBackoff {
    std::chrono::milliseconds initial{std::chrono::seconds{1}};
    std::chrono::milliseconds max{std::chrono::seconds{30}};

    bool operator==(ExponentialPollBackoff const&) const = default;
};

/// Returns how long to wait after the poll with this number, starting at 0. Called on the I/O
/// thread, so it must return at once. If it throws or returns a negative time, there is no delay.
using PollBackoffFunction = std::function<std::chrono::milliseconds(std::int64_t iteration)>;

/// How long to wait before polling again after the answers 408 (not ready) and 5xx.
using PollBackoff = std::variant<NoPollBackoff, ExponentialPollBackoff, PollBackoffFunction>;

}  // namespace tinkxx
