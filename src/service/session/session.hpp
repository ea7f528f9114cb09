#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/service.hpp>

#include "base/common/intrusive_list.hpp"
#include "service/auth/credential_choice.hpp"
#include "service/common/alarm.hpp"
#include "service/http/client_config.hpp"
#include "service/http/credentials.hpp"
#include "service/requests/service_context.hpp"
#include "service/requests/service_request.hpp"
#include "service/session/heartbeat.hpp"
#include "service/session/start_up.hpp"
#include "wire/session/service_messages.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::service {

class SessionCredential;
class ProcessRunner;

/// Told once how the start-up of a session ended. `forget` it before it goes away.
class ReadyWaiter {
public:
    /// On the loop, never inside `when_ready`.
    virtual void on_ready(Result<void> outcome) = 0;
    /// `Session::stage` has changed: to be looked at, and nothing else.
    virtual void on_standing() {}

protected:
    virtual ~ReadyWaiter() = default;

private:
    friend class Session;
    base::ListLinks<ReadyWaiter> links_{};
    std::uint64_t round_{0};
};

/// Something that lives on a session and ends with it: telemetry, completion polls, the queue of
/// cancellations, calls under way. Loop thread only.
class SessionPart {
public:
    /// The session has become ready. A part that is added later is not told.
    virtual void on_session_ready() {}
    /// The session closes: end polls and calls, begin nothing new. `finished` if it was ended
    /// on the server too. The part may remove itself.
    virtual void on_session_closing(bool /*finished*/) {}
    /// Calls that callers wait for. Told to the runtime when that is shut down.
    [[nodiscard]] virtual std::size_t calls_under_way() const noexcept { return 0; }
    /// Then: send what is queued, until `deadline` at the latest, and call `done` once, which may
    /// be inside this call. HTTP calls can still be made.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): whoever overrides it keeps `done`
    virtual void drain(TimePoint /*deadline*/, std::function<void()> done) { done(); }

protected:
    virtual ~SessionPart() = default;

private:
    friend class Session;
    base::ListLinks<SessionPart> links_{};
    bool told_{false};
};

/// How a session is to end on the server (R-SESS-22).
struct Finish {
    CloseReason reason{CloseReason::success};
    std::optional<std::string> detail{};
};

