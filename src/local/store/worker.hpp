#pragma once

#include <tinkxx/scheduler.hpp>

#include <memory>

namespace tinkxx::local {

/// Does what may block, such as writing to a disk, one piece after the other. Loop thread.
///
/// Destroying it does first what is still waiting; nobody is told any more.
class Worker {
public:
    virtual ~Worker() = default;
    /// Runs `work` elsewhere, then `done` on the loop, never inside this call.
    virtual void run(Task work, Task done) = 0;
};

/// A worker with a thread of its own. The scheduler must outlive it.
[[nodiscard]] std::unique_ptr<Worker> thread_worker(Scheduler& scheduler);
/// One that works on the loop itself, so that a simulation has but one thread.
[[nodiscard]] std::unique_ptr<Worker> loop_worker(Scheduler& scheduler);

}  // namespace tinkxx::local
