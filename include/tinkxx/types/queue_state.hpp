#pragma once

#include <cstdint>
#include <string_view>

namespace tinkxx {

/// What the service says about a request that waits there.
enum class QueueState : std::uint8_t {
    active,
    paused_rate_limit,  ///< too many models or samplers at once
    paused_capacity,    ///< the service is short of machines
    unknown,            ///< a state that this release does not know
};

/// As the service words it: `active`, `paused_rate_limit`, `paused_capacity`, `unknown`.
[[nodiscard]] std::string_view to_string(QueueState state) noexcept;
/// The state of that name, whatever its case and the blanks around it; else `unknown`.
[[nodiscard]] QueueState parse_queue_state(std::string_view text) noexcept;

}  // namespace tinkxx
