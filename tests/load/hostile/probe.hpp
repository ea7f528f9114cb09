#pragma once

#include "load/problems.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::load {

/// Asks a server every 20 ms whether it is well, on a fresh and on a kept connection, and remembers
/// how long each answer took. Beside that it watches the machine: what a thread that only sleeps
/// loses is not the server's fault, and is taken off.
class Probe {
public:
    using TimePoint = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::steady_clock::duration;

    /// Begins. Each answer but 200 is a problem.
    Probe(std::uint16_t port, Problems& problems);
    ~Probe() { stop(); }
    Probe(Probe const&) = delete;
    Probe& operator=(Probe const&) = delete;
    void stop();
    /// Waits until both connections have got an answer to a question that was asked after now, so
    /// that what went before has no effect on what follows; two minutes at most.
    void settle() const;

    // After `stop`:
    [[nodiscard]] std::size_t count() const { return fresh_.size() + kept_.size(); }
    /// The longest of those that were under way between the two.
    [[nodiscard]] Duration longest(TimePoint from, TimePoint to) const;
    /// What the machine took from a thread that slept.
    [[nodiscard]] Duration longest_stall() const;

private:
    struct Span {
        TimePoint begin{};
        TimePoint end{};
    };
    void ask(std::uint16_t port, bool keep, std::vector<Span>& spans,
             std::atomic<TimePoint>& answered);
    void watch();
    [[nodiscard]] Duration blamed(Span const& span) const;

    Problems& problems_;
    std::atomic<bool> open_{true};
    // When the newest question was asked that has its answer.
    std::atomic<TimePoint> fresh_answered_{};
    std::atomic<TimePoint> kept_answered_{};
    // Each is written by one thread, and read when that has ended.
    std::vector<Span> fresh_{};
    std::vector<Span> kept_{};
    std::vector<Span> stalls_{};
    std::vector<std::thread> threads_{};
};

}  // namespace tinkxx::load
