#pragma once

#include <tinkxx/model_options.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/retry_config.hpp>

#include "base/common/intrusive_list.hpp"
#include "service/core/client_core.hpp"
#include "service/requests/service_request.hpp"
#include "service/results/completion_poll.hpp"
#include "service/results/queue_state_reporter.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// Waits until a sampler can be drawn from.
class SamplerWaiter {
public:
    virtual void on_sampler(Result<void> outcome) = 0;
    /// `Sampler::stage` has changed: to be looked at, and nothing else.
    virtual void on_standing() = 0;

protected:
    virtual ~SamplerWaiter() = default;

private:
    friend class Sampler;
    base::ListLinks<SamplerWaiter> links_{};
};

/// Where a sampler comes from.
struct SamplerPlan {
    /// The caller's. Names no weights if there is a `sampling_session_id`.
    SamplerOptions options{};
    /// Of a sampling session that exists already.
    std::string sampling_session_id{};
    /// A copy of another process's sampler, which needs numbers of its own (R-SESS-32, 36).
    bool copy{false};
};

/// One sampling session, from its creation on: its id, its sequence numbers, its retry handler
/// and its completion poll. Made on any thread, then for the loop thread only.
class Sampler final : public std::enable_shared_from_this<Sampler>,
                      private ReadyWaiter,
                      private CloseListener,
                      private ServiceRequest::Listener {
public:
    /// Its last handle may go on any thread: it ends on the loop.
    [[nodiscard]] static std::shared_ptr<Sampler> make(std::shared_ptr<ClientCore> core,
                                                       SamplerPlan plan);
    ~Sampler() override;

    /// Any thread.
    [[nodiscard]] ClientCore& core() const noexcept { return *core_; }
    [[nodiscard]] SamplerPlan const& plan() const noexcept { return plan_; }
    [[nodiscard]] std::string url(std::string_view path) const;

    /// The outcome, if it is known; else nothing yet, and `waiter` is told. Begins the creation if
    /// it was not begun, or failed before.
    [[nodiscard]] std::optional<Result<void>> when_ready(SamplerWaiter& waiter);
    /// `waiter` is not told any more.
    void forget(SamplerWaiter& waiter) noexcept;
    /// Where the creation stands.
    [[nodiscard]] Stage stage() const noexcept;
    [[nodiscard]] std::string standing(TimePoint now) const;
    /// As `ServiceRequest` has it, of the creation.
    [[nodiscard]] bool waits_for_service() const noexcept;
    /// Of the request that it, or its client, needs the answer to; empty if there is none.
    [[nodiscard]] std::optional<Standing> call_standing() const;
    /// When that ends at the latest, if it is known.
    [[nodiscard]] std::optional<TimePoint> until() const;

    // What follows is there once it is ready.
    [[nodiscard]] std::string const& id() const noexcept { return id_; }
    [[nodiscard]] std::int64_t next_seq_id() noexcept { return next_seq_id_++; }
    [[nodiscard]] std::int64_t peek_seq_id() const noexcept { return next_seq_id_; }
    [[nodiscard]] bool record_stability_info() const noexcept {
        return plan_.options.record_stability_info;
    }
    [[nodiscard]] std::shared_ptr<RetryConfig const> config_for(RetryOverrides const& overrides);
    [[nodiscard]] std::shared_ptr<RetryHandler> handler_for(RetryConfig const& config,
                                                            RetryOverrides const& overrides);
    /// Null until it is ready.
    [[nodiscard]] RetryHandler* handler() noexcept;
    [[nodiscard]] bool no_retries() const noexcept;
    [[nodiscard]] bool stuck_detection() const noexcept;
    /// Null where each sample polls for itself.
    [[nodiscard]] CompletionPoll* completions();

    [[nodiscard]] QueueStateReporter& reporter() noexcept { return reporter_; }
    void cancel_on_server(std::string const& request_id);
    void report_undecodable(Error const& error, std::string const& request_id, bool protobuf);
    /// Warns once that the server left out what was asked for (C-30). Nothing if none was.
    void warn_unanswered(std::string_view options);
    void capture(Error const& error);
    [[nodiscard]] Metadata metadata(Metadata call) const;

private:
    Sampler(std::shared_ptr<ClientCore> core, SamplerPlan plan);

    enum class State : std::uint8_t { idle, waiting_for_session, creating, joining, ready };

    void on_ready(Result<void> outcome) override;
    void on_standing() override;
    void on_closing() noexcept override;
    void on_response(HttpResponse response) override;
    void on_error(Error error) override;

    void create();
    void join();
    void send(std::string_view path, std::string body, Repeat repeat);
    [[nodiscard]] std::shared_ptr<RetryHandler> handler_of(RetryConfig const& config);
    void number_from(std::int64_t clone);
    void number_at_random();
    void tell_waiters(Result<void> const& outcome);
    void finish(Result<void> const& outcome);

    std::shared_ptr<ClientCore> const core_;
    SamplerPlan const plan_;

    State state_{State::idle};
    base::IntrusiveList<SamplerWaiter, &SamplerWaiter::links_> waiters_{};
    std::unique_ptr<ServiceRequest> call_{};
    std::shared_ptr<Sampler> self_{};  // while something is under way
    std::optional<std::int64_t> session_seq_id_{};
    std::string id_{};
    std::int64_t clone_{0};
    std::int64_t next_seq_id_{0};
    std::shared_ptr<RetryConfig const> config_{};
    std::shared_ptr<RetryHandler> handler_{};
    std::unique_ptr<CompletionPoll> completions_{};
    QueueStateReporter reporter_;
    bool unanswered_warned_{false};
};

}  // namespace tinkxx::service
