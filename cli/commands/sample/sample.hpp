#pragma once

#include "frame/command.hpp"

namespace tinkxx::cli {

[[nodiscard]] Command sample_command();
[[nodiscard]] Command logprobs_command();

}  // namespace tinkxx::cli
