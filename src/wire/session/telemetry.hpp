#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace tinkxx::wire {

enum class Severity : std::uint8_t { debug, info, warning, error, critical };
/// As the service words it: `DEBUG`, `INFO`, `WARNING`, `ERROR`, `CRITICAL`.
[[nodiscard]] std::string_view to_string(Severity severity) noexcept;

/// What happened (R-TEL-03).
namespace telemetry_event {
struct SessionStart {};
struct SessionEnd {
    std::chrono::microseconds duration{0};
};
struct UnhandledException {
    std::string error_type{};
    std::string error_message{};
    std::optional<std::string> traceback{};
};
struct Generic {
    std::string name{};
    boost::json::object data{};
};
}  // namespace telemetry_event

struct TelemetryEvent {
    std::variant<telemetry_event::SessionStart, telemetry_event::SessionEnd,
                 telemetry_event::UnhandledException, telemetry_event::Generic>
        what{};
    std::string event_id{};
    /// 0, 1, 2 … per reporter.
    std::int64_t event_session_index{0};
    Severity severity{Severity::info};
    WallTime timestamp{};
};

/// The body of telemetry (R-TEL-01).
struct TelemetryBatch {
    std::span<TelemetryEvent const> events{};
    std::string_view platform{};
    std::string_view sdk_version{};
    std::string_view session_id{};
    std::string_view process_uuid{};
};
[[nodiscard]] std::string encode_telemetry(TelemetryBatch const& batch);
/// An error if the answer is not that the batch was accepted.
[[nodiscard]] Result<void> decode_telemetry_accepted(std::string_view json);

/// `2026-01-02T03:04:05.678901Z`; the fraction is left out if it is zero.
[[nodiscard]] std::string telemetry_time(WallTime time);
/// `H:MM:SS[.ffffff]`, or `D day[s], H:MM:SS[.ffffff]` from a day on.
[[nodiscard]] std::string telemetry_duration(std::chrono::microseconds duration);

}  // namespace tinkxx::wire
