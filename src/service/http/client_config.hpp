#pragma once

#include <tinkxx/options.hpp>

#include "service/text/endpoint.hpp"
#include "service/text/scrubber.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::service {

/// Where credentials may come from. Secrets.
struct CredentialConfig {
    /// Given, or of the environment; not necessarily well formed.
    std::string api_key{};
    std::string command{};
    /// The default of the credentials file; read only if there is neither key nor command.
    std::string stored{};

    bool operator==(CredentialConfig const&) const = default;
};

/// What a client was made with: its options, checked, with what the environment says in place of
/// those left empty, and what is worked out from them once. Never changes (R-CONF-10): the client,
/// its session and their calls hold one by `std::shared_ptr<ClientConfig const>`, and whoever needs
/// an option reads it here.
///
/// Some options are elsewhere, and empty here: `api_key` and `credential_cmd` in `credentials`; the
/// options of the proxy in `net.proxy`; `runtime` and `transport` with the client, since a
/// configuration must keep neither alive.
struct ClientConfig : ClientOptions {
    ClientConfig(ClientOptions options, Endpoint its_endpoint)
        : ClientOptions{std::move(options)}, endpoint{std::move(its_endpoint)} {}

    /// With the parameters that every URL of the client has.
    [[nodiscard]] std::string url(std::string_view path) const {
        return endpoint.url(path, default_query, {});
    }

    /// Of `base_url`.
    Endpoint endpoint;
    /// Standard lines and those of the caller, without the credential.
    Headers headers{};
    CredentialConfig credentials{};
    /// Whether `log` is the caller's: then the library writes nowhere else.
    bool own_log{false};
    Scrubber scrubber{};
};

}  // namespace tinkxx::service
