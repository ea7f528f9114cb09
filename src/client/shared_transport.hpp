#pragma once

#include <tinkxx/net_transport.hpp>
#include <tinkxx/runtime.hpp>

#include "client/resolved_options.hpp"
#include "service/auth/credential_choice.hpp"

#include <memory>
#include <string>

namespace tinkxx::client {

/// What clients of one runtime must have in common to share connections. Holds secrets.
struct TransportKey {
    NetOptions net{};
    /// `Endpoint::key`.
    std::string endpoint{};
    service::CredentialConfig credentials{};

    bool operator==(TransportKey const&) const = default;
};

[[nodiscard]] TransportKey transport_key(ResolvedOptions const& resolved,
                                         service::SessionConfig const& config);

/// The network transport for `key` on `runtime`: the one that others use, or a new one. It ends
/// with the last of those who hold it. Throws as `net_transport`. Any thread.
[[nodiscard]] std::shared_ptr<Transport> shared_transport(Runtime const& runtime, TransportKey key);

}  // namespace tinkxx::client
