#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/session.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::wire {

/// GET samplers/{id}.
[[nodiscard]] Result<SamplerInfo> decode_sampler_info(std::string_view json);
/// GET sessions.
[[nodiscard]] Result<SessionPage> decode_sessions(std::string_view json);
/// GET sessions/{id}.
[[nodiscard]] Result<SessionInfo> decode_session(std::string_view json);
/// PUT sessions/{id}/project.
[[nodiscard]] std::string encode_project(std::string_view project_id);

/// POST sessions/search (R-REST-04).
[[nodiscard]] std::string encode_session_search(SessionSearch const& search);
[[nodiscard]] Result<SessionSearchPage> decode_session_search(std::string_view json);

/// GET sessions/{id}/trace_export: how far the export is.
struct TraceExport {
    enum class State : std::uint8_t { pending, ready, failed };
    State state{State::pending};
    /// Where it can be fetched, once it is ready.
    std::string url{};
    /// Why it failed.
    std::string error{};
};
/// Fails if a trace that is ready has no URL.
[[nodiscard]] Result<TraceExport> decode_trace_export(std::string_view json);

}  // namespace tinkxx::wire
