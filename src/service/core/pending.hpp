#pragma once

#include <tinkxx/scheduler.hpp>
#include <tinkxx/status.hpp>

#include "base/common/intrusive_list.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tinkxx::service {

/// What is listed among the pending: it can be asked where it stands, and told to end. Loop thread
/// only.
class PendingEntry {
public:
    PendingEntry() noexcept = default;
    PendingEntry(PendingEntry const&) = delete;
    PendingEntry& operator=(PendingEntry const&) = delete;

    [[nodiscard]] virtual OperationStatus status(TimePoint now) const = 0;
    /// Its client is closing, and has taken it from the list. Ends it, and may destroy it; the
    /// close itself goes back to the list.
    virtual void on_close() noexcept = 0;
    /// It goes on until it is ended, so that nobody waits for it: not worth a report.
    [[nodiscard]] virtual bool background() const noexcept { return false; }

protected:
    virtual ~PendingEntry() = default;

private:
    friend class PendingList;
    base::ListLinks<PendingEntry> links_{};
};

/// The calls of one client that are under way, oldest first. Loop thread only.
class PendingList {
public:
    /// The number that was given last; shared by lists whose calls are shown together.
    using Ids = std::shared_ptr<std::uint64_t>;

    explicit PendingList(Ids ids)
        : ids_{ids ? std::move(ids) : std::make_shared<std::uint64_t>()} {}

    /// Called whenever a call comes while there is none.
    void on_first(Task task) { on_first_ = std::move(task); }
    void add(PendingEntry& call) {
        list_.push_back(call);
        if (on_first_ && list_.size() == 1) on_first_();
    }
    /// Those that somebody waits for: the first, null if there is none, and how many there are.
    struct Awaited {
        PendingEntry const* oldest{nullptr};
        std::size_t count{0};
    };
    [[nodiscard]] Awaited awaited() const noexcept {
        Awaited found;
        for (auto const* each = list_.front(); each != nullptr; each = each->links_.next) {
            if (each->background()) continue;
            if (found.oldest == nullptr) found.oldest = each;
            ++found.count;
        }
        return found;
    }
    /// Of the `most` oldest that somebody waits for: the one that has made no progress for longest,
    /// if any.
    [[nodiscard]] std::optional<OperationStatus> longest_stalled(TimePoint now,
                                                                 std::size_t most) const {
        std::optional<OperationStatus> longest;
        for (auto const* each = list_.front(); each != nullptr && most > 0;
             each = each->links_.next, --most) {
            if (each->background()) continue;
            auto status = each->status(now);
            // A block for billing is warned of once a minute where it is noticed.
            if (!status.stalled || status.stage == Stage::billing_pause) continue;
            if (longest && *longest->stalled >= *status.stalled) continue;
            longest = std::move(status);
        }
        return longest;
    }
    /// Harmless if it is not in the list.
    void remove(PendingEntry& call) noexcept {
        if (call.links_.linked()) list_.erase(call);
    }
    [[nodiscard]] std::uint64_t next_id() noexcept { return ++*ids_; }
    [[nodiscard]] std::size_t size() const noexcept { return list_.size(); }
    [[nodiscard]] std::vector<OperationStatus> statuses(TimePoint now) const {
        std::vector<OperationStatus> all;
        all.reserve(list_.size());
        for (auto const* each = list_.front(); each != nullptr; each = each->links_.next) {
            all.push_back(each->status(now));
        }
        return all;
    }
    /// Ends all of them.
    void close() noexcept {
        for (auto left = list_.size(); left > 0 && !list_.empty(); --left) {
            list_.pop_front()->on_close();
        }
    }

private:
    base::IntrusiveList<PendingEntry, &PendingEntry::links_> list_{};
    Ids ids_;
    Task on_first_{};
};

}  // namespace tinkxx::service
