#pragma once

#include <tinkxx/runtime.hpp>

#include "client/resolved_options.hpp"
#include "service/sampling/sampling_shared.hpp"

#include <memory>
#include <optional>

namespace tinkxx::client {

/// A holder and what its clients share; a shadow, which needs a snapshot, is shared with others of
/// the same session and options. `ids` is shared by what one client shows together. Any thread.
[[nodiscard]] std::shared_ptr<service::SamplingShared> make_core(
    Runtime const& runtime, service::HolderConfig const& config, ResolvedOptions const& options,
    service::HolderKind kind, std::shared_ptr<Transport> const& transport,
    std::optional<service::SessionSnapshot> const& snapshot, service::PendingList::Ids ids);

}  // namespace tinkxx::client
