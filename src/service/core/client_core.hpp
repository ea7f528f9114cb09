#pragma once

#include <tinkxx/runtime.hpp>

#include "service/common/close_listener.hpp"
#include "service/common/random.hpp"
#include "service/core/call_book.hpp"
#include "service/core/pending.hpp"
#include "service/core/pending_bound.hpp"
#include "service/limits/backoff_gate.hpp"
#include "service/limits/permits.hpp"
#include "service/results/cancel_queue.hpp"
#include "service/results/result_poll.hpp"
#include "service/retry/retry_handler.hpp"
#include "service/session/session.hpp"
#include "service/session/session_telemetry.hpp"
#include "wire/sampling/sample.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// Whether a task that is posted now is run or destroyed. Nobody may ever turn a scheduler of the
/// user's again once the runtime has ended, so that a task would stay in it.
[[nodiscard]] inline bool reaches_loop(detail::RuntimeCore& core) noexcept {
    return core.event_loop() != nullptr || !core.shut_down() || core.scheduler().on_loop();
}

class EncodingChoice;

/// What all calls of one client share: the session, the limits of dispatch, the gate, the budget
/// for downloads, and the list of what is pending. Made on any thread, then for the loop thread
/// only; held by `std::shared_ptr`.
class ClientCore final : public std::enable_shared_from_this<ClientCore>, private SessionPart {
public:
    static constexpr std::int64_t default_count = 400;     // R-SAMP-20
    static constexpr std::int64_t default_throttled = 10;  // R-SAMP-21

    /// When the last handle goes away, on whatever thread, the session is closed on the loop, and
    /// what is left goes there too.
    ///
    /// `config` may say more than the session's, which others can share. `ids` numbers the calls;
    /// null: by itself. `runtime` is kept as long as a handle or a call needs the core; empty: it
    /// ends when others let go of it.
    [[nodiscard]] static std::shared_ptr<ClientCore> make(
        std::shared_ptr<Session> session, std::shared_ptr<ClientConfig const> config,
        PendingList::Ids ids, std::optional<Runtime> runtime);
    ~ClientCore() override;
    ClientCore(ClientCore const&) = delete;
    ClientCore& operator=(ClientCore const&) = delete;

    /// Any thread.

    [[nodiscard]] Session& session() const noexcept { return *session_; }
    [[nodiscard]] HttpContext& http() const noexcept { return http_; }
    [[nodiscard]] ServiceContext& context() const noexcept { return context_; }
    [[nodiscard]] Scheduler& scheduler() const noexcept { return scheduler_; }
    [[nodiscard]] ClientConfig const& config() const noexcept { return *config_; }
    [[nodiscard]] PendingList& pending() noexcept { return book_.pending(); }
    /// Any thread.
    [[nodiscard]] PendingBound& bound() const noexcept { return *bound_; }
    /// Whether an observer wants to know each step of each call. Any thread.
    [[nodiscard]] bool wants_stages() const noexcept { return book_.wants_stages(); }
    /// Tells observers, if they want to know. `call` is the metadata of the call.
    void tell_stage(OperationStatus const& standing, Metadata call) const;
    /// The lines of the caller's trace context (R-EXT-20). Called on the thread that makes a call.
    [[nodiscard]] Headers trace_headers() const;
    /// With the client's, which give way, and the session's id.
    [[nodiscard]] Metadata metadata(Metadata call) const;

    /// Joins the session, to be told when it closes. Harmless to repeat.
    void attach();
    /// `listener` is told when the client closes, once, unless it is forgotten before.
    void listen(CloseListener& listener) noexcept { listeners_.add(listener); }
    void forget(CloseListener& listener) noexcept { listeners_.remove(listener); }
    /// Once the session is ready, which is when the limits are known. Harmless to repeat.
    void prepare();
    /// What follows is there once prepared.
    [[nodiscard]] bool prepared() const noexcept { return limits_.has_value(); }
    [[nodiscard]] CountLimit& count() noexcept { return limits_->count; }
    [[nodiscard]] CountLimit& throttled() noexcept { return limits_->throttled; }
    [[nodiscard]] ByteBudget& bytes() noexcept { return limits_->bytes; }
    [[nodiscard]] ByteBudget& download() noexcept { return limits_->download; }
    /// Of forward and backward passes that are being submitted (R-TRAIN-33).
    [[nodiscard]] ByteBudget& forward_backward_bytes() noexcept {
        return limits_->forward_backward;
    }
    /// What is known about the server's encodings.
    [[nodiscard]] std::shared_ptr<EncodingChoice> const& encodings() const noexcept {
        return limits_->encodings;
    }
    [[nodiscard]] BackoffGate& gate() noexcept { return *limits_->gate; }
    [[nodiscard]] RetryHandlers& handlers() noexcept { return *limits_->handlers; }
    [[nodiscard]] CancelQueue& cancels() noexcept { return limits_->cancels; }
    [[nodiscard]] ResultSurroundings const& results() const noexcept { return limits_->results; }
    /// What all submits of samples have in common.
    [[nodiscard]] std::shared_ptr<HttpOrder const> const& submit_order() const noexcept {
        return limits_->submit_order;
    }
    /// In [0, 1).
    [[nodiscard]] double chance() { return limits_->random.unit(); }

    /// Which members of a request the server knows (R-WIRE-10).
    [[nodiscard]] wire::Members members() const noexcept { return members_; }
    void only_old_members();

    /// The calls under way are being ended, one after the other: none goes on.
    [[nodiscard]] bool ending() const noexcept { return ending_; }
    [[nodiscard]] ServiceStatus status();

private:
    ClientCore(std::shared_ptr<Session> session, std::shared_ptr<ClientConfig const> config,
               PendingList::Ids ids, std::optional<Runtime> runtime);

    struct Limits {
        Limits(ClientCore& core, Session& session);

        CountLimit count;
        CountLimit throttled;
        ByteBudget bytes;
        ByteBudget download;
        ByteBudget forward_backward;
        ResultSurroundings results;
        std::shared_ptr<HttpOrder const> submit_order;
        std::shared_ptr<BackoffGate> gate;
        std::shared_ptr<EncodingChoice> encodings;
        std::shared_ptr<RetryHandlers> handlers;
        CancelQueue cancels;
        Random random;
    };

    void on_session_closing(bool finished) override;
    [[nodiscard]] std::size_t calls_under_way() const noexcept override {
        return book_.pending().awaited().count;
    }
    void drain(TimePoint deadline, std::function<void()> done) override;

    std::shared_ptr<Session> const session_;
    // Of the session: what every call needs.
    HttpContext& http_;
    ServiceContext& context_;
    Scheduler& scheduler_;
    std::shared_ptr<ClientConfig const> const config_;
    std::optional<Runtime> const runtime_;
    std::shared_ptr<PendingBound> const bound_;
    CallBook book_;
    CloseListeners listeners_{};
    std::optional<SessionTelemetry> telemetry_{};
    std::optional<Limits> limits_{};
    wire::Members members_{wire::Members::newest};
    bool attached_{false};
    bool ending_{false};
};

}  // namespace tinkxx::service
