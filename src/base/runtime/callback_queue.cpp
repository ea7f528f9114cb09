#include "base/runtime/callback_queue.hpp"

#include "base/runtime/sdk_scope.hpp"

#include <utility>

namespace tinkxx::base {

bool CallbackQueue::push(Task& task) {
    if (!push_quietly(task)) return false;
    wake();
    return true;
}

bool CallbackQueue::push_quietly(Task& task) {
    std::scoped_lock const lock{mutex_};
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    return true;
}

void CallbackQueue::wake() noexcept {
    {
        std::scoped_lock const lock{mutex_};
        if (tasks_.empty() || !std::exchange(worker_waits_, false)) return;
    }
    more_.notify_one();
}

bool CallbackQueue::run_next() {
    Task task;
    {
        std::scoped_lock const lock{mutex_};
        if (tasks_.empty()) return false;
        task = std::move(tasks_.front());
        tasks_.pop_front();
        ++running_;
    }
    run(std::move(task));
    finished();
    return true;
}

void CallbackQueue::drop_next() {
    SdkScope const scope{runtime_};
    Task task;
    std::scoped_lock const lock{mutex_};
    if (tasks_.empty()) return;
    task = std::move(tasks_.front());
    tasks_.pop_front();
    // The lock is released before `task` is destroyed: it was declared first.
}

void CallbackQueue::run_now(Task task) {
    {
        std::scoped_lock const lock{mutex_};
        if (closed_) return;
        ++running_;
    }
    run(std::move(task));
    finished();
}

void CallbackQueue::work() {
    std::unique_lock lock{mutex_};
    for (;;) {
        while (!closed_ && tasks_.empty()) {
            worker_waits_ = true;
            more_.wait(lock);
        }
        if (closed_) return;
        // All that wait, so that a burst of them costs one lock.
        std::deque<Task> batch;
        std::swap(batch, tasks_);
        ++running_;
        lock.unlock();
        for (auto& task : batch) {
            if (closed_) break;
            run(std::move(task));
        }
        {
            SdkScope const scope{runtime_};
            batch.clear();
        }
        finished();
        lock.lock();
    }
}

std::deque<Task> CallbackQueue::close() noexcept {
    std::deque<Task> unrun;
    {
        std::scoped_lock const lock{mutex_};
        closed_ = true;
        std::swap(unrun, tasks_);
    }
    more_.notify_all();
    return unrun;
}

void CallbackQueue::wait_until_idle() noexcept {
    std::unique_lock lock{mutex_};
    idle_.wait(lock, [this] { return running_ == 0; });
}

void CallbackQueue::run(Task task) noexcept {
    SdkScope const scope{runtime_};
    try {
        auto own = std::move(task);  // destroyed inside the scope, and while it counts as running
        own();
    } catch (...) {
        if (on_exception_) on_exception_(std::current_exception());
    }
}

void CallbackQueue::finished() noexcept {
    bool last = false;
    {
        std::scoped_lock const lock{mutex_};
        last = --running_ == 0 && closed_;
    }
    if (last) idle_.notify_all();
}

}  // namespace tinkxx::base
