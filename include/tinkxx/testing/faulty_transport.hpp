#pragma once

#include <tinkxx/scheduler.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tinkxx::testing {

/// Which faults a `FaultyTransport` makes, each with its probability per call in [0, 1].
struct FaultOptions {
    /// Equal seeds give equal faults to the n-th call, whatever became of the others.
    std::uint64_t seed{0};

    /// Fails with `Seen::no`; the inner transport never hears of the call.
    double drop_before{0};
    /// Answers with one of `statuses` in place of the server, who never hears of the call; with
    /// probability `retry_after` it asks for a wait of up to `retry_after_max`.
    double status{0};
    std::vector<int> statuses{429, 500, 503};
    double retry_after{0.5};
    std::chrono::milliseconds retry_after_max{5000};
    /// The call is made, its answer is swallowed, and it fails with `Seen::maybe`.
    double drop_after{0};
    /// The request is sent twice; the answer to the first is delivered.
    double duplicate{0};
    /// The answer breaks off somewhere in its body.
    double reset_body{0};
    /// The body comes in pieces of `trickle_bytes`, `trickle_delay` apart.
    double trickle{0};
    std::size_t trickle_bytes{16};
    std::chrono::nanoseconds trickle_delay{std::chrono::milliseconds{20}};
    /// The call, or the fault in its place, is held up for up to `delay_max`.
    double delay{0};
    std::chrono::nanoseconds delay_max{std::chrono::seconds{2}};
};

/// How often each fault was made.
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

/// Wraps any transport and makes its calls go wrong, by seed: to see how a program copes.
///
///     auto faulty = std::make_shared<testing::FaultyTransport>(
///         clock, inner, testing::FaultOptions{.seed = 7, .drop_after = 0.1, .status = 0.2});
///
/// What happens to a call depends on the seed and on the number of calls before it alone, so one
/// dropped call does not shift the faults of others. One of `drop_before`, `status` and
/// `drop_after` happens, in this order; the others can come together.
///
/// Loop thread only; outlives its calls. The scheduler outlives it.
class FaultyTransport final : public Transport {
public:
    FaultyTransport(Scheduler& scheduler, std::shared_ptr<Transport> inner, FaultOptions options);
    ~FaultyTransport() override;

    [[nodiscard]] FaultCounts const& counts() const noexcept;
    /// Whether the call of this number, counted from 0, reaches the inner transport, and how
    /// often: 0, 1 or 2.
    [[nodiscard]] int times_sent(std::uint64_t ordinal) const;
    /// Changes the faults of calls that are yet to be made; the numbering goes on.
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
