#pragma once

#include <tinkxx/scheduler.hpp>

#include "local/common/fingerprint.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::local {

/// Carries a training request out, under the id of its result.
using Step = tinkxx::detail::UniqueFunction<void(std::string const& request_id)>;

/// A training request that was accepted.
struct SeenStep {
    Fingerprint fingerprint{};
    std::string request_id{};
};

/// The training requests of one model in the order of their numbers (`seq_id`): one that comes too
/// early waits for those before it. Requests without a number follow when they come.
class StepOrder {
public:
    /// The request with that number, if it was accepted and is still remembered.
    [[nodiscard]] SeenStep const* seen(std::int64_t seq) const;
    /// Whether later ones were carried out without it.
    [[nodiscard]] bool too_late(std::int64_t seq) const {
        return seq < next_ && !refused_.contains(seq);
    }
    /// Whether others wait for this one.
    [[nodiscard]] bool awaited(std::optional<std::int64_t> seq) const {
        return seq && *seq == next_ && !early_.empty();
    }
    void add(std::optional<std::int64_t> seq, SeenStep request, Step step);
    /// The request with that number was refused, and so is not waited for.
    void refuse(std::int64_t seq);

    struct Due {
        std::string request_id{};
        Step step{};
    };
    /// What is to be carried out now; none while it is held, or the next one has not come.
    [[nodiscard]] std::optional<Due> next(TimePoint now);

    /// While it is held, requests wait.
    void hold(bool on) noexcept { held_ = on; }
    [[nodiscard]] bool held() const noexcept { return held_; }

    /// Since when requests have waited for one that has not come.
    [[nodiscard]] std::optional<TimePoint> gap_since() const noexcept { return gap_since_; }
    struct Gap {
        std::int64_t first{0};
        std::int64_t last{0};
    };
    /// Goes on without those that have not come. There must be a gap.
    Gap skip_gap();
    /// The number that the request with this one waits for; none if it does not wait.
    [[nodiscard]] std::optional<std::int64_t> waits_for(std::int64_t seq) const;
    /// The ids of requests that were not carried out.
    [[nodiscard]] std::vector<std::string> waiting() const;

private:
    /// The number of the next request to be carried out.
    std::int64_t next_{1};
    std::map<std::int64_t, Step> early_{};
    std::map<std::int64_t, SeenStep> seen_{};
    /// Numbers of requests that were refused, and so will never be carried out.
    std::set<std::int64_t> refused_{};
    std::optional<TimePoint> gap_since_{};
    bool held_{false};
    /// Those without a number, or with one that had its turn.
    std::vector<Due> unordered_{};
};

}  // namespace tinkxx::local
