#include "service/session/session.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/auth/command_credential.hpp"
#include "service/auth/identity.hpp"
#include "service/auth/process_runner.hpp"
#include "service/auth/session_credential.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

namespace {

constexpr std::string_view heartbeat_path = "/api/v1/session_heartbeat";
constexpr std::chrono::seconds heartbeat_timeout{10};

// Baselines where the server says nothing (R-CONF-22).
constexpr std::int64_t baseline_sample_bytes = std::int64_t{5} * 1024 * 1024;
constexpr std::int64_t baseline_concurrent_samples = 1000;

Timeouts each(std::chrono::milliseconds limit) {
    return {.connect = limit, .read = limit, .write = limit, .pool = limit};
}

/// There is no credential, and this is why.
class NoCredential final : public CredentialSource {
public:
    explicit NoCredential(Error error) noexcept : answer_{std::move(error)} {}
    std::optional<Result<Credential>> get(CredentialWaiter& /*waiter*/) override { return answer_; }
    void forget(CredentialWaiter& /*waiter*/) noexcept override {}
    std::string_view identity() const noexcept override { return {}; }

private:
    Result<Credential> answer_;
};

std::optional<std::string> unless_empty(std::string const& text) {
    return text.empty() ? std::nullopt : std::optional{text};
}

wire::CreateSession session_request(ClientConfig const& config) {
    return {.tags = config.tags,
            .user_metadata = config.user_metadata,
            .sdk_version = config.sdk_version,
            .project_id = unless_empty(config.project_id),
            .display_name = unless_empty(config.display_name)};
}

std::string configured_identity(CredentialConfig const& config) {
    auto const chosen = choose_credential(config);
    return chosen ? chosen->value : std::string{};
}

}  // namespace

/// Beats for the session until that ends (R-SESS-10).
class Session::Beat final : private HttpCall::Listener, private Timer {
public:
    explicit Beat(Session& session)
        : session_{&session},
          machine_{session.session_id(), session.config_->intervals,
                   session.http_->scheduler().now()},
          call_{*session.http_, *this} {
        arm(machine_.first());
    }

private:
    void on_time() override {
        auto order =
            session_->order(heartbeat_path, wire::encode_session_heartbeat(session_->session_id()),
                            Purpose::session);
        order.timeouts = each(heartbeat_timeout);
        order.max_retries = 0;
        machine_.on_sent(scheduler().now());
        call_.start(std::move(order));
    }
    void on_response(HttpResponse /*response*/) override {
        follow(machine_.on_success(scheduler().now()));
    }
    void on_error(Error error) override { follow(machine_.on_error(error, scheduler().now())); }

    void follow(Heartbeat::Next next) {
        if (!next.line.empty()) session_->http_->log(next.level, std::move(next.line));
        if (next.at) arm(*next.at);
    }
    void arm(TimePoint when) { scheduler().arm(*this, when, Precision::coarse); }
    [[nodiscard]] Scheduler& scheduler() const { return session_->http_->scheduler(); }

    Session* session_;
    Heartbeat machine_;
    HttpCall call_;
};

/// Fetches the dynamic config again and again (R-CONF-31).
class Session::Refresh final : private HttpCall::Listener, private Timer {
public:
    explicit Refresh(Session& session) : session_{&session}, call_{*session.http_, *this} { arm(); }

private:
    void on_time() override {
        auto order = session_->order(dynamic_config_path,
                                     wire::encode_sdk_version(session_->config_->sdk_version),
                                     Purpose::session);
        order.timeouts = each(StartUp::dynamic_timeout);
        order.max_retries = 0;
        call_.start(std::move(order));
    }
    void on_response(HttpResponse response) override {
        arm();  // first: the next interval may be another
        auto const flags = wire::decode_dynamic_flags(response.body);
        if (!flags) return kept(flags.error());
        if (*flags == session_->dynamic_) return;
        session_->dynamic_ = *flags;
        session_->http_->log(LogLevel::debug,
                             "dynamic config changed: " + wire::encode_dynamic_flags(*flags));
        arm();
    }
    void on_error(Error error) override {
        arm();
        kept(error);
    }
    void kept(Error const& error) {
        session_->http_->log(LogLevel::debug,
                             std::string{"dynamic config kept as it was: "} + error.what());
    }
    void arm() {
        auto& scheduler = session_->http_->scheduler();
        auto const wait = std::max<std::chrono::nanoseconds>(
            session_->dynamic_.refresh_interval_sec,
            session_->config_->intervals.dynamic_refresh_minimum);
        scheduler.arm(*this, scheduler.now() + wait, Precision::coarse);
    }

