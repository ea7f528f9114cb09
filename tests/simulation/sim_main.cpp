// Runs simulated worlds by seed and prints the seeds that break a promise.
//
//   tinkxx-sim [--seeds N] [--first S] [--trace]
#include "simulation/http_simulation.hpp"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
    std::uint64_t seeds = 1000;
    std::uint64_t first = 1;
    bool trace = false;
    for (int i = 1; i < argc; ++i) {
        std::string const word = argv[i];
        if (word == "--trace") {
            trace = true;
        } else if ((word == "--seeds" || word == "--first") && i + 1 < argc) {
            (word == "--seeds" ? seeds : first) = std::strtoull(argv[++i], nullptr, 10);
        } else {
            std::cerr << "usage: tinkxx-sim [--seeds N] [--first S] [--trace]\n";
            return 2;
        }
    }
    std::uint64_t failing = 0;
    long long calls = 0;
    for (auto seed = first; seed < first + seeds; ++seed) {
        auto const outcome = tinkxx::simulation::run_http_world(seed);
        calls += outcome.calls;
        if (trace) std::cout << outcome.trace;
        if (outcome.problems.empty()) continue;
        ++failing;
        std::cout << "seed " << seed << ":\n";
        for (auto const& problem : outcome.problems) std::cout << "  " << problem << '\n';
    }
    std::cout << seeds << " seeds, " << calls << " calls, " << failing << " failing\n";
    return failing == 0 ? 0 : 1;
}
