#include "load/hostile/probe.hpp"

#include "load/hostile/raw_socket.hpp"

#include <algorithm>
#include <optional>

namespace tinkxx::load {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {
constexpr auto pause = 20ms;
constexpr auto nap = 5ms;
/// The least that counts as a stall of the machine.
constexpr auto least_stall = 10ms;
/// Until an answer counts as lost.
constexpr auto patience = 2min;
/// Problems that one connection reports.
constexpr int most_told = 3;
}  // namespace

Probe::Probe(std::uint16_t port, Problems& problems) : problems_{problems} {
    threads_.emplace_back([this, port] { ask(port, false, fresh_, fresh_answered_); });
    threads_.emplace_back([this, port] { ask(port, true, kept_, kept_answered_); });
    threads_.emplace_back([this] { watch(); });
}

void Probe::stop() {
    open_ = false;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
}

void Probe::settle() const {
    auto const now = Clock::now();
    while ((fresh_answered_.load() < now || kept_answered_.load() < now) &&
           Clock::now() < now + patience) {
        std::this_thread::sleep_for(nap);
    }
}

void Probe::ask(std::uint16_t port, bool keep, std::vector<Span>& spans,
                std::atomic<TimePoint>& answered) {
    auto const head = request_head("GET", "/api/v1/healthz", 0);
    std::optional<RawSocket> socket;
    int told = 0;
    for (auto next = Clock::now(); open_; next = std::max(next + pause, Clock::now())) {
        std::this_thread::sleep_until(next);
        auto const begin = Clock::now();
        if (!keep || !socket) socket.emplace(port);
        auto const status = socket->ask(head, {}, begin + patience);
        spans.push_back({begin, Clock::now()});
        answered = begin;
        if (status == "200") continue;
        socket.reset();
        if (told++ >= most_told) continue;
        problems_.add(std::string{"healthz on a "} + (keep ? "kept" : "fresh") +
                      " connection got no 200, but: " + status);
    }
}

void Probe::watch() {
    while (open_) {
        auto const due = Clock::now() + nap;
        std::this_thread::sleep_until(due);
        auto const woken = Clock::now();
        if (woken - due >= least_stall) stalls_.push_back({due, woken});
    }
}

Probe::Duration Probe::blamed(Span const& span) const {
    auto blamed = span.end - span.begin;
    auto stall = std::ranges::lower_bound(stalls_, span.begin, {}, &Span::end);
    for (; stall != stalls_.end() && stall->begin < span.end; ++stall) {
        blamed -= std::min(stall->end, span.end) - std::max(stall->begin, span.begin);
    }
    return blamed;
}

Probe::Duration Probe::longest(TimePoint from, TimePoint to) const {
    Duration longest{0};
    for (auto const* spans : {&fresh_, &kept_}) {
        auto one = std::ranges::lower_bound(*spans, from, {}, &Span::end);
        for (; one != spans->end() && one->begin < to; ++one) {
            longest = std::max(longest, blamed(*one));
        }
    }
    return longest;
}

Probe::Duration Probe::longest_stall() const {
    Duration longest{0};
    for (auto const& stall : stalls_) longest = std::max(longest, stall.end - stall.begin);
    return longest;
}

}  // namespace tinkxx::load
