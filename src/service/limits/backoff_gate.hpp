#pragma once

#include <tinkxx/scheduler.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::service {

/// Holds requests back after the service refused one for load. Shared by all samplers of a
/// runtime with one endpoint and credential (R-SAMP-35). Reads no clock.
class BackoffGate {
public:
    /// For so long after a backoff ended, requests are submitted with care (R-SAMP-25).
    static constexpr std::chrono::seconds memory{10};

    /// A refusal; a shorter wait never shortens a longer one (R-SAMP-32).
    void close(TimePoint now, std::chrono::nanoseconds duration) noexcept {
        set_at_ = now;
        until_ = std::max(until_.value_or(now + duration), now + duration);
        remembered_ = std::max(remembered_.value_or(*until_), *until_);
    }
    /// A request that was sent at `sent` was accepted: if that was after the refusal, the gate is
    /// open; that there was one is not forgotten (R-SAMP-36).
    void accepted(TimePoint sent) noexcept {
        if (until_ && sent > set_at_) until_.reset();
    }

    /// When requests may be sent again; none: now.
    [[nodiscard]] std::optional<TimePoint> closed_until(TimePoint now) const noexcept {
        return until_ && now < *until_ ? until_ : std::nullopt;
    }
    [[nodiscard]] bool recent(TimePoint now) const noexcept {
        return remembered_ && now < *remembered_ + memory;
    }

private:
    TimePoint set_at_{};
    std::optional<TimePoint> until_{};
    std::optional<TimePoint> remembered_{};
};

/// The gates of one runtime, by endpoint key and credential identity. Loop thread only.
class BackoffGates {
public:
    /// A gate that somebody holds, or that was closed a short while ago, is the same for all who
    /// ask: whoever makes a new client does not get around a refusal. The credential is a secret,
    /// of which only a hash is kept.
    [[nodiscard]] std::shared_ptr<BackoffGate> get(std::string endpoint,
                                                   std::string_view credential, TimePoint now) {
        std::erase_if(gates_, [&](auto const& entry) {
            return entry.second.use_count() == 1 && !entry.second->recent(now);
        });
        auto& gate = gates_[{std::move(endpoint), std::hash<std::string_view>{}(credential)}];
        if (!gate) gate = std::make_shared<BackoffGate>();
        return gate;
    }
    [[nodiscard]] std::size_t size() const noexcept { return gates_.size(); }

private:
    std::map<std::pair<std::string, std::size_t>, std::shared_ptr<BackoffGate>> gates_{};
};

}  // namespace tinkxx::service
