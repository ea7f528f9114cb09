#pragma once

#include "frame/command.hpp"

namespace tinkxx::cli {

/// The key by which the service knows who asks.
[[nodiscard]] Command auth_login_command();
[[nodiscard]] Command auth_logout_command();
[[nodiscard]] Command auth_status_command();
[[nodiscard]] Command auth_whoami_command();

}  // namespace tinkxx::cli
