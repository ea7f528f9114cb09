#pragma once

#include <tinkxx/log.hpp>
#include <tinkxx/scheduler.hpp>

#include "base/loop/loop_rule.hpp"
#include "local/api/ask.hpp"

#include <deque>
#include <memory>
#include <utility>

namespace tinkxx::local {

/// Changes of rows, one after the other: for what reads a row, changes it and writes it back. Loop
/// thread.
class ChangeQueue {
public:
    /// The right to change rows: the next change begins when the last copy is gone.
    class Turn {
    public:
        explicit Turn(ChangeQueue& turns) : turns_{turns}, alive_{turns.alive_} {}
        Turn(Turn const&) = delete;
        Turn& operator=(Turn const&) = delete;
        ~Turn() {
            if (!*alive_) return;
            turns_.scheduler_.post([&turns = turns_, alive = alive_] {
                if (!*alive) return;
                turns.taken_ = false;
                turns.next();
            });
        }

    private:
        ChangeQueue& turns_;
        std::shared_ptr<bool> alive_;
    };
    using Held = std::shared_ptr<Turn>;
    using Work = tinkxx::detail::UniqueFunction<MaybeRefused(Ask&, Held)>;

    ChangeQueue(Scheduler& scheduler, LogSink const& log) : scheduler_{scheduler}, log_{log} {}
    ~ChangeQueue() { stop(); }
    ChangeQueue(ChangeQueue const&) = delete;
    ChangeQueue& operator=(ChangeQueue const&) = delete;

    /// Calls `work(ask, turn)` when all changes before it are written or have failed; the next one
    /// follows when `turn` is let go of.
    void take(Ask& ask, Work work) {
        TINKXX_ASSERT_LOOP(scheduler_);
        waiting_.emplace_back(std::move(ask), std::move(work));
        next();
    }
    /// Nothing begins any more.
    void stop() {
        *alive_ = false;
        waiting_.clear();
    }

private:
    void next() {
        if (taken_ || waiting_.empty()) return;
        taken_ = true;
        auto [ask, work] = std::move(waiting_.front());
        waiting_.pop_front();
        run_endpoint(ask, log_, [&, &ask = ask, &work = work] {
            return work(ask, std::make_shared<Turn>(*this));
        });
    }

    Scheduler& scheduler_;
    LogSink const& log_;
    std::deque<std::pair<Ask, Work>> waiting_{};
    bool taken_{false};
    std::shared_ptr<bool> alive_{std::make_shared<bool>(true)};
};

}  // namespace tinkxx::local
