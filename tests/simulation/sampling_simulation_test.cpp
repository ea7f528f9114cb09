#include "simulation/sampling_simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::simulation {
namespace {

/// One share of the worlds: they run beside each other.
class SamplingSimulation : public ::testing::TestWithParam<std::uint64_t> {
protected:
#ifdef TINKXX_SANITIZED
    static constexpr std::uint64_t worlds = 15;  // each takes ten times as long
#else
    static constexpr std::uint64_t worlds = 250;
#endif
};

std::string end_of(std::string const& trace) {
    constexpr std::size_t most = 6000;
    return trace.size() <= most ? trace : "...\n" + trace.substr(trace.size() - most);
}

TEST_P(SamplingSimulation, KeepsItsPromisesWhateverTheSeed) {  // R-TEST-02, R-SAMP-38, R-SAMP-11
    Outcome sum;
    for (auto seed = GetParam() * worlds + 1; seed <= (GetParam() + 1) * worlds; ++seed) {
        auto const outcome = run_sampling_world(seed);
        EXPECT_THAT(outcome.problems, ::testing::IsEmpty())
            << "seed " << seed << "; tinkxx-sim --world sampling --start " << seed
            << " --seeds 1 --trace shows all of it, which ends in\n"
            << end_of(outcome.trace);
        if (HasFailure()) break;
        sum.calls += outcome.calls;
        sum.succeeded += outcome.succeeded;
        sum.failed += outcome.failed;
        sum.cancelled += outcome.cancelled;
        for (auto const& [name, times] : outcome.occurred) sum.occurred[name] += times;
    }
    if (HasFailure()) return;
    EXPECT_EQ(sum.calls, sum.succeeded + sum.failed + sum.cancelled);
    if (worlds < 250) return;  // too few for all that can happen to happen
    EXPECT_GT(sum.succeeded, 2000);
    for (auto const& name : sampling_occurrences()) EXPECT_GT(sum.occurred[name], 0U) << name;
}

INSTANTIATE_TEST_SUITE_P(Seeds, SamplingSimulation, ::testing::Range<std::uint64_t>(0, 8));

TEST(SamplingWorld, KeepsItsPromisesForSeedsThatOnceShowedAFault) {  // R-TEST-02
    for (std::uint64_t const seed : {1963U, 18531U, 20907U, 22787U, 28922U, 35450U, 51986U, 59001U,
                                     69565U, 84202U, 1062007U}) {
        EXPECT_THAT(run_sampling_world(seed).problems, ::testing::IsEmpty()) << "seed " << seed;
    }
}

TEST(SamplingWorld, RunsTheSameWayTwice) {  // R-CONV-02
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        auto const first = run_sampling_world(seed).trace;
        EXPECT_EQ(first, run_sampling_world(seed).trace) << "seed " << seed;
    }
}

}  // namespace
}  // namespace tinkxx::simulation
