#pragma once

#include <tinkxx/detail/unique_function.hpp>
#include <tinkxx/scheduler.hpp>

#include "base/loop/destruction_flag.hpp"
#include "service/common/random.hpp"
#include "service/http/http_call.hpp"
#include "service/telemetry/telemetry.hpp"
#include "service/telemetry/telemetry_queue.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tinkxx::service {

/// Longest wait for what a failed call left to be sent (R-TEL-31), and of a close (R-TEL-41).
inline constexpr std::chrono::seconds capture_drain{30};
inline constexpr std::chrono::seconds close_drain{5};

struct TelemetryOptions {
    /// Empty: session-less, under a made-up id and without events of start and end (R-TEL-40).
    std::string session_id{};
    /// As the official SDK would give it. Empty: the newest that this library stands in for.
    std::string sdk_version{};
    TelemetryRules rules{};
    /// The number of the process. Empty: ask the system.
    std::function<std::int64_t()> pid{};
};

/// Sends telemetry to the service: one per session (R-TEL-01..43). Nothing here fails or delays
/// whoever reports.
///
/// Loop thread only. Destroying it forgets all that is queued, and callbacks that wait. The
/// context outlives it.
class TelemetryReporter final : public Telemetry, private HttpCall::Listener, private Timer {
public:
    /// Told whether everything was sent, or at least tried. May destroy the reporter.
    using Drained = detail::UniqueFunction<void(bool drained)>;

    TelemetryReporter(HttpContext& context, TelemetryOptions options);
    ~TelemetryReporter() override;

    /// Queues `SESSION_START`. Once.
    void start();

    void event(std::string_view name, Severity severity, boost::json::object data) override;
    /// As `event`; false if the event was dropped.
    bool log(std::string_view name, Severity severity, boost::json::object data);
    /// A call ended in `error`: reports it and, once in the life of a reporter, `SESSION_END`;
    /// sends at once and then names the session in the log (R-TEL-31). Cancelled calls are not
    /// reported.
    void capture(Error const& error) override;
    /// Reports an error that ends nothing, and sends at once (R-TEL-30).
    void note(Error const& error);

    /// Sends what is queued, without waiting for the interval.
    void flush();
    /// As `flush`; calls `done` from the loop once all that was queued before is sent or given up,
    /// and at `deadline` at the latest.
    void flush_then(TimePoint deadline, Drained done);
    /// Queues `SESSION_END`, unless it was, sends what it can until `deadline`, then stops and
    /// calls `done` from the loop. What comes later is dropped.
    void close(TimePoint deadline, Drained done);

    [[nodiscard]] std::string const& session_id() const noexcept { return session_id_; }
    [[nodiscard]] TelemetryQueue const& queue() const noexcept { return queue_; }
    [[nodiscard]] std::int64_t next_index() const noexcept { return next_index_; }
    [[nodiscard]] bool session_ended() const noexcept { return session_ended_; }
    /// Callbacks of `flush_then` and `close` that wait.
    [[nodiscard]] std::size_t pending_drains() const noexcept { return drains_.waiting.size(); }

private:
    using What = decltype(wire::TelemetryEvent::what);
    struct Drain {
        std::uint64_t target{0};  ///< events that have to be flushed
        TimePoint deadline{};
        Drained done{};
    };
    struct Drains final : Timer {
        explicit Drains(TelemetryReporter& reporter) noexcept : owner{&reporter} {}
        void on_time() override { owner->end_drains(); }
        TelemetryReporter* owner;
        std::vector<Drain> waiting{};
    };

    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_time() override;

    template <class Fn>
    void guarded(Fn fn) noexcept;
    wire::TelemetryEvent make(What what, Severity severity);
    wire::TelemetryEvent make_error(Error const& error);
    bool add(std::vector<wire::TelemetryEvent> group);
    bool add_fatal(std::optional<Error> const& error);
    void follow(TelemetryQueue::Step step);
    void send();
    void stop() noexcept;
    void watch_drains() noexcept;
    void end_drains();
    [[nodiscard]] Scheduler& scheduler() const noexcept { return context_.scheduler(); }

    HttpContext& context_;
    std::function<std::int64_t()> const pid_;
    std::string const sdk_version_;
    bool const has_session_;
    TimePoint const started_;
    Random random_;
    std::int64_t random_pid_;  ///< the process that `random_` was seeded for
    std::string session_id_;
    std::int64_t next_index_{0};
    bool session_started_{false};
    bool session_ended_{false};
    bool closing_{false};
    bool naming_session_{false};  ///< a capture waits to be named in the log
    TelemetryQueue queue_;
    Drains drains_{*this};
    base::DestructionFlag destroyed_{};  ///< by those who are told that a drain is over
    HttpCall call_;
};

}  // namespace tinkxx::service
