#include "service/telemetry/telemetry_queue.hpp"

#include "service/http/standard_headers.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tinkxx::service {

namespace {

constexpr std::string_view how_to_stop = "TINKER_TELEMETRY=0 turns telemetry off";

// What the official SDK calls API errors: the service or the way to it is in trouble.
bool is_api_error(Error const& error) noexcept {
    switch (error.kind()) {
        case ErrorKind::connection:
        case ErrorKind::timeout:
        case ErrorKind::status:
        case ErrorKind::billing:
            return true;
        default:
            return false;
    }
}

std::string events(std::size_t count) {
    return std::to_string(count) + (count == 1 ? " event" : " events");
}

}  // namespace

bool TelemetryQueue::warns(std::optional<TimePoint>& last, TimePoint now,
                           std::chrono::nanoseconds interval) noexcept {
    if (last && now - *last < interval) return false;
    last = now;
    return true;
}

TelemetryQueue::Added TelemetryQueue::add(std::vector<wire::TelemetryEvent> group, TimePoint now) {
    if (state_ == State::stopped) {
        counts_.dropped += group.size();
        return {};
    }
    if (group.size() > rules_.most_queued - std::min(rules_.most_queued, waiting_.size())) {
        counts_.dropped += group.size();
        Added added;
        if (warns(warned_full_, now, rules_.warning_interval)) {
            added.step.warning = "telemetry: " + events(counts_.dropped) +
                                 " dropped so far, since " + std::to_string(waiting_.size()) +
                                 " wait to be sent; " + std::string{how_to_stop};
        }
        return added;
    }
    counts_.logged += group.size();
    std::ranges::move(group, std::back_inserter(waiting_));
    Added added{.queued = true};
    if (state_ == State::idle && !waiting_.empty()) {
        state_ = State::gathering;
        added.step = {.next = Next::wait, .delay = rules_.flush_interval};
    }
    if (state_ == State::gathering && waiting_.size() >= rules_.most_in_batch) {
        added.step = send_next();
    }
    return added;
}

TelemetryQueue::Step TelemetryQueue::send_next() {
    auto const size = std::min(waiting_.size(), rules_.most_in_batch);
    if (size == 0) {
        state_ = State::idle;
        return {};
    }
    auto const end = waiting_.begin() + static_cast<std::ptrdiff_t>(size);
    batch_.assign(std::move_iterator{waiting_.begin()}, std::move_iterator{end});
    waiting_.erase(waiting_.begin(), end);
    retries_ = 0;
    state_ = State::sending;
    return {.next = Next::send};
}

TelemetryQueue::Step TelemetryQueue::flush() {
    return state_ == State::gathering ? send_next() : Step{};
}

TelemetryQueue::Step TelemetryQueue::on_time() {
    if (state_ == State::pausing) {
        state_ = State::sending;
        return {.next = Next::send};
    }
    return flush();
}

TelemetryQueue::Step TelemetryQueue::on_accepted() {
    if (state_ != State::sending) return {};
    counts_.accepted += batch_.size();
    ++counts_.batches;
    return end_batch();
}

TelemetryQueue::Step TelemetryQueue::end_batch() {
    counts_.flushed += batch_.size();
    batch_.clear();
    return send_next();
}

TelemetryQueue::Step TelemetryQueue::on_failure(Error const& error, TimePoint now) {
    if (state_ != State::sending) return {};
    ++counts_.failures;
    bool const again =
        is_api_error(error) && (!rules_.max_retries || retries_ < *rules_.max_retries);
    std::string warning;
    if (warns(warned_failure_, now, rules_.warning_interval)) {
        warning = "telemetry: " + std::string{error.what()} + "; " + events(batch_.size());
        if (again) {
            auto const ms = std::chrono::ceil<std::chrono::milliseconds>(rules_.retry_delay);
            warning += " will be sent again in " + seconds_text(ms) + " s";
        } else {
            warning += " dropped";
        }
        warning += "; " + std::string{how_to_stop};
    }
    Step step;
    if (again) {
        ++retries_;
        state_ = State::pausing;
        step = {.next = Next::wait, .delay = rules_.retry_delay};
    } else {
        step = end_batch();
    }
    step.warning = std::move(warning);
    return step;
}

void TelemetryQueue::stop() noexcept {
    state_ = State::stopped;
    waiting_.clear();
    batch_.clear();
}

}  // namespace tinkxx::service
