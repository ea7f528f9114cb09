#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/scheduler.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace tinkxx::service {

/// Decides when a session's next beat follows, and what to say about those that fail
/// (R-SESS-10..14). Touches no socket and reads no clock.
class Heartbeat {
public:
    struct Next {
        /// Empty: no beat follows any more.
        std::optional<TimePoint> at{};
        /// What to log, if anything.
        LogLevel level{LogLevel::warning};
        std::string line{};
    };

    Heartbeat(std::string session_id, Intervals intervals, TimePoint created)
        : session_id_{std::move(session_id)},
          intervals_{intervals},
          last_success_{created},
          last_beat_{created} {}

    /// When the first beat is due.
    [[nodiscard]] TimePoint first() const noexcept { return last_beat_ + intervals_.heartbeat; }
    void on_sent(TimePoint now) noexcept { last_beat_ = now; }
    [[nodiscard]] Next on_success(TimePoint now);
    [[nodiscard]] Next on_error(Error const& error, TimePoint now);

    [[nodiscard]] TimePoint last_success() const noexcept { return last_success_; }
    [[nodiscard]] int failures() const noexcept { return failures_; }

private:
    [[nodiscard]] TimePoint following(TimePoint now) const noexcept;

    std::string session_id_;
    Intervals intervals_;
    TimePoint last_success_;
    TimePoint last_beat_;
    int failures_{0};
};

}  // namespace tinkxx::service
