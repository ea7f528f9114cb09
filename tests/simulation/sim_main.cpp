// Runs simulated worlds by seed; prints the seeds that break a promise and what occurred.
//
//   tinkxx-sim [--world http|sampling|training|local] [--seeds N] [--start S]
//   [--trace|--trace-hash]
//
// --trace-hash prints a hash of the trace for each seed: equal before and after a change that must
// not alter what goes over the transport.
#include "simulation/http/http_simulation.hpp"
#ifdef TINKXX_SIMULATION_LOCAL
#include "simulation/local/local_simulation.hpp"
#endif
#include "simulation/sampling/sampling_simulation.hpp"
#include "simulation/training/training_simulation.hpp"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using tinkxx::simulation::WorldOutcome;

struct Kind {
    std::string_view name{};
    WorldOutcome (*run)(std::uint64_t seed){nullptr};
    std::vector<std::string> occurrences{};
};

struct Options {
    std::uint64_t seeds{1000};
    std::uint64_t start{1};
    std::string world{};  ///< empty: all
    bool trace{false};
    bool trace_hash{false};
};

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return hash;
}

/// Fewer seeds than this need not show everything.
constexpr std::uint64_t enough_for_everything = 1000;

bool run(Kind const& kind, Options const& options) {
    std::uint64_t failing = 0;
    std::uint64_t calls = 0;
    tinkxx::simulation::Tally occurred;
    for (auto seed = options.start; seed < options.start + options.seeds; ++seed) {
        auto const outcome = kind.run(seed);
        calls += static_cast<std::uint64_t>(outcome.calls);
        for (auto const& [name, times] : outcome.occurred) occurred[name] += times;
        if (options.trace) std::cout << outcome.trace;
        if (options.trace_hash) {
            std::cout << kind.name << ' ' << seed << ' ' << hash_of(outcome.trace) << '\n';
        }
        if (outcome.problems.empty()) continue;
        ++failing;
        std::cout << kind.name << " seed " << seed << ":\n";
        for (auto const& problem : outcome.problems) std::cout << "  " << problem << '\n';
    }
    for (auto const& [name, times] : occurred) std::cout << "  " << name << ": " << times << '\n';
    bool complete = true;
    for (auto const& name : kind.occurrences) {
        if (options.seeds < enough_for_everything || occurred[name] > 0) continue;
        complete = false;
        std::cout << "never occurred: " << name << '\n';
    }
    std::cout << kind.name << ": " << options.seeds << " seeds, " << calls << " calls, " << failing
              << " failing\n";
    return failing == 0 && complete;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string const word = argv[i];
        if (word == "--trace") {
            options.trace = true;
        } else if (word == "--trace-hash") {
            options.trace_hash = true;
        } else if ((word == "--seeds" || word == "--start") && i + 1 < argc) {
            auto& value = word == "--seeds" ? options.seeds : options.start;
            value = std::strtoull(argv[++i], nullptr, 10);
        } else if (word == "--world" && i + 1 < argc) {
            options.world = argv[++i];
        } else {
            std::cerr << "usage: tinkxx-sim [--world http|sampling|training|local] [--seeds N] "
                         "[--start S] [--trace|--trace-hash]\n";
            return 2;
        }
    }
    std::vector<Kind> const kinds{
        {.name = "http", .run = tinkxx::simulation::run_http_world},
        {.name = "sampling",
         .run = tinkxx::simulation::run_sampling_world,
         .occurrences = tinkxx::simulation::sampling_occurrences()},
        {.name = "training",
         .run = tinkxx::simulation::run_training_world,
         .occurrences = tinkxx::simulation::training_occurrences()},
#ifdef TINKXX_SIMULATION_LOCAL
        {.name = "local",
         .run = tinkxx::simulation::run_local_world,
         .occurrences = tinkxx::simulation::local_occurrences()},
#endif
    };
    bool good = true;
    bool known = options.world.empty();
    for (auto const& kind : kinds) {
        if (!options.world.empty() && options.world != kind.name) continue;
        known = true;
        good = run(kind, options) && good;
    }
    if (!known) {
        std::cerr << "tinkxx-sim: there is no world " << options.world << '\n';
        return 2;
    }
    return good ? 0 : 1;
}
