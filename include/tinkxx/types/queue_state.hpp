#pragma once

#include <cstdint>
#include <string_view>

namespace tinkxx {

/// The state of a request in the service's queue.
enum class QueueState : std::uint8_t {
    active,
    paused_rate_limit,  ///< too many models or samplers at once
    paused_capacity,    ///< the service has no machine available
    unknown,            ///< a state that this release does not know
};

/// The service's name of it: `active`, `paused_rate_limit`, `paused_capacity`, `unknown`.
[[nodiscard]] std::string_view to_string(QueueState state) noexcept;
/// The state with this name, ignoring case and surrounding blanks; `unknown` for other names.
[[nodiscard]] QueueState parse_queue_state(std::string_view text) noexcept;

}  // namespace tinkxx
