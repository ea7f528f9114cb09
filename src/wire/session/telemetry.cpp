#include "wire/session/telemetry.hpp"

#include "wire/json/json.hpp"

#include <array>
#include <cstdio>

namespace tinkxx::wire {

namespace {

using namespace std::chrono_literals;

// `.678901`; nothing if there is no fraction.
std::string fraction(std::chrono::microseconds part) {
    if (part.count() == 0) return {};
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), ".%06d", static_cast<int>(part.count()));
    return text.data();
}

struct EventMembers {
    JsonOut& json;

    void operator()(telemetry_event::SessionStart const&) const {
        json.member("event", "SESSION_START");
    }
    void operator()(telemetry_event::SessionEnd const& end) const {
        json.member("event", "SESSION_END");
        json.member("duration", telemetry_duration(end.duration));
    }
    void operator()(telemetry_event::UnhandledException const& error) const {
        json.member("event", "UNHANDLED_EXCEPTION");
        json.member("error_type", error.error_type);
        json.member("error_message", error.error_message);
        json.member("traceback", error.traceback);
    }
    void operator()(telemetry_event::Generic const& event) const {
        json.member("event", "GENERIC_EVENT");
        json.member("event_name", event.name);
        json.member("event_data", event.data);
    }
};

struct Accepted {};
void read(JsonIn const& in, Accepted&) {
    (void)in.required<std::string>("status");
    in.tag("status", "accepted");
}

}  // namespace

std::string_view to_string(Severity severity) noexcept {
    switch (severity) {
        case Severity::debug:
            return "DEBUG";
        case Severity::info:
            return "INFO";
        case Severity::warning:
            return "WARNING";
        case Severity::error:
            return "ERROR";
        case Severity::critical:
            return "CRITICAL";
    }
    return "ERROR";
}

std::string telemetry_time(WallTime time) {
    using namespace std::chrono;
    auto const moment = floor<microseconds>(time);
    auto const day = floor<days>(moment);
    year_month_day const date{day};
    auto const clock = moment - day;
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d",
                  static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                  static_cast<unsigned>(date.day()), static_cast<int>(clock / 1h),
                  static_cast<int>(clock % 1h / 1min), static_cast<int>(clock % 1min / 1s));
    return text.data() + fraction(clock % 1s) + 'Z';
}

std::string telemetry_duration(std::chrono::microseconds duration) {
    using std::chrono::microseconds;
    if (duration < 0us) duration = 0us;
    std::string out;
    auto const days = duration / 24h;
    if (days > 0) out = std::to_string(days) + (days == 1 ? " day, " : " days, ");
    auto const clock = duration % microseconds{24h};
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%d:%02d:%02d", static_cast<int>(clock / 1h),
                  static_cast<int>(clock % 1h / 1min), static_cast<int>(clock % 1min / 1s));
    return out + text.data() + fraction(clock % 1s);
}

std::string encode_telemetry(TelemetryBatch const& batch) {
    std::string out;
    JsonOut json{out};
    json.open_object();
    json.key("events");
    json.open_array();
    for (auto const& event : batch.events) {
        json.open_object();
        std::visit(EventMembers{json}, event.what);
        json.member("event_id", event.event_id);
        json.member("event_session_index", event.event_session_index);
        json.member("severity", to_string(event.severity));
        json.member("timestamp", telemetry_time(event.timestamp));
        json.close_object();
    }
    json.close_array();
    json.member("platform", batch.platform);
    json.member("sdk_version", batch.sdk_version);
    json.member("session_id", batch.session_id);
    json.member("process_uuid", batch.process_uuid);
    json.close_object();
    return out;
}

Result<void> decode_telemetry_accepted(std::string_view json) {
    auto const answer = decode_json<Accepted>("telemetry", json);
    if (!answer) return answer.error();
    return {};
}

}  // namespace tinkxx::wire
