#pragma once

#include <tinkxx/options.hpp>

#include "service/http/client_config.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::client {

/// Looks a variable up; empty if it is not set.
using Environment = std::function<std::optional<std::string>(char const* name)>;
[[nodiscard]] Environment process_environment();

/// Fields that were left as they are, filled from `set_default_options` (R-CONF-01).
[[nodiscard]] ClientOptions with_defaults(ClientOptions options);
[[nodiscard]] ClientOptions merged(ClientOptions options, ClientOptions const& defaults);

/// Nothing reads the environment after this (R-CONF-02). Throws `ValidationError`.
[[nodiscard]] service::ClientConfig resolve(ClientOptions options, Environment const& environment);

/// The same with the stored key, which is read if there is no other. An unreadable file is an error
/// only where it is needed. Throws `ValidationError`.
[[nodiscard]] service::ClientConfig with_stored_key(service::ClientConfig config);
/// What a session is made with. Throws `ValidationError` if there is no credential at all
/// (R-AUTH-23, R-CONF-05).
[[nodiscard]] service::ClientConfig with_credential(service::ClientConfig config);

/// R-CONF-04: empty for any word that is neither truthy nor falsey.
[[nodiscard]] std::optional<bool> parse_bool(std::string_view word);

}  // namespace tinkxx::client
