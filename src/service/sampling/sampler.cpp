#include "service/sampling/sampler.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/results/poll_machine.hpp"
#include "service/sampling/sampler_handle.hpp"
#include "wire/session/service_messages.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {
namespace {

constexpr std::string_view create_path = "/api/v1/create_sampling_session";
constexpr std::string_view join_path = "/api/v1/join_sampling_session";

}  // namespace

Sampler::Sampler(std::shared_ptr<ClientCore> core, SamplerPlan plan)
    : core_{std::move(core)},
      plan_{std::move(plan)},
      config_{std::make_shared<RetryConfig const>(plan_.options.retry)},
      reporter_{sampling_queue} {}

std::shared_ptr<Sampler> Sampler::make(std::shared_ptr<ClientCore> core, SamplerPlan plan) {
    auto const let_go = [](Sampler* last) {
        std::unique_ptr<Sampler> owner{last};
        auto& runtime = last->core_->http().runtime();
        // Without threads it may never be turned again, and would hold what is posted for ever.
        if (runtime.zero_thread() || runtime.scheduler().on_loop() || !reaches_loop(runtime))
            return;
        runtime.scheduler().post([owner = std::move(owner)] {});
    };
    return std::shared_ptr<Sampler>{new Sampler{std::move(core), std::move(plan)}, let_go};
}

Sampler::~Sampler() = default;

std::string Sampler::url(std::string_view path) const { return core_->http().config().url(path); }

std::optional<Result<void>> Sampler::when_ready(SamplerWaiter& waiter) {
    TINKXX_ASSERT_LOOP(core_->scheduler());
    if (state_ == State::ready) return Result<void>{};
    waiters_.push_back(waiter);
    if (state_ == State::idle) {
        core_->attach();
        self_ = shared_from_this();
        state_ = State::waiting_for_session;
        core_->session().when_ready(*this);
    }
    return std::nullopt;
}

void Sampler::forget(SamplerWaiter& waiter) noexcept {
    TINKXX_ASSERT_LOOP(core_->scheduler());
    if (waiter.links_.linked()) waiters_.erase(waiter);
}

void Sampler::on_ready(Result<void> outcome) {
    if (!outcome) return finish(outcome);
    core_->prepare();
    if (!plan_.sampling_session_id.empty()) {
        id_ = plan_.sampling_session_id;
        return plan_.copy ? join() : finish({});
    }
    create();
}

void Sampler::create() {
    state_ = State::creating;
    // The same number when it is tried again: the server then knows it for the same session.
    if (!session_seq_id_) session_seq_id_ = core_->session().next_sampling_session_seq();
    wire::CreateSamplingSession request;
    request.session_id = core_->session().session_id();
    request.sampling_session_seq_id = *session_seq_id_;
    if (!plan_.options.base_model.empty()) request.base_model = plan_.options.base_model;
    if (!plan_.options.model_path.empty()) request.model_path = plan_.options.model_path;
    send(create_path, wire::encode_create_sampling_session(request), Repeat::once);
}

void Sampler::join() {
    if (!core_->session().join_sampling_session()) {
        number_at_random();
        return finish({});
    }
    state_ = State::joining;
    send(join_path, wire::encode_join_sampling_session(id_), Repeat::submit_loop);
}

void Sampler::send(std::string_view path, std::string body, Repeat repeat) {
    HttpOrder order;
    order.operation = {.method = "POST", .path = std::string{path}};
    order.url = url(path);
    order.common_headers = core_->http().json_headers();
    order.body.head = std::make_shared<std::string const>(std::move(body));
    order.purpose = Purpose::session;
    order.timeouts = core_->http().config().timeouts;
    order.max_retries = core_->http().config().max_retries;
    ServiceRequest::Listener& listener = *this;
    call_ = std::make_unique<ServiceRequest>(core_->context(), listener);
    call_->start(std::move(order), repeat);
    core_->listen(*this);
    on_standing();
}

void Sampler::on_standing() {
    for (auto* each = waiters_.front(); each != nullptr; each = each->links_.next) {
        each->on_standing();
    }
}

void Sampler::on_closing() noexcept {
    finish(ErrorDetails{.kind = ErrorKind::cancelled,
                        .message = "create_sampling_client: the client was closed",
                        .stopped = RetryEnd::cancelled});
}

void Sampler::on_response(HttpResponse response) {
    if (state_ == State::joining) {
        auto const counter = wire::decode_sampling_session_joined(response.body);
        if (!counter) return finish(counter.error());
        number_from(*counter);
        return finish({});
    }
    auto id = wire::decode_sampling_session_created(response.body);
    if (!id) return finish(id.error());
    id_ = *std::move(id);
    finish({});
}

void Sampler::on_error(Error error) {
    auto const status = error.http_status().value_or(0);
    if (state_ == State::joining && (status == 404 || status == 405)) {
        // A server without the feature: a number of one's own will do (protocol.md §7.3).
        number_at_random();
        return finish({});
    }
    finish(std::move(error));
}

void Sampler::number_from(std::int64_t clone) {
    clone_ = clone;
    next_seq_id_ = clone * sequence_ids_per_copy;
}

