#include "service/sampling/sampling_shared.hpp"

#include "service/training/encoding_choice.hpp"

#include <algorithm>
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
    order.url = config.endpoint.url(path, config.query, {});
    order.common_headers = std::make_shared<Headers const>(std::move(lines));
    order.purpose = Purpose::sample;
    order.timeouts = config.timeouts;
    order.max_retries = 0;
    return std::make_shared<HttpOrder const>(std::move(order));
}

PollRules poll_rules(SamplingSettings const& settings) {
    PollRules rules{.backoff = settings.poll_backoff};
    if (auto const limit = settings.poll_error_limit) {
        rules.same_errors_for.reset();
        if (limit->count() > 0) rules.same_errors_for = *limit;
    }
    return rules;
}

std::shared_ptr<EncodingChoice> choice_for(std::optional<wire::Encoding> fixed, Holder& holder) {
    if (fixed) return std::make_shared<EncodingChoice>(*fixed);
    auto choice = holder.http().runtime().part<EncodingChoices>()->get(holder.endpoint_key());
    // A server without a configuration is too old for anything else (protocol.md 7.3).
    if (holder.without_config() && choice->assume_old()) {
        holder.http().log(LogLevel::info,
                          "the server has no client configuration; forward and "
                          "backward passes are sent as JSON");
    }
    return choice;
}

}  // namespace

SamplingShared::Limits::Limits(SamplingShared& shared, Holder& holder)
    : count{shared.settings_.count.value_or(default_count)},
      throttled{shared.settings_.throttled.value_or(default_throttled)},
      bytes{holder.sample_bytes_budget()},
      download{holder.download_budget()},
      forward_backward{holder.forward_backward_budget()},
      futures{holder.context(), download, poll_rules(shared.settings_)},
      submit_order{make_submit_order(holder.http())},
      gate{holder.http().runtime().part<BackoffGates>()->get(
          holder.endpoint_key(), holder.credential_identity(), holder.http().scheduler().now())},
      encodings{choice_for(shared.settings_.submit_encoding, holder)},
      handlers{holder.http().runtime().part<RetryHandlers>()},
      cancels{holder.context(), [&holder] { return holder.dynamic(); }},
      random{holder.http().scheduler().entropy("sampling")} {}

SamplingShared::SamplingShared(std::shared_ptr<Holder> holder, SamplingSettings settings)
    : holder_{std::move(holder)},
      settings_{std::move(settings)},
      bound_{PendingBound::make(settings_.max_pending, settings_.when_full)},
      wants_stages_{
          std::ranges::any_of(http().config().observers,
                              [](auto const& observer) { return observer->wants_stages(); })},
      pending_{settings_.ids} {
    bool const warns = settings_.warn_of_stalls && http().logs(LogLevel::warning);
    if (settings_.report || warns) {
        pending_.on_first([this] { on_first_pending(); });
    }
}

void SamplingShared::on_first_pending() {
    if (!settings_.report) {
        if (!stalls_) stalls_ = http().runtime().part<StallReporter>();
        return stalls_->watch(*this, scheduler());
    }
    if (!armed()) scheduler().arm(*this, scheduler().now() + between_reports, Precision::coarse);
}

StallReporter::Topic SamplingShared::topic() const {
    auto const& log = http().config().log;
    bool const own = log && log.target_type() != stderr_log().target_type();
    return {.server = holder_->endpoint_key(), .log = own ? settings_.ids.get() : nullptr};
}

void SamplingShared::warn(std::string const& line) { http().log(LogLevel::warning, line); }

std::shared_ptr<SamplingShared> SamplingShared::make(std::shared_ptr<Holder> holder,
                                                     SamplingSettings settings) {
    auto const let_go = [](SamplingShared* last) {
        // A task that a loop of ours drops unrun, since it has ended, takes it along just as well.
        std::unique_ptr<SamplingShared> owner{last};
        auto& core = last->http().runtime();
        if (!reaches_loop(core)) return;
        core.scheduler().post([owner = std::move(owner)]() mutable {
            auto const closing = owner->holder_;
            if (closing->kind() == HolderKind::shadow) return;  // shared; its last share closes it
            if (closing->http().runtime().shut_down()) return;  // it has ended, or is about to
            std::shared_ptr<SamplingShared> const until_closed{std::move(owner)};
            closing->close(std::nullopt, [until_closed](Result<void> const&) {});
        });
    };
    return std::shared_ptr<SamplingShared>{
        new SamplingShared{std::move(holder), std::move(settings)}, let_go};
}

SamplingShared::~SamplingShared() {
    if (stalls_) stalls_->forget(*this);
    if (attached_) holder_->remove(*this);
}

void SamplingShared::attach() {
    if (std::exchange(attached_, true)) return;
    holder_->add(*this);
    telemetry_.emplace(*holder_);
}

void SamplingShared::prepare() {
    if (limits_) return;
    limits_.emplace(*this, *holder_);
}

Metadata SamplingShared::metadata(Metadata call) const {
    auto const& common = http().config().metadata;
    call.insert(common.begin(), common.end());
    if (holder_->ready()) call.try_emplace("session_id", holder_->session_id());
    return call;
}

void SamplingShared::tell_stage(OperationStatus const& standing, Metadata call) const {
    if (!wants_stages_) return;
    StageEvent told;
    told.id = standing.id;
    told.operation = standing.operation;
    told.stage = standing.stage;
    told.why = standing.why;
    told.metadata = metadata(std::move(call));
    http().tell(&Observer::on_stage, std::move(told));
}

void SamplingShared::only_old_members() {
    if (members_ == wire::Members::before_0_26) return;
    members_ = wire::Members::before_0_26;
    http().log(LogLevel::info,
               "the server does not know members of requests that are newer than 0.25.0; "
               "they are left out from here on");
}

void SamplingShared::on_holder_closing(bool finished) {
    auto const keep_alive = weak_from_this().lock();  // the last operation may be its last user
    // First: what one operation gives back must not let another begin that is to end as well.
    ending_ = true;
    if (limits_) limits_->futures.stop();
    pending_.close();
    listeners_.tell();
    // A session that is over on the server needs no cancels (R-FUT-72).
    if (limits_ && finished) limits_->cancels.close();
}

void SamplingShared::drain(TimePoint deadline, std::function<void()> done) {
    if (!limits_) return done();
    limits_->cancels.drain(deadline, std::move(done));
}

void SamplingShared::on_time() {
    if (pending_.size() == 0) return;
    auto const now = scheduler().now();
    if (auto const awaited = pending_.awaited(); awaited.oldest != nullptr) {
        auto line = std::to_string(awaited.count) +
                    " pending; the oldest: " + to_string(awaited.oldest->status(now));
        http().runtime().run_callback(
            [report = settings_.report, line = std::move(line)] { report(line); });
    }
    scheduler().arm(*this, now + between_reports, Precision::coarse);
}

ServiceStatus SamplingShared::status() {
    auto const now = scheduler().now();
    ServiceStatus status;
    if (holder_->ready()) status.session_id = holder_->session_id();
    status.pending = pending_.statuses(now);
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
