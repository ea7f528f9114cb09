#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>

namespace tinkxx::service {

/// Which of the runs that are to be recovered are being worked on (R-EXT-42): so many at a time,
/// in the order of their coming, each once.
class RecoveryQueue {
public:
    enum class Place { begins, waits, pending_already };

    explicit RecoveryQueue(std::size_t concurrent) : concurrent_{concurrent} {}

    [[nodiscard]] Place add(std::string const& run_id) {
        if (!all_.insert(run_id).second) return Place::pending_already;
        if (all_.size() - waiting_.size() <= concurrent_) return Place::begins;
        waiting_.push_back(run_id);
        return Place::waits;
    }
    /// It is over, or given up. Gives the run that begins in its place.
    std::optional<std::string> remove(std::string const& run_id) {
        if (all_.erase(run_id) == 0) return std::nullopt;
        if (std::erase(waiting_, run_id) > 0 || waiting_.empty()) return std::nullopt;
        auto next = std::move(waiting_.front());
        waiting_.pop_front();
        return next;
    }

    /// Those that are being worked on.
    [[nodiscard]] std::size_t active() const noexcept { return all_.size() - waiting_.size(); }

private:
    std::size_t concurrent_;
    std::set<std::string> all_{};
    std::deque<std::string> waiting_{};
};

}  // namespace tinkxx::service
