#pragma once

#include <tinkxx/runtime.hpp>

#include "client/resolved_options.hpp"
#include "service/core/client_core.hpp"

#include <memory>
#include <optional>

namespace tinkxx::client {

/// A session and what its clients share; a shadow, which needs a snapshot, is shared with others of
/// the same session and options. `ids` is shared by what one client shows together. Any thread.
[[nodiscard]] std::shared_ptr<service::ClientCore> make_core(
    Runtime const& runtime, service::SessionConfig const& config, ResolvedOptions const& options,
    service::SessionKind kind, std::shared_ptr<Transport> const& transport,
    std::optional<service::SessionSnapshot> const& snapshot, service::PendingList::Ids ids);

}  // namespace tinkxx::client
