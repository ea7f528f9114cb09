#pragma once

#include "service/session/session.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// All that makes two sessions the same, as text. Holds secrets.
[[nodiscard]] std::string canonical_text(ClientConfig const& config);

/// The shadow of a session, shared by all who import a sampler of it with the same options on one
/// runtime (R-SESS-31); made by `make` if there is none. Any thread.
///
/// The pointer is a share in the shadow: with the last one it is closed.
[[nodiscard]] std::shared_ptr<Session> shared_shadow(
    detail::RuntimeCore const& runtime, std::string_view session_id, ClientConfig const& config,
    std::function<std::shared_ptr<Session>()> const& make);

}  // namespace tinkxx::service
