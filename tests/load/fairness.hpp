#pragma once

#include "load/options.hpp"

namespace tinkxx::load {

/// Asks for one token after the other, beside long forward and backward passes and then beside
/// sessions that ask for more samples than the server can have under way. Prints how long each
/// took.
[[nodiscard]] ExitCode measure_fairness(Options const& options);

}  // namespace tinkxx::load
