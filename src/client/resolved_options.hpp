#pragma once

#include <tinkxx/options.hpp>

#include "service/http/http_context.hpp"

#include <functional>
#include <optional>
#include <string>

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
};

/// Throws `ValidationError`.
[[nodiscard]] ResolvedOptions resolve(ClientOptions const& options, Environment const& environment);

/// R-CONF-04: empty for any word that is neither truthy nor falsey.
[[nodiscard]] std::optional<bool> parse_bool(std::string_view word);

/// Why these cannot be used, or nothing.
[[nodiscard]] std::optional<ErrorDetails> check_timeouts(Timeouts const& timeouts);
[[nodiscard]] std::optional<ErrorDetails> check_retries(int max_retries);
[[nodiscard]] std::optional<ErrorDetails> check_headers(Headers const& headers,
                                                        std::string_view field);

}  // namespace tinkxx::client
