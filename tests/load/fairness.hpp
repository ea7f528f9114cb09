#pragma once

#include "load/options.hpp"

namespace tinkxx::load {

/// Asks for one token after the other beside long forward and backward passes, and prints how long
/// each took.
[[nodiscard]] Exit measure_fairness(Options const& options);

}  // namespace tinkxx::load
