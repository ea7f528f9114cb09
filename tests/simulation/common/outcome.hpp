#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tinkxx::simulation {

/// How often each thing occurred.
using Tally = std::map<std::string, std::uint64_t, std::less<>>;

/// What became of one simulated world.
struct WorldOutcome {
    /// Everything that happened, with virtual times: equal for equal seeds.
    std::string trace{};
    /// One sentence for each promise that was broken; empty if all is well.
    std::vector<std::string> problems{};
    int calls{0};
    int succeeded{0};
    int failed{0};
    int cancelled{0};
    std::uint64_t faults{0};
    /// Faults, answers and stages. A simulation that never gets into trouble proves nothing.
    Tally occurred{};
};

}  // namespace tinkxx::simulation
