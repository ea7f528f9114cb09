#include <tinkxx/detail/process.hpp>
#include <tinkxx/error.hpp>
#include <tinkxx/runtime.hpp>

#include "base/common/fork.hpp"
#include "base/runtime/own_thread.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

/// What the threads of a pool share. They hold it, so that one may go on while the pool is
/// destroyed by the callback that it runs.
struct Pool {
    void work() {
        std::unique_lock lock{mutex};
        for (;;) {
            ++idle;
            more.wait(lock, [this] { return closed || !tasks.empty(); });
            --idle;
            if (closed) return;
            auto task = std::move(tasks.front());
            tasks.pop_front();
            lock.unlock();
            task();
            task = Task{};  // what it holds goes before the lock is taken again
            lock.lock();
        }
    }

    std::mutex mutex;  // guards all of it; never held while a task runs or is destroyed
    std::condition_variable more;
    std::deque<Task> tasks;
    std::size_t idle{0};
    bool closed{false};
};

class PoolExecutor final : public Executor {
public:
    explicit PoolExecutor(std::size_t threads) : most_{threads} { threads_.reserve(threads); }
    PoolExecutor(PoolExecutor const&) = delete;
    PoolExecutor& operator=(PoolExecutor const&) = delete;
    ~PoolExecutor() override {
        if (born_ == detail::forks()) {
            end();
        } else {
            strand();
        }
    }

    void run(Task task) override {
        if (born_ != detail::forks()) return;  // its threads are the parent's
        std::scoped_lock const lock{pool_->mutex};
        if (pool_->tasks.size() >= pool_->idle && threads_.size() < most_) add_thread();
        pool_->tasks.push_back(std::move(task));
        pool_->more.notify_one();
    }

private:
    void end() {
        std::deque<Task> unrun;
        {
            std::scoped_lock const lock{pool_->mutex};
            pool_->closed = true;
            std::swap(unrun, pool_->tasks);
        }
        pool_->more.notify_all();
        unrun.clear();
        for (auto& thread : threads_) {
            thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
        }
    }
    /// Under the lock. One thread will do if there are no more to be had.
    void add_thread() {
        try {
            threads_.push_back(base::start_thread("tinkxx-pool", [pool = pool_] { pool->work(); }));
        } catch (std::system_error const&) {
            if (threads_.empty()) throw;
        }
    }
    /// In a child process there is nobody to join, and a thread object must not be destroyed.
    void strand() noexcept {
        base::strand(std::make_shared<std::vector<std::thread>>(std::move(threads_)));
        base::strand(std::move(pool_));
    }

    std::size_t const most_;
    std::uint32_t const born_{detail::forks()};
    std::shared_ptr<Pool> pool_{std::make_shared<Pool>()};
    std::vector<std::thread> threads_{};
};

}  // namespace

std::shared_ptr<Executor> pool_executor(int threads) {
    if (threads < 1) {
        throw ValidationError{{.kind = ErrorKind::validation,
                               .message = "pool_executor: threads is " + std::to_string(threads) +
                                          "; it must be at least 1",
                               .field = "threads",
                               .value = std::to_string(threads)}};
    }
    return std::make_shared<PoolExecutor>(static_cast<std::size_t>(threads));
}

}  // namespace tinkxx
