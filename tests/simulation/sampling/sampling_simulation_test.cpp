#include "simulation/sampling/sampling_simulation.hpp"

#include "simulation/common/share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::simulation {
namespace {

/// One share of the worlds: they run beside each other.
class SamplingSimulation : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(SamplingSimulation, KeepsItsPromisesWhateverTheSeed) {  // R-TEST-02, R-SAMP-38, R-SAMP-11
    expect_promises_kept("sampling", GetParam(), run_sampling_world, sampling_occurrences());
}

INSTANTIATE_TEST_SUITE_P(Seeds, SamplingSimulation, ::testing::Range<std::uint64_t>(0, 8));

TEST(SamplingWorld, KeepsItsPromisesForSeedsThatOnceShowedAFault) {  // R-TEST-02
    for (std::uint64_t const seed : {1963U, 18531U, 20907U, 22787U, 28922U, 35450U, 51986U, 59001U,
                                     69565U, 84202U, 1062007U, 2114583U}) {
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
