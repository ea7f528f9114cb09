#pragma once

#include "simulation/common/outcome.hpp"

#include <cstdint>

namespace tinkxx::simulation {

/// Several clients make calls to a moody server over a bad network, all chosen by `seed`, on one
/// thread and on virtual time.
[[nodiscard]] WorldOutcome run_http_world(std::uint64_t seed);

}  // namespace tinkxx::simulation
