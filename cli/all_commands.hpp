#pragma once

#include "frame/program.hpp"

namespace tinkxx::cli {

/// What the program can do.
[[nodiscard]] Program all_commands();

}  // namespace tinkxx::cli
