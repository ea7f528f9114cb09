#include "service/sampling/sample_dispatch.hpp"

namespace tinkxx::service {
namespace {

// R-SAMP-24: a request counts for so many while the server is short of breath.
constexpr std::int64_t recent_backoff_cost = 20;

}  // namespace

void DispatchPermits::release() {
    bytes.release();
    throttled.release();
    count.release();
}

SampleDispatch::Action SampleDispatch::next(DispatchPath const& path, PermitWaiter& waiter,
                                            DispatchPermits* permits, std::int64_t prompt_bytes,
                                            TimePoint now) {
    switch (step_) {
        case Step::count:
            if (!path.count.acquire(waiter)) return Action::wait_for_count;
            step_ = Step::throttled;
            return Action::hold;
        case Step::throttled:
            if (path.gate.recent(now)) {
                if (!path.throttled.acquire(waiter)) return Action::wait_for_throttled;
                permits->throttled = Permit{path.throttled};
            }
            step_ = Step::bytes;
            [[fallthrough]];
        case Step::bytes:
            permits->byte_cost = prompt_bytes;
            if (path.gate.recent(now)) permits->byte_cost *= recent_backoff_cost;
            if (!path.bytes.acquire(waiter, permits->byte_cost)) return Action::wait_for_bytes;
            permits->bytes = Permit{path.bytes, permits->byte_cost};
            step_ = Step::encode;
            [[fallthrough]];
        case Step::encode:
            return Action::encode;
        case Step::gate:
            if (path.gate.closed_until(now)) return Action::wait_for_gate;
            step_ = Step::submit;
            [[fallthrough]];
        case Step::submit:
            break;
    }
    return Action::submit;
}

bool SampleDispatch::granted(DispatchPath const& path, DispatchPermits* permits) noexcept {
    switch (step_) {
        case Step::count:
            step_ = Step::throttled;
            return true;
        case Step::throttled:
            permits->throttled = Permit{path.throttled};
            step_ = Step::bytes;
            return false;
        default:
            permits->bytes = Permit{path.bytes, permits->byte_cost};
            step_ = Step::encode;
            return false;
    }
}

}  // namespace tinkxx::service
