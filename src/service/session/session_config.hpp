#pragma once

#include "service/auth/credential_choice.hpp"
#include "service/http/http_context.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::service {

/// How often a session does by itself what it does (R-SESS-13).
struct SessionIntervals {
    std::chrono::milliseconds heartbeat{std::chrono::seconds{10}};
    /// Silence of the server after which failed beats are worth a warning.
    std::chrono::milliseconds heartbeat_warning{std::chrono::seconds{120}};
    /// Eviction (R-SESS-12): beats that fail in a row, and time without success, after which the
    /// heartbeat ends. 0: never.
    int heartbeat_max_failures{0};
    std::chrono::milliseconds heartbeat_max_silence{0};
    /// The dynamic config is never fetched more often, whatever the server says.
    std::chrono::milliseconds dynamic_refresh_minimum{std::chrono::seconds{10}};
    std::chrono::milliseconds telemetry_flush{std::chrono::seconds{10}};
    /// How long a close waits for what is queued.
    std::chrono::milliseconds telemetry_drain{std::chrono::seconds{5}};

    bool operator==(SessionIntervals const&) const = default;
};

/// What the caller chose in place of the server (R-CONF-22, R-CONF-24).
struct FlagOverrides {
    std::optional<std::int64_t> sample_bytes{};
    std::optional<std::int64_t> download_bytes{};
    std::optional<std::int64_t> chunk_items{};
    std::optional<std::int64_t> chunk_bytes{};
    std::optional<std::int64_t> forward_backward_bytes{};
    std::optional<bool> completion_poll{};
    std::optional<bool> join_sampling_session{};

    bool operator==(FlagOverrides const&) const = default;
};

/// What a session is made with, checked and resolved. Never changes (R-CONF-10).
struct SessionConfig {
    HttpConfig http;
    CredentialConfig credentials{};
    std::string sdk_version{};
    std::vector<std::string> tags{};
    std::map<std::string, std::string> user_metadata{};
    std::optional<std::string> project_id{};
    std::optional<std::string> display_name{};
    /// Lines that the caller gave, which travel with copies of a sampler (R-SESS-37).
    Headers header_overrides{};
    FlagOverrides overrides{};
    SessionIntervals intervals{};
    bool telemetry{true};
};

}  // namespace tinkxx::service
