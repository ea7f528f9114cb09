#pragma once

#include "frame/program.hpp"

#include <functional>

namespace tinkxx::cli {

[[nodiscard]] Command version_command();
[[nodiscard]] Command doctor_command();

/// Commands that speak of all others; `all` gives them.
[[nodiscard]] Command help_command(std::function<Program()> all);
[[nodiscard]] Command completion_command(std::function<Program()> all);
[[nodiscard]] Command man_command(std::function<Program()> all);

}  // namespace tinkxx::cli