/// A session with the service: configuration, credentials, the session on the server, if it is to
/// have one, and its heartbeat (R-CONF-41). Made on any thread, held by a `std::shared_ptr`; then,
/// but for what says otherwise, for the loop thread only.
///
/// Once it was started it stays until it is closed or the runtime shuts down.
class Session final : public std::enable_shared_from_this<Session>,
                      private detail::Resident,
                      private ServiceRequest::Listener {
public:
    using Done = std::function<void(Result<void>)>;

    /// `snapshot` makes a shadow, on a session that exists (R-SESS-31). Without a `runner` commands
    /// are run as processes.
    Session(std::shared_ptr<ClientConfig const> config, SessionKind kind,
            std::shared_ptr<detail::RuntimeCore> runtime, std::shared_ptr<Transport> transport,
            std::optional<SessionSnapshot> snapshot = {},
            std::shared_ptr<ProcessRunner> runner = {});
    ~Session() override;

    // Any thread.
    [[nodiscard]] SessionKind kind() const noexcept { return kind_; }
    [[nodiscard]] ClientConfig const& config() const noexcept { return *config_; }
    [[nodiscard]] HttpContext& http() const noexcept { return *http_; }
    /// Equal for sessions that talk to one service with one account: limits are shared by these
    /// (R-CONF-11). The second is a secret.
    [[nodiscard]] std::string const& endpoint_key() const noexcept;
    [[nodiscard]] std::string_view credential_identity() const noexcept;
    /// R-SESS-03, R-SESS-04: each gives 0, 1, 2 …
    [[nodiscard]] std::int64_t next_model_seq() noexcept { return model_seq_++; }
    [[nodiscard]] std::int64_t next_sampling_session_seq() noexcept { return sampling_seq_++; }
    [[nodiscard]] std::int64_t next_custom_loss_seq() noexcept { return custom_loss_seq_++; }

    /// Begins the start-up, unless it is under way or done. Harmless once closed.
    void start();
    /// Starts, and tells `waiter` from the loop once that has ended: at the next turn if it has. A
    /// start-up that failed fails all who wait; who comes later has it tried again.
    void when_ready(ReadyWaiter& waiter);
    /// `waiter` is not told any more. Harmless if it does not wait.
    void forget(ReadyWaiter& waiter) noexcept;
    [[nodiscard]] bool ready() const noexcept { return ready_ && !closing_; }
    [[nodiscard]] bool closing() const noexcept { return closing_; }
    /// Why no call can be made any more (R-CONF-45), or nothing.
    [[nodiscard]] std::optional<Error> refusal(std::string_view operation) const;
    /// `client config: attempt 3, next attempt in 4 s; last: …`; empty once ready.
    [[nodiscard]] std::string standing() const;
    /// Of the request that it makes to start or to end; empty if it makes none.
    [[nodiscard]] std::optional<Standing> call_standing() const;
    /// Of those who wait for the start-up.
    [[nodiscard]] Stage stage() const noexcept;
    /// It is starting, and as `ServiceRequest` has it.
    [[nodiscard]] bool waits_for_service() const noexcept {
        return starting_ && call_.waits_for_service();
    }
    /// When what it does now ends at the latest, if that is known.
    [[nodiscard]] std::optional<TimePoint> until() const;

    [[nodiscard]] ServiceContext& context() noexcept { return context_; }

    // Once ready.
    [[nodiscard]] wire::ClientFlags const& flags() const noexcept { return start_up_.flags(); }
    /// Whether the server had no configuration to give: then it is an old one.
    [[nodiscard]] bool without_config() const noexcept { return start_up_.without_config(); }
    /// As the server said last: read anew for every use (R-CONF-31).
    [[nodiscard]] wire::DynamicFlags const& dynamic() const noexcept { return dynamic_; }
    /// Empty for one that is for lookups only.
    [[nodiscard]] std::string const& session_id() const noexcept { return start_up_.session_id(); }
    // With the caller's choice in place of the server's, and that in place of the baseline
    // (R-CONF-22, R-CONF-24).
    [[nodiscard]] std::int64_t sample_bytes_budget() const noexcept;
    [[nodiscard]] std::int64_t max_concurrent_samples() const noexcept;
    [[nodiscard]] std::int64_t download_budget() const noexcept;
    [[nodiscard]] std::int64_t chunk_items() const noexcept;
    [[nodiscard]] std::int64_t chunk_bytes() const noexcept;
    [[nodiscard]] std::int64_t forward_backward_budget() const noexcept;
    [[nodiscard]] bool completion_poll() const noexcept;
    [[nodiscard]] bool join_sampling_session() const noexcept;
    /// What a shadow is made from.
    [[nodiscard]] SessionSnapshot snapshot() const;
    /// What the credential was exchanged for; null if it was not.
    [[nodiscard]] Credential exchanged_token() const;
    /// The token that is held, or the key if that is one itself; null if neither (R-AUTH-30).
    [[nodiscard]] Credential identity_token() const;

    void add(SessionPart& part) noexcept;
    void remove(SessionPart& part) noexcept;

    /// Ends everything in the order of R-SESS-24, then calls `done` on the loop: with the failure
    /// of the finish, if there was one. Those who wait get a cancellation error. A second close
    /// waits for the first and succeeds.
    void close(std::optional<Finish> finish, Done done);

private:
    class Beat;
    class Refresh;

    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_standing() override;
    void on_shutdown() noexcept override;
    [[nodiscard]] std::size_t calls_under_way() const noexcept override;

    [[nodiscard]] bool usable();
    [[nodiscard]] HttpOrder order(std::string_view path, std::string body, Purpose purpose) const;
    [[nodiscard]] std::shared_ptr<CredentialSource> source(CredentialChoice choice);
    [[nodiscard]] std::optional<Error> authenticate();
    void next_step();
    void fail(Error error);
    void became_ready();
    void tell_later();
    void tell_news();
    void tell_waiters(Result<void> const& outcome);
    void log_session();
    void finished(Result<void> outcome);
    void tell_parts();
    void drain();
    void end_drain();
    void end() noexcept;

    std::shared_ptr<ClientConfig const> const config_;
    SessionKind const kind_;
    std::shared_ptr<detail::RuntimeCore> const runtime_;
    std::shared_ptr<ProcessRunner> runner_;
    std::shared_ptr<SessionCredential> const credential_;
    std::shared_ptr<HttpContext> const http_;
    std::atomic<std::int64_t> model_seq_{0};
    std::atomic<std::int64_t> sampling_seq_{0};
    std::atomic<std::int64_t> custom_loss_seq_{0};

    // From here on for the loop thread only.
    ServiceContext context_;
    StartUp start_up_;
    wire::DynamicFlags dynamic_{};
    ServiceRequest call_;
    Alarm<Session> news_{*this, &Session::tell_news};
    Alarm<Session> drain_limit_{*this, &Session::end_drain};
    std::unique_ptr<Beat> beat_;
    std::unique_ptr<Refresh> refresh_;
    base::IntrusiveList<ReadyWaiter, &ReadyWaiter::links_> waiters_{};
    std::uint64_t round_{0};
    Stage told_stage_{Stage::starting};
    base::IntrusiveList<SessionPart, &SessionPart::links_> parts_{};
    std::shared_ptr<Session> self_{};  // from the start until the end
    bool resident_{false};
    bool authenticated_{false};
    Credential token_key_{};  ///< a key that is a token and says whom it stands for
    bool starting_{false};
    bool ready_{false};
    std::optional<Error> failure_{};  ///< of a start-up, until those who wait are told
    bool closing_{false};
    bool finishing_{false};
    bool finished_{false};  ///< the session was ended on the server
    bool ended_{false};
    std::size_t draining_{0};
    TimePoint drained_until_{};
    Result<void> outcome_{};  ///< of the close
    std::vector<Done> dones_{};
};

}  // namespace tinkxx::service
