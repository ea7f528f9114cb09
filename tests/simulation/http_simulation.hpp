#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::simulation {

/// What became of one simulated world.
struct Outcome {
    /// Everything that happened, with virtual times: equal for equal seeds.
    std::string trace{};
    /// One sentence for each promise that was broken; empty if all is well.
    std::vector<std::string> problems{};
    int calls{0};
    int succeeded{0};
    int failed{0};
    int cancelled{0};
    std::uint64_t faults{0};
};

/// Several clients make calls to a moody server over a bad network, all chosen by `seed`, on one
/// thread and on virtual time.
[[nodiscard]] Outcome run_http_world(std::uint64_t seed);

}  // namespace tinkxx::simulation
