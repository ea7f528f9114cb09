#pragma once

#include <tinkxx/scheduler.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

namespace tinkxx::base {

/// The callbacks of one runtime that wait for their executor. All members: any thread.
class CallbackQueue {
public:
    /// `runtime` is what `SdkScope` names inside callbacks.
    explicit CallbackQueue(void const* runtime) noexcept : runtime_{runtime} {}

    /// Who hears what callbacks throw. To be set before the first one.
    void on_exception(std::function<void(std::exception_ptr)> handler) {
        on_exception_ = std::move(handler);
    }

    /// Appends `task`; false, and `task` is left alone, once closed.
    bool push(Task& task);
    /// As `push`, but leaves it to a later `wake` to wake a worker that waits.
    bool push_quietly(Task& task);
    void wake() noexcept;
    /// Runs the first one. False if there is none.
    bool run_next();
    /// Destroys the first one unrun.
    void drop_next();
    /// Runs `task` here and now, unless closed.
    void run_now(Task task);
    /// Runs tasks as they come, until closed.
    void work();

    [[nodiscard]] bool closed() const noexcept { return closed_; }
    /// Takes and gives out no more tasks. Returns those that wait; those that are running go on.
    [[nodiscard]] std::deque<Task> close() noexcept;
    /// Waits for those that are running. After `close`, and not from inside one.
    void wait_until_idle() noexcept;

private:
    void run(Task task) noexcept;
    void finished() noexcept;

    void const* runtime_;
    std::function<void(std::exception_ptr)> on_exception_;

    // Guards all below. Never held while a task runs or is destroyed.
    std::mutex mutex_;
    std::condition_variable more_;
    std::condition_variable idle_;
    std::deque<Task> tasks_;
    int running_{0};
    bool worker_waits_{false};
    std::atomic<bool> closed_{false};  ///< written under the lock
};

}  // namespace tinkxx::base
