#pragma once

#include <tinkxx/options.hpp>

#include "service/http/http_context.hpp"
#include "service/session/session_config.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::client {

/// Looks a variable up; empty if it is not set.
using Environment = std::function<std::optional<std::string>(char const* name)>;
[[nodiscard]] Environment process_environment();

/// Options with every empty field filled in, checked. Nothing reads the environment after this
/// (R-CONF-02).
struct ResolvedOptions {
    service::HttpConfig http;
    std::string api_key{};
    NetOptions net{};
    /// Empty: nothing is propagated.
    TracePropagator trace_propagator{};

    std::string credential_cmd{};
    std::string credentials_file{};
    std::string sdk_version{};
    std::vector<std::string> tags{};
    std::map<std::string, std::string> user_metadata{};
    std::optional<std::string> project_id{};
    std::optional<std::string> display_name{};
    std::vector<std::string> feature_gates{};
    bool telemetry{true};
    Headers header_overrides{};
    PollBackoff poll_backoff{};
    std::optional<std::chrono::milliseconds> poll_error_limit{};
    DispatchLimits dispatch{};
    std::chrono::milliseconds deadline{0};
    std::size_t max_pending{0};
    WhenFull when_full{WhenFull::ignore};
    bool report_pending{false};
    bool warn_of_stalls{true};
    std::optional<SubmitEncoding> submit_encoding{};
    std::optional<bool> repeat_steps{};
    bool check_data{true};
    service::FlagOverrides overrides{};
    service::SessionIntervals intervals{};
};

/// Fields that were left as they are, filled from `set_default_options` (R-CONF-01).
[[nodiscard]] ClientOptions with_defaults(ClientOptions options);
[[nodiscard]] ClientOptions merged(ClientOptions options, ClientOptions const& defaults);

/// Throws `ValidationError`.
[[nodiscard]] ResolvedOptions resolve(ClientOptions const& options, Environment const& environment);

/// What a session is made with. Reads the stored credential if there is no key, and throws
/// `ValidationError` if there is no credential at all (R-AUTH-23, R-CONF-05).
[[nodiscard]] service::SessionConfig session_config(ResolvedOptions const& resolved);
/// The sources of credentials, the file among them. An unreadable file is an error only where it is
/// needed. Throws `ValidationError`.
[[nodiscard]] service::CredentialConfig credential_config(ResolvedOptions const& resolved);

/// R-CONF-04: empty for any word that is neither truthy nor falsey.
[[nodiscard]] std::optional<bool> parse_bool(std::string_view word);

}  // namespace tinkxx::client
