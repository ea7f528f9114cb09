#pragma once

#include <tinkxx/scheduler.hpp>

#include "base/loop/loop_rule.hpp"

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

// How work that grows with the number of rows is done without holding anybody up.

namespace tinkxx::local {

/// Does long work a piece at a time, one piece in a turn of the loop, one work after the other.
/// Loop thread.
class Pieces {
public:
    /// Does a piece, and returns whether that was the last one.
    using Work = tinkxx::detail::UniqueFunction<bool()>;

    explicit Pieces(Scheduler& scheduler) : scheduler_{scheduler} {}
    ~Pieces() { *alive_ = false; }
    Pieces(Pieces const&) = delete;
    Pieces& operator=(Pieces const&) = delete;

    /// Begins at once if nothing else is under way, so that short work is done on return. Work that
    /// throws, since there is no memory, is given up, and the next one has its turn.
    void run(Work work) {
        TINKXX_ASSERT_LOOP(scheduler_);
        waiting_.push_back(std::move(work));
        if (waiting_.size() == 1) go_on();
    }

private:
    void go_on() {
        bool last = true;
        try {
            last = waiting_.front()();
        } catch (std::exception const&) {
            // Its answer goes with it, so the connection of whoever asked is closed.
        }
        if (last) waiting_.pop_front();
        if (waiting_.empty()) return;
        scheduler_.post([this, alive = alive_] {
            if (*alive) go_on();
        });
    }

    Scheduler& scheduler_;
    std::deque<Work> waiting_{};
    std::shared_ptr<bool> alive_{std::make_shared<bool>(true)};
};

/// How many rows a piece of work looks at.
inline constexpr std::size_t rows_at_once = 1000;

/// Walks over a map in pieces. Rows may come and go between them: one that is there all the time is
/// visited once.
template <class Map>
class Walk {
public:
    explicit Walk(Map const& map) : map_{&map} {}

    /// Visits up to `most` more rows; returns whether that was all.
    template <class Visit>
    bool go_on(std::size_t most, Visit const& visit) {
        auto at = last_ ? map_->upper_bound(*last_) : map_->begin();
        for (; at != map_->end() && most > 0; --most) {
            // A visit may erase what it visits.
            auto const here = at++;
            last_ = here->first;
            visit(here->first, here->second);
        }
        return at == map_->end();
    }

private:
    Map const* map_;
    std::optional<typename Map::key_type> last_{};
};

}  // namespace tinkxx::local
