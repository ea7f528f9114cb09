#include "simulation/http/http_simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::simulation {
namespace {

TEST(HttpSimulation, KeepsItsPromisesWhateverTheSeed) {  // R-TEST-02, R-RETRY-70, R-RETRY-72
    WorldOutcome sum;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        auto const outcome = run_http_world(seed);
        EXPECT_THAT(outcome.problems, ::testing::IsEmpty()) << "seed " << seed;
        sum.calls += outcome.calls;
        sum.succeeded += outcome.succeeded;
        sum.failed += outcome.failed;
        sum.cancelled += outcome.cancelled;
        sum.faults += outcome.faults;
    }
    // A simulation that never gets into trouble proves nothing.
    EXPECT_EQ(sum.calls, sum.succeeded + sum.failed + sum.cancelled);
    EXPECT_GT(sum.succeeded, 2000);
    EXPECT_GT(sum.failed, 100);
    EXPECT_GT(sum.cancelled, 100);
    EXPECT_GT(sum.faults, 5000U);
}

TEST(HttpSimulation, RunsTheSameWayTwice) {  // R-CONV-02
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        auto const first = run_http_world(seed).trace;
        EXPECT_EQ(first, run_http_world(seed).trace) << "seed " << seed;
        EXPECT_NE(first, run_http_world(seed + 1).trace);
    }
}

}  // namespace
}  // namespace tinkxx::simulation
