#include "service/session/heartbeat.hpp"

#include "types/time_text.hpp"

#include <algorithm>

namespace tinkxx::service {

TimePoint Heartbeat::following(TimePoint now) const noexcept {
    return std::max(last_beat_ + intervals_.heartbeat, now);
}

Heartbeat::Next Heartbeat::on_success(TimePoint now) {
    last_success_ = now;
    failures_ = 0;
    return {.at = following(now)};
}

Heartbeat::Next Heartbeat::on_error(Error const& error, TimePoint now) {
    if (error.http_status() == 410) {
        return {.level = LogLevel::info,
                .line = "session " + session_id_ + " has finished; its heartbeat ends"};
    }
    ++failures_;
    auto const silence = now - last_success_;
    auto const since = "session " + session_id_ + ": no heartbeat succeeded for " +
                       types::whole_seconds(silence) + ", the last failed: " + error.what();
    bool const too_many =
        intervals_.heartbeat_max_failures > 0 && failures_ >= intervals_.heartbeat_max_failures;
    bool const too_long =
        intervals_.heartbeat_max_silence.count() > 0 && silence >= intervals_.heartbeat_max_silence;
    if (too_many || too_long) {
        return {.line = since + "; given up after " + std::to_string(failures_) +
                        " failures, the server will end the session"};
    }
    Next next{.at = following(now)};
    if (silence > intervals_.heartbeat_warning) {
        next.line = since + "; the server may have ended the session";
    }
    return next;
}

}  // namespace tinkxx::service
