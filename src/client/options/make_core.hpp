#pragma once

#include <tinkxx/net_transport.hpp>
#include <tinkxx/runtime.hpp>

#include "service/core/client_core.hpp"
#include "service/http/client_config.hpp"

#include <memory>
#include <optional>
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

[[nodiscard]] TransportKey transport_key(service::ClientConfig const& config);

/// The network transport for `key` on `runtime`: the one that others use, or a new one. It ends
/// with the last of those who hold it. Throws as `net_transport`. Any thread.
[[nodiscard]] std::shared_ptr<Transport> shared_transport(Runtime const& runtime, TransportKey key);

/// A session and what its clients share; a shadow, which needs a snapshot, is shared with others of
/// the same session and options. `ids` is shared by what one client shows together. Any thread.
[[nodiscard]] std::shared_ptr<service::ClientCore> make_core(
    Runtime const& runtime, std::shared_ptr<service::ClientConfig const> config,
    service::SessionKind kind, std::shared_ptr<Transport> const& transport,
    std::optional<service::SessionSnapshot> const& snapshot, service::PendingList::Ids ids);

}  // namespace tinkxx::client