void Sampler::number_at_random() {
    auto const high = core_->scheduler().entropy("clone");
    number_from(random_clone_id(high, core_->scheduler().entropy("clone")));
}

void Sampler::finish(Result<void> const& outcome) {
    auto const keep_alive = std::move(self_);
    core_->forget(static_cast<CloseListener&>(*this));
    call_.reset();
    state_ = outcome ? State::ready : State::idle;
    if (outcome) handler_ = handler_of(*config_);
    tell_waiters(outcome);
}

/// Those who come while these are told wait for another try: a mark stands before them. All stay in
/// one list, since any of them may be forgotten meanwhile.
void Sampler::tell_waiters(Result<void> const& outcome) {
    struct Mark final : SamplerWaiter {
        explicit Mark(Sampler& its_sampler) noexcept : sampler{its_sampler} {}
        ~Mark() override { sampler.forget(*this); }
        void on_sampler(Result<void> /*outcome*/) override {}
        void on_standing() override {}
        Sampler& sampler;
    };
    Mark mark{*this};
    SamplerWaiter& last = mark;
    waiters_.push_back(last);
    while (last.links_.linked()) waiters_.pop_front()->on_sampler(outcome);
}

Stage Sampler::stage() const noexcept {
    if (!call_) return core_->session().stage();
    return call_->doing() == Standing::Doing::credential ? Stage::waiting_for_credential
                                                         : Stage::creating_sampler;
}

bool Sampler::waits_for_service() const noexcept {
    return call_ ? call_->waits_for_service() : core_->session().waits_for_service();
}

std::optional<TimePoint> Sampler::until() const {
    if (!call_) return core_->session().until();
    if (stage() == Stage::waiting_for_credential) return call_->standing().until;
    return std::nullopt;
}

std::optional<Standing> Sampler::call_standing() const {
    if (call_) return call_->standing();
    return core_->session().call_standing();
}

std::string Sampler::standing(TimePoint now) const {
    if (call_) return describe(call_->standing(), now);
    return core_->session().standing();
}

std::shared_ptr<RetryConfig const> Sampler::config_for(RetryOverrides const& overrides) {
    TINKXX_ASSERT_LOOP(core_->scheduler());
    if (overrides == RetryOverrides{}) return config_;
    return std::make_shared<RetryConfig const>(overrides.over(*config_));
}

/// R-RETRY-05, C-02, C-27: the caller's limit, capped by the server's; none with the completion
/// poll unless the caller set one.
std::shared_ptr<RetryHandler> Sampler::handler_of(RetryConfig const& config) {
    auto const& session = core_->session();
    std::optional<std::int64_t> limit = config.max_connections;
    if (!session.completion_poll()) {
        auto const servers = session.flags().sample_max_concurrent_requests;
        if (!limit) limit = session.max_concurrent_samples();
        if (servers) limit = std::min(*limit, *servers);
    }
    auto const account =
        RetryHandlers::account(session.endpoint_key(), session.credential_identity());
    return core_->handlers().get(account, id_, config, limit, core_->context().telemetry(),
                                 core_->scheduler());
}

std::shared_ptr<RetryHandler> Sampler::handler_for(RetryConfig const& config,
                                                   RetryOverrides const& overrides) {
    TINKXX_ASSERT_LOOP(core_->scheduler());
    // R-RETRY-60: a call shares semaphore and counters unless it has a limit of its own.
    bool const own = overrides.max_connections.is_set() || overrides.semaphore_key;
    return own ? handler_of(config) : handler_;
}

RetryHandler* Sampler::handler() noexcept { return handler_.get(); }

bool Sampler::no_retries() const noexcept { return core_->session().flags().sample_no_retries; }

bool Sampler::stuck_detection() const noexcept {
    return core_->session().flags().sample_enable_stuck_detection;
}

CompletionPoll* Sampler::completions() {
    TINKXX_ASSERT_LOOP(core_->scheduler());
    if (!core_->session().completion_poll()) return nullptr;
    if (!completions_) {
        completions_ = std::make_unique<CompletionPoll>(core_->results(), id_, clone_);
    }
    return completions_->works() ? completions_.get() : nullptr;
}

void Sampler::cancel_on_server(std::string const& request_id) {
    core_->cancels().cancel(request_id);
}

void Sampler::report_undecodable(Error const& error, std::string const& request_id, bool protobuf) {
    report_unreadable_result(core_->context().telemetry(), request_id, "Sample", protobuf, error);
}

void Sampler::warn_unanswered(std::string_view options) {
    TINKXX_ASSERT_LOOP(core_->scheduler());
    if (options.empty() || std::exchange(unanswered_warned_, true)) return;
    core_->http().log(LogLevel::warning,
                      "sample: the server did not answer " + std::string{options} +
                          ", so these parts of the response are empty; it may predate them");
}

void Sampler::capture(Error const& error) {
    if (auto* const to = core_->context().telemetry()) to->capture(error);
}

Metadata Sampler::metadata(Metadata call) const {
    call = core_->metadata(std::move(call));
    if (!id_.empty()) call.try_emplace("sampling_session_id", id_);
    return call;
}

}  // namespace tinkxx::service
