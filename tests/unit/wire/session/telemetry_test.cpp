#include "wire/session/telemetry.hpp"

#include "wire/json/json.hpp"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

namespace tinkxx::wire {
namespace {

using namespace std::chrono_literals;

WallTime const moment{1'767'323'045'678'901us};

TEST(TelemetryWire, SendsEventsWithTheirCommonMembers) {  // R-TEL-01, R-TEL-02, R-TEL-03
    std::vector<TelemetryEvent> const events{
        {.what = telemetry_event::SessionStart{}, .event_id = "id-0", .timestamp = moment},
        {.what = telemetry_event::Generic{.name = "user_step",
                                          .data = {{"n", 1}, {"\xc3\xa9", {1.5, nullptr}}}},
         .event_id = "id-1",
         .event_session_index = 1,
         .severity = Severity::debug,
         .timestamp = moment},
        {.what = telemetry_event::UnhandledException{.error_type = "T", .error_message = "boom"},
         .event_id = "id-2",
         .event_session_index = 2,
         .severity = Severity::error,
         .timestamp = moment},
        {.what =
             telemetry_event::UnhandledException{
                 .error_type = "T", .error_message = "\xff", .traceback = "at"},
         .event_id = "id-3",
         .event_session_index = 3,
         .severity = Severity::critical,
         .timestamp = moment},
        {.what = telemetry_event::SessionEnd{.duration = 62'345'678us},
         .event_id = "id-4",
         .event_session_index = 4,
         .severity = Severity::warning,
         .timestamp = moment}};
    auto const body = encode_telemetry({.events = events,
                                        .platform = "Linux",
                                        .sdk_version = "0.36.0",
                                        .session_id = "S",
                                        .process_uuid = "U"});
    EXPECT_EQ(boost::json::parse(body), boost::json::parse(R"({
        "events": [
            {"event": "SESSION_START", "event_id": "id-0", "event_session_index": 0,
             "severity": "INFO", "timestamp": "2026-01-02T03:04:05.678901Z"},
            {"event": "GENERIC_EVENT", "event_name": "user_step", "event_data": {"n": 1, "é": [1.5, null]},
             "event_id": "id-1", "event_session_index": 1, "severity": "DEBUG",
             "timestamp": "2026-01-02T03:04:05.678901Z"},
            {"event": "UNHANDLED_EXCEPTION", "error_type": "T", "error_message": "boom",
             "event_id": "id-2", "event_session_index": 2, "severity": "ERROR",
             "timestamp": "2026-01-02T03:04:05.678901Z"},
            {"event": "UNHANDLED_EXCEPTION", "error_type": "T", "error_message": "\ufffd",
             "traceback": "at", "event_id": "id-3", "event_session_index": 3,
             "severity": "CRITICAL", "timestamp": "2026-01-02T03:04:05.678901Z"},
            {"event": "SESSION_END", "duration": "0:01:02.345678", "event_id": "id-4",
             "event_session_index": 4, "severity": "WARNING",
             "timestamp": "2026-01-02T03:04:05.678901Z"}],
        "platform": "Linux", "sdk_version": "0.36.0", "session_id": "S", "process_uuid": "U"})"));
}

TEST(TelemetryWire, WritesTimesInUtc) {  // R-TEL-02
    EXPECT_EQ(telemetry_time(WallTime{0s}), "1970-01-01T00:00:00Z");
    EXPECT_EQ(telemetry_time(WallTime{951'827'696s}), "2000-02-29T12:34:56Z");
    EXPECT_EQ(telemetry_time(WallTime{1us}), "1970-01-01T00:00:00.000001Z");
    EXPECT_EQ(telemetry_time(WallTime{-1us}), "1969-12-31T23:59:59.999999Z");
}

TEST(TelemetryWire, WritesDurationsAsTheOfficialSdk) {  // R-TEL-03
    EXPECT_EQ(telemetry_duration(0us), "0:00:00");
    EXPECT_EQ(telemetry_duration(62'345'678us), "0:01:02.345678");
    EXPECT_EQ(telemetry_duration(23h + 59min + 59s), "23:59:59");
    EXPECT_EQ(telemetry_duration(24h), "1 day, 0:00:00");
    EXPECT_EQ(telemetry_duration(50h + 1us), "2 days, 2:00:00.000001");
    EXPECT_EQ(telemetry_duration(-1s), "0:00:00");
}

TEST(TelemetryWire, KnowsWhetherItWasAccepted) {  // R-TEL-01
    EXPECT_TRUE(decode_telemetry_accepted(R"({"status": "accepted"})").has_value());
    for (auto const* json : {"{}", R"({"status": "no"})", R"({"status": null})", "", "[]"}) {
        EXPECT_FALSE(decode_telemetry_accepted(json).has_value()) << json;
    }
}

}  // namespace
}  // namespace tinkxx::wire
