#include "local/training/step_order.hpp"

namespace tinkxx::local {

SeenStep const* StepOrder::seen(std::int64_t seq) const {
    auto const known = seen_.find(seq);
    return known == seen_.end() ? nullptr : &known->second;
}

void StepOrder::add(std::optional<std::int64_t> seq, SeenStep request, Step step) {
    auto const id = request.request_id;
    if (seq) {
        seen_[*seq] = std::move(request);
        refused_.erase(*seq);
    }
    // Before the next one: sent again in another form after it had been refused.
    if (!seq || *seq < next_) {
        unordered_.push_back({id, std::move(step)});
        return;
    }
    early_.emplace(*seq, std::move(step));
}

void StepOrder::refuse(std::int64_t seq) {
    if (seq < next_ || seen_.contains(seq)) return;
    // Nobody is so far ahead of himself.
    constexpr std::int64_t ahead = 100'000;
    if (seq - next_ > ahead) return;
    refused_.insert(seq);
}

std::optional<StepOrder::Due> StepOrder::next(TimePoint now) {
    if (held_) return std::nullopt;
    if (!unordered_.empty()) {
        auto due = std::move(unordered_.front());
        unordered_.erase(unordered_.begin());
        return due;
    }
    while (refused_.contains(next_)) ++next_;
    auto const first = early_.begin();
    if (first == early_.end()) {
        gap_since_.reset();
        return std::nullopt;
    }
    if (first->first != next_) {
        if (!gap_since_) gap_since_ = now;
        return std::nullopt;
    }
    Due due{seen_.at(next_).request_id, std::move(first->second)};
    early_.erase(first);
    ++next_;
    gap_since_.reset();
    // Clients repeat a request for minutes, in which no model takes so many steps.
    constexpr std::int64_t remembered = 10'000;
    seen_.erase(seen_.begin(), seen_.lower_bound(next_ - remembered));
    return due;
}

StepOrder::Gap StepOrder::skip_gap() {
    Gap const gap{.first = next_, .last = early_.begin()->first - 1};
    next_ = early_.begin()->first;
    return gap;
}

std::optional<std::int64_t> StepOrder::waits_for(std::int64_t seq) const {
    if (!gap_since_ || !early_.contains(seq)) return std::nullopt;
    return next_;
}

std::vector<std::string> StepOrder::waiting() const {
    std::vector<std::string> ids;
    for (auto const& due : unordered_) ids.push_back(due.request_id);
    for (auto const& [seq, step] : early_) ids.push_back(seen_.at(seq).request_id);
    return ids;
}

}  // namespace tinkxx::local