    Session* session_;
    HttpCall call_;
};

Session::Session(std::shared_ptr<ClientConfig const> config, SessionKind kind,
                 std::shared_ptr<detail::RuntimeCore> runtime, std::shared_ptr<Transport> transport,
                 std::optional<SessionSnapshot> snapshot, std::shared_ptr<ProcessRunner> runner)
    : config_{std::move(config)},
      kind_{snapshot ? SessionKind::shadow : kind},
      runtime_{std::move(runtime)},
      runner_{std::move(runner)},
      credential_{std::make_shared<SessionCredential>(
          std::make_shared<NoCredential>(Error{{.message = "not started"}}),
          configured_identity(config_->credentials))},
      http_{std::make_shared<HttpContext>(config_, runtime_, std::move(transport), credential_)},
      context_{http_},
      start_up_{snapshot ? StartUp{*snapshot} : StartUp{kind_, session_request(*config_)}},
      dynamic_{start_up_.dynamic()},
      call_{context_, *this} {}

Session::~Session() = default;

std::string const& Session::endpoint_key() const noexcept { return config_->endpoint.key(); }

std::string_view Session::credential_identity() const noexcept { return credential_->identity(); }

bool Session::usable() {
    if (!resident_ && !ended_) {
        resident_ = true;
        context_.set_owner(weak_from_this());
        runtime_->add(*this);  // ends at once if the runtime is shutting down
    }
    return !ended_;
}

HttpOrder Session::order(std::string_view path, std::string body, Purpose purpose) const {
    HttpOrder order;
    order.operation = {.method = "POST", .path = std::string{path}};
    order.url = config_->url(path);
    order.common_headers = http_->json_headers();
    order.body.tail = std::make_shared<std::string const>(std::move(body));
    order.purpose = purpose;
    order.timeouts = config_->timeouts;
    order.max_retries = config_->max_retries;
    return order;
}

std::shared_ptr<CredentialSource> Session::source(CredentialChoice choice) {
    if (choice.kind == CredentialChoice::Kind::key) {
        return std::make_shared<FixedCredential>(std::move(choice.value));
    }
    if (!runner_) runner_ = shell_runner(runtime_);
    return std::make_shared<CommandCredential>(std::move(choice.value), runner_,
                                               runtime_->scheduler());
}

/// Settles on a credential, now that the server has said which it takes.
std::optional<Error> Session::authenticate() {
    if (authenticated_) return std::nullopt;
    auto chosen = choose_credential(config_->credentials, flags());
    if (!chosen) return chosen.error();
    authenticated_ = true;
    context_.billing().set_limit(flags().billing_exception_max_pause_duration_sec);
    if (chosen->kind == CredentialChoice::Kind::key && names_its_user(chosen->value)) {
        token_key_ = std::make_shared<std::string const>(chosen->value);
    }
    auto raw = source(std::move(*chosen));
    if (flags().pjwt_auth_enabled) {
        credential_->exchange(std::move(raw), *http_);
    } else {
        credential_->use(std::move(raw));
    }
    return std::nullopt;
}

