#include "service/core/stall_reporter.hpp"

#include "base/loop/loop_rule.hpp"
#include "types/time_text.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {
namespace {

// Clients whose calls began at different times do not each get a look of their own.
constexpr std::chrono::milliseconds least_step{100};

/// When it ends at the latest, if nothing changes.
std::optional<std::chrono::nanoseconds> time_left(OperationStatus const& status) {
    if (!status.gives_up_in) return status.deadline_in;
    if (!status.deadline_in) return status.gives_up_in;
    return std::min(*status.gives_up_in, *status.deadline_in);
}

}  // namespace

std::string stall_text(OperationStatus const& status, std::size_t pending) {
    std::string text;
    if (pending > 1) text = std::to_string(pending) + " calls are pending; ";
    text += status.operation + " has waited " +
            types::span_text(status.stalled.value_or(std::chrono::nanoseconds{0})) + ": " +
            status.why;
    if (status.ends_in) {
        text += status.stage == Stage::waiting_for_credential ? "; for at most another "
                                                              : "; next attempt in ";
        text += types::span_text(*status.ends_in);
    }
    if (auto const left = time_left(status)) {
        text += status.ends_in ? ", " : "; ";
        text += "gives up in " + types::span_text(*left);
    }
    return text;
}

void StallReporter::watch(Client& client, Scheduler& scheduler) {
    TINKXX_ASSERT_LOOP(scheduler);
    scheduler_ = &scheduler;
    if (!client.links_.linked()) clients_.push_back(client);
    if (!armed()) scheduler.arm(*this, scheduler.now() + patience, Precision::coarse);
}

void StallReporter::forget(Client& client) noexcept {
    if (client.links_.linked()) clients_.erase(client);
}

void StallReporter::on_time() {
    auto const now = scheduler_->now();
    std::vector<Stall> stalls;
    auto next = now + patience;
    for (auto* client = clients_.front(); client != nullptr;) {
        auto* const following = client->links_.next;
        if (client->watched().size() == 0) {
            clients_.erase(*client);
        } else {
            next = std::min(next, look(*client, now, stalls));
        }
        client = following;
    }
    std::erase_if(told_, [now](Told const& told) { return now - told.at >= pause; });
    for (auto const& stall : stalls) next = std::min(next, tell(stall, now));
    if (!clients_.empty()) {
        scheduler_->arm(*this, std::max(next, now + least_step), Precision::coarse);
    }
}

TimePoint StallReporter::look(Client& client, TimePoint now, std::vector<Stall>& stalls) {
    auto status = client.watched().longest_stalled(now, looked_at);
    if (!status) return TimePoint::max();
    if (*status->stalled < patience) return now + (patience - *status->stalled);
    auto topic = client.topic();
    auto const found = std::ranges::find(stalls, topic, &Stall::topic);
    auto& stall = found != stalls.end() ? *found : stalls.emplace_back();
    stall.pending += client.watched().size();
    if (stall.teller == nullptr || *stall.longest.stalled < *status->stalled) {
        stall.topic = std::move(topic);
        stall.teller = &client;
        stall.longest = *std::move(status);
    }
    return TimePoint::max();
}

TimePoint StallReporter::tell(Stall const& stall, TimePoint now) {
    auto const before = std::ranges::find(told_, stall.topic, &Told::topic);
    if (before != told_.end()) return before->at + pause;
    told_.push_back({stall.topic, now});
    stall.teller->warn(stall_text(stall.longest, stall.pending));
    return now + pause;
}

}  // namespace tinkxx::service
