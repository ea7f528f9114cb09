// What a sample tells about itself.
#include "service/results/standing.hpp"
#include "service/sampling/sample_call.hpp"

namespace tinkxx::service {

Stage SampleCall::shown() const noexcept {
    switch (stage_) {
        case Stage::starting:
        case Stage::creating_sampler:
        case Stage::waiting_for_credential:
            return sampler_->stage();
        case Stage::submitting:
            if (!exchange_ || exchange_->submitting() == nullptr) return stage_;
            return stage_of(exchange_->submitting()->doing());
        case Stage::polling:
            break;
        default:
            return stage_;
    }
    auto const* const poll = exchange_ ? exchange_->poll() : nullptr;
    return poll != nullptr ? stage_of(*poll) : Stage::polling;
}

void SampleCall::fill(OperationStatus& status, TimePoint now) const {
    if (why_) status.why = *why_;
    status.attempt = attempt_;
    if (exchange_) {
        status.request_id = exchange_->request_id();
        if (auto const* const queue = exchange_->queue()) {
            status.queue_state = queue->state;
            status.queue_reason = queue->reason;
        }
    }
    if (auto const at = deadline()) status.deadline_in = *at - now;  // also when it has come
    if (armed()) status.ends_in = until_ - now;
    if (handler() != nullptr) {
        if (auto const stuck = handler()->stuck_at()) status.gives_up_in = *stuck - now;
    }
    if (auto why = held_by()) status.why = *std::move(why);
    fill_of_stage(status, now);
}

std::optional<std::string> SampleCall::held_by() const {
    switch (stage_) {
        case Stage::waiting_for_slot:
            return "as many samples are under way as RetryConfig::max_connections or the server "
                   "allows";
        case Stage::waiting_for_count:
            return std::to_string(core().count().in_use()) +
                   " samples are being submitted (DispatchLimits::count)";
        case Stage::throttled:
            return "after a refusal for load only " + std::to_string(core().throttled().in_use()) +
                   " are submitted at a time (DispatchLimits::throttled)";
        case Stage::waiting_for_bytes:
            return "other prompts are being submitted (DispatchLimits::bytes); this one counts " +
                   std::to_string(exchange_->permits().byte_cost) + " bytes";
        case Stage::encoding:
            return "its long prompt is being written";
        case Stage::decoding:
            return "its long result is being read";
        default:
            return std::nullopt;
    }
}

void SampleCall::fill_of_stage(OperationStatus& status, TimePoint now) const {
    switch (stage_) {
        case Stage::starting:
        case Stage::creating_sampler:
        case Stage::waiting_for_credential:
            status.why = sampler_->standing(now);
            if (auto const until = sampler_->until()) status.ends_in = *until - now;
            if (auto const call = sampler_->call_standing()) describe_stall(status, *call, now);
            break;
        case Stage::waiting_for_completion:
            if (auto const* completions = sampler_->completions()) {
                status.why = completions->standing();
                if (auto const since = completions->failing_since()) status.stalled = now - *since;
            }
            break;
        case Stage::backing_off:
        case Stage::billing_pause:
        case Stage::waiting_to_retry: {
            bool const submitted = exchange_ && exchange_->stalled_since() != TimePoint{};
            status.stalled = now - (submitted ? exchange_->stalled_since() : shown_since());
            break;
        }
        case Stage::submitting:
            if (auto const* const request = exchange_ ? exchange_->submitting() : nullptr) {
                describe(status, *request, now);
                status.stalled = now - exchange_->stalled_since();
            }
            break;
        case Stage::polling:
            if (auto const* const poll = exchange_ ? exchange_->poll() : nullptr) {
                describe(status, *poll, core().http(), now);
            }
            break;
        default:
            break;
    }
}

}  // namespace tinkxx::service
