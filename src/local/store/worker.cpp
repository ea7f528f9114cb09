#include "local/store/worker.hpp"

#include "base/common/give_way.hpp"
#include "base/loop/loop_rule.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace tinkxx::local {

namespace {

struct Piece {
    Task work{};
    Task done{};
};

class ThreadWorker final : public Worker {
public:
    ThreadWorker(Scheduler& scheduler, Rest rest, int niceness)
        : scheduler_{scheduler}, rest_{rest}, thread_{[this, niceness] {
              base::give_way(niceness);
              serve();
          }} {}

    ~ThreadWorker() override {
        alive_->store(false);
        std::deque<Piece> dropped;  // ends here, outside of the lock
        {
            std::lock_guard const lock{mutex_};
            stop_ = true;
            if (rest_ == Rest::drop) dropped.swap(pieces_);
        }
        woken_.notify_one();
        thread_.join();
    }

    void run(Task work, Task done) override {
        TINKXX_ASSERT_LOOP(scheduler_);
        {
            std::lock_guard const lock{mutex_};
            pieces_.push_back({std::move(work), std::move(done)});
        }
        woken_.notify_one();
    }

private:
    void serve() {
        for (;;) {
            Piece piece;
            {
                std::unique_lock lock{mutex_};
                woken_.wait(lock, [this] { return stop_ || !pieces_.empty(); });
                if (pieces_.empty()) return;
                piece = std::move(pieces_.front());
                pieces_.pop_front();
            }
            piece.work();
            piece.work = {};
            scheduler_.post([alive = alive_, done = std::move(piece.done)]() mutable {
                if (alive->load()) done();
            });
        }
    }

    Scheduler& scheduler_;
    Rest const rest_;
    /// Read by tasks that may run after the worker is gone.
    std::shared_ptr<std::atomic<bool>> alive_{std::make_shared<std::atomic<bool>>(true)};
    std::mutex mutex_{};
    std::condition_variable woken_{};
    // Guarded by the mutex.
    std::deque<Piece> pieces_{};
    bool stop_{false};
    std::thread thread_;
};

/// Takes a turn of the loop for each piece and another to tell of it, as if it were elsewhere.
class LoopWorker final : public Worker {
public:
    LoopWorker(Scheduler& scheduler, Rest rest) : scheduler_{scheduler}, rest_{rest} {}
    ~LoopWorker() override {
        *alive_ = false;
        if (rest_ == Rest::drop) return;
        for (auto& piece : pieces_) piece.work();
    }

    void run(Task work, Task done) override {
        TINKXX_ASSERT_LOOP(scheduler_);
        pieces_.push_back({std::move(work), std::move(done)});
        scheduler_.post([this, alive = alive_] {
            if (*alive) serve();
        });
    }

private:
    void serve() {
        auto piece = std::move(pieces_.front());
        pieces_.pop_front();
        piece.work();
        scheduler_.post([alive = alive_, done = std::move(piece.done)]() mutable {
            if (*alive) done();
        });
    }

    Scheduler& scheduler_;
    Rest const rest_;
    std::shared_ptr<bool> alive_{std::make_shared<bool>(true)};
    std::deque<Piece> pieces_{};
};

}  // namespace

std::unique_ptr<Worker> thread_worker(Scheduler& scheduler, Rest rest, int niceness) {
    return std::make_unique<ThreadWorker>(scheduler, rest, niceness);
}

std::unique_ptr<Worker> loop_worker(Scheduler& scheduler, Rest rest) {
    return std::make_unique<LoopWorker>(scheduler, rest);
}

}  // namespace tinkxx::local
