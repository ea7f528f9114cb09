#pragma once

#include <tinkxx/scheduler.hpp>

#include "service/limits/backoff_gate.hpp"
#include "service/limits/permits.hpp"

#include <cstdint>

namespace tinkxx::service {

/// What all samples of a client pass on their way out.
struct DispatchPath {
    CountLimit& count;
    CountLimit& throttled;
    ByteBudget& bytes;
    BackoffGate const& gate;
};

/// What a sample holds from its dispatch until the service has accepted it.
struct DispatchPermits {
    Permit count{};
    Permit throttled{};
    Permit bytes{};
    /// What the prompt counts for.
    std::int64_t byte_cost{0};

    /// R-SAMP-11: in reverse order.
    void release();
};

/// Decides what a sample waits for before it is submitted (R-SAMP-10): permits, in the order in
/// which they are taken, then the gate. Reads no clock, and starts nothing. It is small, since
/// samples wait by the million; what they hold is kept by those that have the first permit.
class SampleDispatch {
public:
    enum class Action : std::uint8_t {
        wait_for_count,      ///< `waiter` is told
        hold,                ///< has the first permit: make room for the rest, and ask again
        wait_for_throttled,  ///< `waiter` is told
        wait_for_bytes,      ///< `waiter` is told
        encode,              ///< then say `encoded`
        wait_for_gate,       ///< until `BackoffGate::closed_until`
        submit,
    };

    /// From the beginning: holds nothing.
    void restart() noexcept { step_ = Step::count; }
    /// The request is written anew, or waits at the gate again; the permits are kept.
    void encode_again() noexcept { step_ = Step::encode; }
    void pass_gate_again() noexcept { step_ = Step::gate; }

    /// What follows. `permits` is null until `hold`.
    [[nodiscard]] Action next(DispatchPath const& path, PermitWaiter& waiter,
                              DispatchPermits* permits, std::int64_t prompt_bytes, TimePoint now);
    /// The permit has come that was waited for. True if it is the first one: as `hold`. Ask `next`
    /// afterwards.
    [[nodiscard]] bool granted(DispatchPath const& path, DispatchPermits* permits) noexcept;
    /// Whether it waits for the request to be written.
    [[nodiscard]] bool encodes() const noexcept { return step_ == Step::encode; }
    /// The request is written.
    void encoded() noexcept { step_ = Step::gate; }

private:
    enum class Step : std::uint8_t { count, throttled, bytes, encode, gate, submit };
    Step step_{Step::count};
};

}  // namespace tinkxx::service
