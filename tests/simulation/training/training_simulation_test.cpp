#include "simulation/training/training_simulation.hpp"

#include "simulation/common/share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::simulation {
namespace {

/// One share of the worlds: they run beside each other.
class TrainingSimulation : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(TrainingSimulation, KeepsItsPromisesWhateverTheSeed) {  // R-TEST-02, R-TRAIN-11..14
    expect_promises_kept("training", GetParam(), run_training_world, training_occurrences());
}

INSTANTIATE_TEST_SUITE_P(Seeds, TrainingSimulation, ::testing::Range<std::uint64_t>(0, 4));

TEST(TrainingWorld, KeepsItsPromisesForSeedsThatOnceShowedAFault) {  // R-TEST-02
    for (std::uint64_t const seed : {552137U}) {
        EXPECT_THAT(run_training_world(seed).problems, ::testing::IsEmpty()) << "seed " << seed;
    }
}

TEST(TrainingWorld, RunsTheSameWayTwice) {  // R-CONV-02
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        auto const first = run_training_world(seed).trace;
        EXPECT_EQ(first, run_training_world(seed).trace) << "seed " << seed;
    }
}

}  // namespace
}  // namespace tinkxx::simulation
