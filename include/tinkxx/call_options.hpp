#pragma once

#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/http.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/retry_config.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace tinkxx {

/// Options of one call. Every field has a working default.
struct CallOptions {
    /// Overrides the sampler's retry settings. For samples only.
    RetryOverrides retry{};
    /// Refuses the call for a while after too many consecutive failures; for a sample, it replaces
    /// the sampler's breaker. Every failed request counts, including those that are retried. Empty:
    /// none.
    std::optional<CircuitBreaker> circuit_breaker{};
    /// The call fails with `TimeoutError` after this time, whatever its stage. 0: the client's
    /// `ClientOptions::deadline`.
    std::chrono::milliseconds deadline{0};
    /// Called on the callback executor when the service reports on its queue.
    std::vector<QueueStateHandler> on_queue_state{};
    /// Whether the sampler logs warnings about the queue for this call.
    bool queue_warnings{true};
    /// Passed to observers; overrides the client's entries.
    Metadata metadata{};
};

}  // namespace tinkxx