void Session::start() {
    TINKXX_ASSERT_LOOP(runtime_->scheduler());
    if (starting_ || ready_ || closing_ || !usable()) return;
    self_ = shared_from_this();
    starting_ = true;
    told_stage_ = Stage::starting;
    next_step();
}

void Session::next_step() {
    auto const step = start_up_.step();
    if (step == StartUp::Step::client_config) {
        // A command may have to be asked even for this.
        auto chosen = choose_credential(config_->credentials);
        if (!chosen) return fail(chosen.error());
        credential_->use(source(std::move(*chosen)));
    } else if (auto error = authenticate()) {
        return fail(std::move(*error));
    }
    if (step == StartUp::Step::done) return became_ready();
    auto wanted = start_up_.order();
    auto made = order(wanted.path, std::move(wanted.body), wanted.purpose);
    if (!wanted.http_retries) made.max_retries = 0;
    if (wanted.timeout.count() > 0) made.timeouts = each(wanted.timeout);
    call_.start(std::move(made), wanted.repeat);
}

void Session::on_response(HttpResponse response) {
    if (finishing_) {
        finished_ = true;
        return finished({});
    }
    bool const created = start_up_.step() == StartUp::Step::session;
    if (auto problem = start_up_.on_answer(response.body)) return fail(Error{std::move(*problem)});
    if (created) log_session();
    next_step();
}

void Session::on_error(Error error) {
    if (finishing_) {
        auto const status = error.http_status().value_or(0);
        if (error.kind() != ErrorKind::status || (status != 404 && status != 405)) {
            return finished(std::move(error));
        }
        http_->log(LogLevel::debug,
                   std::string{"this server cannot finish sessions: "} + error.what());
        return finished({});
    }
    auto const note = start_up_.on_error(error);
    if (!note) return fail(std::move(error));
    http_->log(LogLevel::debug, *note);
    next_step();
}

void Session::log_session() {
    auto const& session = start_up_.session();
    http_->log(LogLevel::info, "session " + session.session_id + " created");
    if (session.info_message) http_->log(LogLevel::info, one_line(*session.info_message));
    if (session.warning_message) http_->log(LogLevel::warning, one_line(*session.warning_message));
    if (session.error_message) http_->log(LogLevel::error, one_line(*session.error_message));
}

void Session::fail(Error error) {
    failure_ = std::move(error);
    tell_later();
}

void Session::became_ready() {
    starting_ = false;
    ready_ = true;
    dynamic_ = start_up_.dynamic();
    if (kind_ != SessionKind::sessionless) {
        beat_ = std::make_unique<Beat>(*this);
        refresh_ = std::make_unique<Refresh>(*this);
    }
    for (std::size_t i = parts_.size(); i > 0; --i) {
        auto* const part = parts_.pop_front();
        if (part == nullptr) break;  // it went away meanwhile
        parts_.push_back(*part);
        part->on_session_ready();
    }
    tell_later();
}

void Session::tell_later() {
    auto& scheduler = http_->scheduler();
    scheduler.arm(news_, scheduler.now(), Precision::exact);
}

void Session::tell_news() {
    if (failure_) {
        starting_ = false;
        auto const error = *std::exchange(failure_, std::nullopt);
        return tell_waiters(error);
    }
    if (closing_) return tell_waiters(*refusal("start"));
    if (ready_) tell_waiters({});
}

void Session::tell_waiters(Result<void> const& outcome) {
    auto const keep_alive = shared_from_this();
    auto const round = round_++;  // who comes while others are told waits for the next
    while (!waiters_.empty() && waiters_.front()->round_ <= round) {
        waiters_.pop_front()->on_ready(outcome);
    }
}

void Session::when_ready(ReadyWaiter& waiter) {
    TINKXX_ASSERT_LOOP(runtime_->scheduler());
    (void)usable();
    waiter.round_ = round_;
    waiters_.push_back(waiter);
    if (ready_ || closing_ || ended_) return tell_later();
    start();
}

