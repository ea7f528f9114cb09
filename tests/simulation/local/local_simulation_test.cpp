#include "simulation/local/local_simulation.hpp"

#include "simulation/common/share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::simulation {
namespace {

/// One share of the worlds: they run beside each other.
class LocalSimulation : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(LocalSimulation, KeepsItsPromisesWhateverTheSeed) {  // R-TEST-02
    // A model is trained in each of them.
    constexpr std::uint64_t worlds = 150;
    expect_promises_kept("local", GetParam(), run_local_world, local_occurrences(), worlds);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LocalSimulation, ::testing::Range<std::uint64_t>(0, 2));

TEST(LocalWorld, KeepsItsPromisesForSeedsThatOnceShowedAFault) {  // R-TEST-02
    for (std::uint64_t const seed : {305632U, 316578U}) {
        EXPECT_THAT(run_peaceful_local_world(seed).problems, ::testing::IsEmpty())
            << "seed " << seed;
    }
}

TEST(LocalWorld, RunsTheSameWayTwice) {  // R-CONV-02
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        auto const first = run_local_world(seed).trace;
        EXPECT_EQ(first, run_local_world(seed).trace) << "seed " << seed;
    }
}

}  // namespace
}  // namespace tinkxx::simulation
