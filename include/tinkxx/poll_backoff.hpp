#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <variant>

namespace tinkxx {

/// A result that is not there yet is asked for again at once: the service holds such a request
/// until it has news.
struct NoPollBackoff {
    bool operator==(NoPollBackoff const&) const = default;
};

/// Waits `initial`, then twice as long each time, up to `max`. The first answer of another kind
/// begins anew.
struct ExponentialPollBackoff {
    std::chrono::milliseconds initial{std::chrono::seconds{1}};
    std::chrono::milliseconds max{std::chrono::seconds{30}};

    bool operator==(ExponentialPollBackoff const&) const = default;
};

/// Says how long to wait after the poll of that number, 0 for the first. Called on the I/O thread:
/// it must return at once. If it throws, or says less than nothing, there is no wait.
using PollBackoffFunction = std::function<std::chrono::milliseconds(std::int64_t iteration)>;

/// How long to wait before a result is asked for again after the answers 408 (not yet) and 5xx.
using PollBackoff = std::variant<NoPollBackoff, ExponentialPollBackoff, PollBackoffFunction>;

}  // namespace tinkxx
