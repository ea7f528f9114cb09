#pragma once

#include <tinkxx/scheduler.hpp>

#include <cstdint>
#include <memory>

namespace tinkxx::local {

/// What becomes of the work that is still waiting when a worker ends.
enum class Rest : std::uint8_t {
    finish,  ///< it is done first
    drop,
};

/// Does what may block or take long, one piece after the other. Loop thread.
///
/// Once it is destroyed nobody is told any more. Work must not throw.
class Worker {
public:
    virtual ~Worker() = default;
    /// Runs `work` elsewhere, then `done` on the loop, never inside this call.
    virtual void run(Task work, Task done) = 0;
};

/// A worker with a thread of its own, which gives way to others by `niceness`. The scheduler must
/// outlive it.
[[nodiscard]] std::unique_ptr<Worker> thread_worker(Scheduler& scheduler, Rest rest,
                                                    int niceness = 0);
/// One that works on the loop itself, so that a simulation has but one thread.
[[nodiscard]] std::unique_ptr<Worker> loop_worker(Scheduler& scheduler, Rest rest);

}  // namespace tinkxx::local