void Session::forget(ReadyWaiter& waiter) noexcept {
    TINKXX_ASSERT_LOOP(runtime_->scheduler());
    if (waiter.links_.linked()) waiters_.erase(waiter);
}

std::optional<Error> Session::refusal(std::string_view operation) const {
    if (!closing_) return std::nullopt;
    return Error{
        {.kind = ErrorKind::closed, .message = std::string{operation} + ": the client was closed"}};
}

Stage Session::stage() const noexcept {
    if (closing_) return Stage::closing;
    bool const asks = starting_ && call_.doing() == Standing::Doing::credential;
    return asks ? Stage::waiting_for_credential : Stage::starting;
}

void Session::on_standing() {
    auto const now = stage();
    if (std::exchange(told_stage_, now) == now) return;
    for (auto* each = waiters_.front(); each != nullptr; each = each->links_.next) {
        each->on_standing();
    }
}

std::optional<TimePoint> Session::until() const {
    if (stage() == Stage::waiting_for_credential) return call_.standing().until;
    if (closing_ && !finishing_ && !ended_) return drained_until_;
    return std::nullopt;
}

std::optional<Standing> Session::call_standing() const {
    if (!call_.under_way()) return std::nullopt;
    return call_.standing();
}

std::string Session::standing() const {
    if (finishing_) {
        return "finishing the session: " + describe(call_.standing(), http_->scheduler().now());
    }
    if (closing_ && !ended_) return "sending what is left";
    if (closing_) return "closed";
    if (ready_) return {};
    if (!starting_) return "not started";
    return std::string{to_string(start_up_.step())} + ": " +
           describe(call_.standing(), http_->scheduler().now());
}

std::int64_t Session::sample_bytes_budget() const noexcept {
    return config_->dispatch.bytes.value_or(
        flags().sample_dispatch_bytes_semaphore_size.value_or(baseline_sample_bytes));
}
std::int64_t Session::max_concurrent_samples() const noexcept {
    return flags().sample_max_concurrent_requests.value_or(baseline_concurrent_samples);
}
std::int64_t Session::download_budget() const noexcept {
    return config_->download_bytes.value_or(flags().inflight_response_bytes_semaphore_size);
}
std::int64_t Session::chunk_items() const noexcept {
    return config_->chunks.items.value_or(flags().fwdbwd_max_chunk_len);
}
std::int64_t Session::chunk_bytes() const noexcept {
    return config_->chunks.bytes.value_or(flags().fwdbwd_max_chunk_bytes_count);
}
std::int64_t Session::forward_backward_budget() const noexcept {
    return config_->chunks.bytes_in_flight.value_or(flags().fwdbwd_dispatch_bytes_semaphore_size);
}
bool Session::completion_poll() const noexcept {
    return config_->completion_poll.value_or(flags().sample_use_retrieve_futures);
}
bool Session::join_sampling_session() const noexcept {
    return config_->join_sampling_session.value_or(flags().sample_join_sampling_session);
}

SessionSnapshot Session::snapshot() const {
    return {.session_id = session_id(), .flags = flags(), .dynamic = dynamic_};
}

Credential Session::exchanged_token() const {
    auto const* exchanged = credential_->exchanged();
    return exchanged != nullptr ? exchanged->token() : nullptr;
}

Credential Session::identity_token() const {
    if (auto token = exchanged_token()) return token;
    return token_key_;
}

void Session::add(SessionPart& part) noexcept { parts_.push_back(part); }

void Session::remove(SessionPart& part) noexcept {
    if (part.links_.linked()) parts_.erase(part);
}

