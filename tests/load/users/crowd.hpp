#pragma once

#include "load/latencies.hpp"
#include "load/options.hpp"
#include "load/problems.hpp"
#include "load/users/questions.hpp"

#include <tinkxx/tinkxx.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tinkxx::load {

/// What became of the samples so far.
struct Tally {
    std::uint64_t begun{0};
    std::uint64_t ended{0};
    std::uint64_t right{0};
    /// Failed by a fault that was asked for.
    std::uint64_t explained{0};
    double p50{0};
    double p99{0};
    double longest{0};
};

/// Users who each keep a number of samples under way. Each has a key, a session, a sampler and
/// connections of his own, as on machines of their own; they share one I/O thread. A refusal of one
/// key holds back all of its clients, so one key for all would have them wait for each other.
class Crowd {
public:
    Crowd(Options const& options, std::string const& url, Runtime const& runtime,
          std::vector<Question> const& questions, Problems& problems);

    void start();
    /// No more samples are begun.
    void stop() noexcept { open_ = false; }
    /// Whether all calls have ended by then.
    [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point limit);
    [[nodiscard]] Tally tally() const;
    /// How many numbers the samplers have used for their samples, repetitions included.
    [[nodiscard]] std::uint64_t numbers_used() const;
    /// What some of the pending samples wait for.
    [[nodiscard]] std::string pending() const;
    /// Ends all sessions; false if that takes too long.
    [[nodiscard]] bool close(std::chrono::steady_clock::time_point limit);

private:
    struct Call;
    void begin(std::size_t user, std::uint64_t number);
    void end(Call& call, Result<SampleResponse> const& result);

    int const samples_;
    std::vector<Question> const& questions_;
    Problems& problems_;
    std::vector<ServiceClient> services_{};
    std::vector<SamplingClient> samplers_{};
    std::atomic<bool> open_{true};
    mutable std::mutex mutex_{};
    std::condition_variable ended_{};
    Tally tally_{};
    Latencies latencies_{};
};

}  // namespace tinkxx::load
