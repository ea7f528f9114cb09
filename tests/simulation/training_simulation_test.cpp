#include "simulation/training_simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::simulation {
namespace {

/// One share of the worlds: they run beside each other.
class TrainingSimulation : public ::testing::TestWithParam<std::uint64_t> {
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

TEST_P(TrainingSimulation, KeepsItsPromisesWhateverTheSeed) {  // R-TEST-02, R-TRAIN-11..14
    Outcome sum;
    for (auto seed = GetParam() * worlds + 1; seed <= (GetParam() + 1) * worlds; ++seed) {
        auto const outcome = run_training_world(seed);
        EXPECT_THAT(outcome.problems, ::testing::IsEmpty())
            << "seed " << seed << "; tinkxx-sim --world training --start " << seed
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
    for (auto const& name : training_occurrences()) EXPECT_GT(sum.occurred[name], 0U) << name;
}

INSTANTIATE_TEST_SUITE_P(Seeds, TrainingSimulation, ::testing::Range<std::uint64_t>(0, 4));

TEST(TrainingWorld, RunsTheSameWayTwice) {  // R-CONV-02
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        auto const first = run_training_world(seed).trace;
        EXPECT_EQ(first, run_training_world(seed).trace) << "seed " << seed;
    }
}

}  // namespace
}  // namespace tinkxx::simulation
