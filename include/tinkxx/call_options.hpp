#pragma once

#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/http.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/retry_config.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace tinkxx {

/// How one call is made. Every field has a working default.
struct CallOptions {
    /// For samples, in place of the sampler's settings.
    RetryOverrides retry{};
    /// Refuses the call for a while once too many in a row have failed; a sample's is in place of
    /// the sampler's. Every failed request counts, also those that are repeated. Empty: none.
    std::optional<CircuitBreaker> circuit_breaker{};
    /// The call fails with `TimeoutError` after so long, wherever it stands. 0: the client's
    /// `ClientOptions::deadline`, which is none unless set.
    std::chrono::milliseconds deadline{0};
    /// Told what the service says about its queue, on the callback executor.
    std::vector<QueueStateHandler> on_queue_state{};
    /// Whether the sampler's own warnings about its queue are logged for this call too.
    bool queue_warnings{true};
    /// Given to observers; wins over the client's.
    Metadata metadata{};
};

}  // namespace tinkxx
