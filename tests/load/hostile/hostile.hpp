#pragma once

#include "load/options.hpp"

namespace tinkxx::load {

/// Attacks a server in every way that is known while ordinary users work with it. Prints what it
/// measured. `ExitCode::broken` if the server was slow, grew, died, or failed an ordinary user.
[[nodiscard]] ExitCode measure_hostile(Options const& options);

}  // namespace tinkxx::load
