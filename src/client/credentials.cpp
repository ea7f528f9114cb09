#include <tinkxx/credentials.hpp>

#include "client/resolved_options.hpp"

namespace tinkxx {

namespace {

service::CredentialConfig sources(ClientOptions const& options) {
    auto const all = client::with_defaults(options);
    return client::credential_config(client::resolve(all, client::process_environment()));
}

}  // namespace

bool has_credentials() { return has_credentials(ClientOptions{}); }

bool has_credentials(ClientOptions const& options) {
    return service::choose_credential(sources(options)).has_value();
}

std::optional<std::string> static_token() { return static_token(ClientOptions{}); }

std::optional<std::string> static_token(ClientOptions const& options) {
    auto config = sources(options);
    config.command.clear();
    auto chosen = service::choose_credential(config);
    if (!chosen) return std::nullopt;
    return std::move(chosen->value);
}

}  // namespace tinkxx
