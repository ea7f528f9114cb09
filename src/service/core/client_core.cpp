#include "service/core/client_core.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/core/encoding_choice.hpp"
#include "service/http/http_order.hpp"

#include <memory>
#include <string>
#include <utility>

namespace tinkxx::service {
namespace {

std::shared_ptr<HttpOrder const> make_submit_order(HttpContext const& http) {
    static constexpr std::string_view path = "/api/v1/asample";
    auto const& config = http.config();
    auto lines = *http.json_headers();
    lines.add("X-Tinker-Sampling-Backpressure", "1");
    HttpOrder order;
    order.operation = {.method = "POST", .path = std::string{path}};
    order.url = config.url(path);
    order.common_headers = std::make_shared<Headers const>(std::move(lines));
    order.purpose = Purpose::sample;
    order.timeouts = config.timeouts;
    order.max_retries = 0;
    return std::make_shared<HttpOrder const>(std::move(order));
}

PollRules poll_rules(ClientConfig const& config) {
    PollRules rules{.backoff = config.poll_backoff};
    if (auto const limit = config.poll_error_limit) {
        rules.same_errors_for.reset();
        if (limit->count() > 0) rules.same_errors_for = *limit;
    }
    return rules;
}

std::shared_ptr<EncodingChoice> choice_for(std::optional<SubmitEncoding> fixed, Session& session) {
    if (fixed) return std::make_shared<EncodingChoice>(*fixed);
    auto choice = session.http().runtime().part<EncodingChoices>()->get(session.endpoint_key());
    // A server without a configuration is too old for anything else (protocol.md 7.3).
    if (session.without_config() && choice->assume_old()) {
        session.http().log(LogLevel::info,
                           "the server has no client configuration; forward and "
                           "backward passes are sent as JSON");
    }
    return choice;
}

}  // namespace

ClientCore::Limits::Limits(ClientCore& core, Session& session)
    : count{core.config_->dispatch.count.value_or(default_count)},
      throttled{core.config_->dispatch.throttled.value_or(default_throttled)},
      bytes{session.sample_bytes_budget()},
      download{session.download_budget()},
      forward_backward{session.forward_backward_budget()},
      results{session.context(), download, poll_rules(*core.config_)},
      submit_order{make_submit_order(session.http())},
      gate{session.http().runtime().part<BackoffGates>()->get(
          session.endpoint_key(), session.credential_identity(), session.http().scheduler().now())},
      encodings{choice_for(core.config_->submit_encoding, session)},
      handlers{session.http().runtime().part<RetryHandlers>()},
      cancels{session.context(), [&session] { return session.dynamic(); }},
      random{session.http().scheduler().entropy("sampling")} {}

ClientCore::ClientCore(std::shared_ptr<Session> session, std::shared_ptr<ClientConfig const> config,
                       PendingList::Ids ids, std::optional<Runtime> runtime)
    : session_{std::move(session)},
      http_{session_->http()},
      context_{session_->context()},
      scheduler_{http_.scheduler()},
      config_{std::move(config)},
      runtime_{std::move(runtime)},
      bound_{PendingBound::make(config_->max_pending)},
      book_{http_, *config_, std::move(ids)} {}

std::shared_ptr<ClientCore> ClientCore::make(std::shared_ptr<Session> session,
                                             std::shared_ptr<ClientConfig const> config,
                                             PendingList::Ids ids, std::optional<Runtime> runtime) {
    auto const let_go = [](ClientCore* last) {
        // A task that a loop of ours drops unrun, since it has ended, takes it along just as well.
        std::unique_ptr<ClientCore> owner{last};
        auto& on = last->http().runtime();
        if (!reaches_loop(on)) return;
        on.scheduler().post([owner = std::move(owner)]() mutable {
            auto const closing = owner->session_;
            if (closing->kind() == SessionKind::shadow) return;  // shared; its last share closes it
            if (closing->http().runtime().shut_down()) return;   // it has ended, or is about to
            std::shared_ptr<ClientCore> const until_closed{std::move(owner)};
            closing->close(std::nullopt, [until_closed](Result<void> const&) {});
        });
    };
    return std::shared_ptr<ClientCore>{
        new ClientCore{std::move(session), std::move(config), std::move(ids), std::move(runtime)},
        let_go};
}

ClientCore::~ClientCore() {
    if (attached_) session_->remove(*this);
}

void ClientCore::attach() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (std::exchange(attached_, true)) return;
    session_->add(*this);
    telemetry_.emplace(*session_);
}

void ClientCore::prepare() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (limits_) return;
    limits_.emplace(*this, *session_);
}

Headers ClientCore::trace_headers() const {
    return service::trace_headers(http(), config_->trace_propagator);
}

Metadata ClientCore::metadata(Metadata call) const {
    auto const& common = http().config().metadata;
    call.insert(common.begin(), common.end());
    if (session_->ready()) call.try_emplace("session_id", session_->session_id());
    return call;
}

void ClientCore::tell_stage(OperationStatus const& standing, Metadata call) const {
    if (!wants_stages()) return;
    StageEvent told;
    told.id = standing.id;
    told.operation = standing.operation;
    told.stage = standing.stage;
    told.why = standing.why;
    told.metadata = metadata(std::move(call));
    http().tell(&Observer::on_stage, std::move(told));
}

void ClientCore::only_old_members() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (members_ == wire::Members::before_0_26) return;
    members_ = wire::Members::before_0_26;
    http().log(LogLevel::info,
               "the server does not know members of requests that are newer than 0.25.0; "
               "they are left out from here on");
}

void ClientCore::on_session_closing(bool finished) {
    auto const keep_alive = weak_from_this().lock();  // the last call may be its last user
    // First: what one call gives back must not let another begin that is to end as well.
    ending_ = true;
    if (limits_) limits_->results.stop();
    pending().close();
    listeners_.tell();
    // A session that is over on the server needs no cancels (R-FUT-72).
    if (limits_ && finished) limits_->cancels.close();
}

void ClientCore::drain(TimePoint deadline, std::function<void()> done) {
    TINKXX_ASSERT_LOOP(scheduler());
    if (!limits_) return done();
    limits_->cancels.drain(deadline, std::move(done));
}

ServiceStatus ClientCore::status() {
    TINKXX_ASSERT_LOOP(scheduler());
    auto const now = scheduler().now();
    ServiceStatus status;
    if (session_->ready()) status.session_id = session_->session_id();
    status.pending = pending().statuses(now);
    if (telemetry_) status.telemetry_queued = telemetry_->queued();
    if (auto const since = context().billing().since()) status.billing_pause = now - *since;
    if (!limits_) return status;
    auto const of = [](PermitLimit const& limit, std::optional<std::int64_t> free) {
        return LimitStatus{.free = free, .waiting = static_cast<std::int64_t>(limit.waiting())};
    };
    status.count = of(limits_->count, limits_->count.free());
    status.throttled = of(limits_->throttled, limits_->throttled.free());
    status.bytes = of(limits_->bytes, limits_->bytes.free());
    status.download = of(limits_->download, limits_->download.free());
    status.training_bytes = of(limits_->forward_backward, limits_->forward_backward.free());
    if (auto const until = limits_->gate->closed_until(now)) {
        status.backoff.active = true;
        status.backoff.ends_in = *until - now;
    }
    status.backoff.recent = limits_->gate->recent(now);
    return status;
}

}  // namespace tinkxx::service
