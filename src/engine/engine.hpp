#pragma once

#include <tinkxx/log.hpp>
#include <tinkxx/scheduler.hpp>

#include "engine/jobs.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace tinkxx::engine {

/// Who computes.
enum class Drive : std::uint8_t {
    own_threads,  ///< threads of the engine's own
    loop,         ///< nobody but the scheduler's loop, and it takes virtual time: for simulations
};

struct EngineOptions {
    Drive drive{Drive::own_threads};
    /// Threads that compute; 0: one for each CPU. One if the loop drives.
    unsigned threads{0};
    /// By how much they give way to other threads; 0: not at all.
    int niceness{0};
    /// Memory for keys and values of each model. Requests wait for it; one that could never fit is
    /// refused.
    std::size_t cache_bytes{std::size_t{1} << 30U};
    /// As in `SamplerOptions`.
    std::size_t prefill_tokens{256};
    /// As in `TrainOptions`.
    std::size_t piece_tokens{256};
    std::size_t activation_bytes{std::size_t{2} << 30U};
    /// What one token takes if the loop drives.
    std::chrono::nanoseconds token_time{std::chrono::microseconds{100}};
    /// Told once which instruction set is used. Empty: silent.
    LogSink log{};
};

/// Trains and samples any number of adapters over shared base models.
///
/// Jobs that name the same adapter take effect in the order of their submission: a sample sees the
/// steps before it and none after it. Jobs of different adapters are independent, but a new adapter
/// waits for its model if that is being loaded. Sampling and training share the processor half and
/// half while both have work; sampling waits for no more than one piece of a batch.
///
/// `submit` and `cancel` may be called from any thread and return at once. `Done` and `on_token`
/// run on the scheduler's loop. The destructor, called on the loop, ends what is under way after
/// its current piece; nobody is told anything any more.
class Engine {
public:
    /// The scheduler must outlive the engine.
    Engine(Scheduler& scheduler, EngineOptions const& options);
    ~Engine();
    Engine(Engine const&) = delete;
    Engine& operator=(Engine const&) = delete;

    template <class Job>
    JobId submit(Job job, Done<typename Job::Output> done) {
        auto entry = std::make_shared<JobEntry>();
        entry->ticket = Ticket<Job>{.job = std::move(job), .done = std::move(done)};
        return enqueue(std::move(entry));
    }

    /// Gives a job up. On the loop: its callbacks are not called any more. One that has not begun
    /// never does; sampling and `Forward` end at once and free what they hold; a `ForwardBackward`
    /// that has begun is computed to its end, so that gradients are never those of half a batch.
    /// Harmless for a job that is over. What its callbacks hold may be released on another thread.
    void cancel(JobId id);

    /// What it computes with: "plain", "avx2", "avx512" or "amx".
    [[nodiscard]] std::string_view instruction_set() const;

private:
    class Impl;
    JobId enqueue(JobPtr entry);

    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::engine
