#pragma once

#include <tinkxx/scheduler.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tinkxx::testing {

/// The faults of a `FaultyTransport`, each with its probability per call in [0, 1].
struct FaultOptions {
    /// Equal seeds cause equal faults in the n-th call, independently of other calls.
    std::uint64_t seed{0};

    /// Fails with `Seen::no`; the inner transport is not called.
    double drop_before{0};
    /// Answers with one of `statuses` without calling the server; with probability `retry_after` it
    /// asks for a delay of up to `retry_after_max`.
    double status{0};
    std::vector<int> statuses{429, 500, 503};
    double retry_after{0.5};
    std::chrono::milliseconds retry_after_max{5000};
    /// Makes the call, discards its answer, and fails with `Seen::maybe`.
    double drop_after{0};
    /// Sends the request twice and delivers the answer to the first.
    double duplicate{0};
    /// The answer breaks off somewhere in its body.
    double reset_body{0};
    /// The body arrives in pieces of `trickle_bytes`, `trickle_delay` apart.
    double trickle{0};
    std::size_t trickle_bytes{16};
    std::chrono::nanoseconds trickle_delay{std::chrono::milliseconds{20}};
    /// The call, or the fault that replaces it, is delayed by up to `delay_max`.
    double delay{0};
    std::chrono::nanoseconds delay_max{std::chrono::seconds{2}};
};

/// How often each fault occurred.
struct FaultCounts {
    std::uint64_t calls{0};
    std::uint64_t drop_before{0};
    std::uint64_t status{0};
    std::uint64_t drop_after{0};
    std::uint64_t duplicate{0};
    std::uint64_t reset_body{0};
    std::uint64_t trickle{0};
    std::uint64_t delay{0};

    bool operator==(FaultCounts const&) const = default;
};

/// Wraps a transport and injects faults into its calls, determined by a seed.
///
///     auto faulty = std::make_shared<testing::FaultyTransport>(
///         clock, inner, testing::FaultOptions{.seed = 7, .drop_after = 0.1, .status = 0.2});
///
/// What happens to a call depends only on the seed and the number of calls before it, so one
/// dropped call does not shift the faults of others. At most one of `drop_before`, `status` and
/// `drop_after` occurs, tried in this order; the other faults can be combined.
///
/// Loop thread only. It must outlive its calls, and the scheduler must outlive it.
class FaultyTransport final : public Transport {
public:
    FaultyTransport(Scheduler& scheduler, std::shared_ptr<Transport> inner, FaultOptions options);
    ~FaultyTransport() override;

    [[nodiscard]] FaultCounts const& counts() const noexcept;
    /// How often the call with this number, counted from 0, reaches the inner transport: 0, 1 or 2
    /// times.
    [[nodiscard]] int times_sent(std::uint64_t ordinal) const;
    /// Changes the faults of later calls. Numbering continues.
    void set_options(FaultOptions options);

    Call start(Request request, ReplySink& sink) override;
    void cancel(Call call) noexcept override;
    void pause(Call call, bool on) noexcept override;
    void discard(Call call) noexcept override;
    void drain(TimePoint deadline) noexcept override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::testing
