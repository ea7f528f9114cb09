#pragma once

#include "frame/command.hpp"

namespace tinkxx::cli {

[[nodiscard]] Command version_command();

}  // namespace tinkxx::cli