void Session::close(std::optional<Finish> finish, Done done) {
    TINKXX_ASSERT_LOOP(runtime_->scheduler());
    if (ended_) {
        if (done) runtime_->scheduler().post([done = std::move(done)] { done({}); });
        return;
    }
    dones_.push_back(std::move(done));
    if (closing_) return;
    closing_ = true;
    self_ = shared_from_this();
    if (starting_) {
        call_.cancel();
        starting_ = false;
        failure_.reset();
    }
    tell_waiters(ErrorDetails{.kind = ErrorKind::cancelled,
                              .message = "start: cancelled, since the client was closed",
                              .stopped = RetryEnd::cancelled});
    if (!finish || !ready_ || kind_ != SessionKind::session) return finished({});
    finishing_ = true;
    auto made = order("/api/v1/sessions/" + session_id() + "/finish",
                      wire::encode_finish(finish->reason, finish->detail), Purpose::train);
    call_.start(std::move(made), Repeat::submit_loop);
}

void Session::finished(Result<void> outcome) {
    finishing_ = false;
    outcome_ = std::move(outcome);
    beat_.reset();
    refresh_.reset();
    tell_parts();  // before those of them that wait for a credential get the old one
    credential_->stop();
    drain();
}

void Session::tell_parts() {
    // Who was told goes to the end; parts may remove themselves and each other.
    while (!parts_.empty() && !parts_.front()->told_) {
        auto* const part = parts_.pop_front();
        part->told_ = true;
        parts_.push_back(*part);
        part->on_session_closing(finished_);
    }
}

void Session::drain() {
    auto& scheduler = runtime_->scheduler();
    auto const deadline = scheduler.now() + config_->intervals.telemetry_drain;
    drained_until_ = deadline;
    draining_ = 1;  // this call
    for (std::size_t i = parts_.size(); i > 0; --i) {
        auto* const part = parts_.pop_front();
        if (part == nullptr) break;
        parts_.push_back(*part);
        ++draining_;
        auto const called = std::make_shared<bool>(false);
        part->drain(deadline, [weak = weak_from_this(), called] {
            auto const self = weak.lock();
            if (!self || std::exchange(*called, true)) return;
            if (--self->draining_ == 0) self->end();
        });
    }
    scheduler.arm(drain_limit_, deadline, Precision::coarse);
    if (--draining_ == 0) end();
}

void Session::end_drain() { end(); }

void Session::end() noexcept {
    if (std::exchange(ended_, true)) return;
    auto const keep_alive = std::exchange(self_, nullptr);
    if (resident_) runtime_->remove(*this);
    auto& scheduler = runtime_->scheduler();
    scheduler.disarm(drain_limit_);
    // Who still waits is told, and keeps this until then; else the last share may go anywhere.
    if (waiters_.empty()) scheduler.disarm(news_);
    context_.close();
    auto const dones = std::exchange(dones_, {});
    bool first = true;
    for (auto const& done : dones) {
        if (done) done(std::exchange(first, false) ? outcome_ : Result<void>{});
        first = false;
    }
}

std::size_t Session::calls_under_way() const noexcept {
    // A client with a log of its own, or none, would not want the runtime to write for it.
    if (config_->own_log || !http_->logs(LogLevel::warning)) return 0;
    std::size_t calls = 0;
    for (auto const* part = parts_.front(); part != nullptr; part = part->links_.next) {
        calls += part->calls_under_way();
    }
    return calls;
}

void Session::on_shutdown() noexcept {
    auto const keep_alive = weak_from_this().lock();
    if (ended_) return;
    closing_ = true;
    call_.cancel();
    Error const cancelled{{.kind = ErrorKind::cancelled,
                           .message = "cancelled, since the runtime shuts down",
                           .stopped = RetryEnd::cancelled}};
    if (keep_alive) tell_waiters(failure_.value_or(cancelled));
    failure_.reset();
    finishing_ = false;
    outcome_ = cancelled;
    beat_.reset();
    refresh_.reset();
    tell_parts();  // before those of them that wait for a credential get the old one
    credential_->stop();
    http_->scheduler().disarm(news_);
    end();
}

}  // namespace tinkxx::service
