#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/scheduler.hpp>
#include <tinkxx/types/queue_state.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

class HttpContext;

/// Whose requests wait on the server.
struct QueueSubject {
    /// `Sampling`, `Training` or `Model creation`.
    std::string_view prefix{};
    /// What a rate limit means for it.
    std::string_view rate_limit{};
};
inline constexpr QueueSubject sampling_queue{"Sampling", "concurrent sampler weights limit hit"};
inline constexpr QueueSubject training_queue{"Training",
                                             "concurrent training clients rate limit hit"};
inline constexpr QueueSubject model_creation_queue{"Model creation",
                                                   "concurrent training clients rate limit hit"};

/// What the service said last about the queue in which a call waits.
struct QueueStanding {
    QueueState state{};
    std::string reason{};

    bool operator==(QueueStanding const&) const = default;
};

/// Decides which reports of waiting requests are worth a warning: one per minute for all requests
/// of one sampler or model (R-SAMP-60 … R-SAMP-63). A value of the client it belongs to.
class QueueStateReporter {
public:
    static constexpr std::chrono::seconds pause{60};

    explicit QueueStateReporter(QueueSubject subject) noexcept : subject_{subject} {}

    /// Tells of what the service says about the queue in which a call waits: the log, if that is
    /// worth a warning and the call does not want none; then the call's handlers and observers.
    /// `told` has the reason as the service gave it.
    void tell(HttpContext const& http, CallOptions const& call, QueueStateEvent told);

    /// The line to log at warning level, if any. `id` is that of the sampler or model.
    [[nodiscard]] std::optional<std::string> report(std::string_view id, QueueState state,
                                                    std::string_view reason, TimePoint now);
    /// What the service says, or else what the state usually means (R-SAMP-61).
    [[nodiscard]] std::string reason_for(QueueState state, std::string_view reason) const;

private:
    QueueSubject subject_;
    std::optional<TimePoint> warned_{};
};

}  // namespace tinkxx::service
