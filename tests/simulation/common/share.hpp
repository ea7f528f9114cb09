#pragma once

#include "simulation/common/outcome.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::simulation {

/// Worlds that one test runs; several run beside each other.
#ifdef TINKXX_SANITIZED
inline constexpr std::uint64_t worlds_of_a_share = 15;  // each takes ten times as long
#else
inline constexpr std::uint64_t worlds_of_a_share = 250;
#endif

/// Runs the worlds of one share and expects that each keeps its promises, that every call has one
/// end, and that all of `occurrences` occurred. `worlds`: where each takes longer than others.
inline void expect_promises_kept(std::string_view world, std::uint64_t share,
                                 WorldOutcome (&run)(std::uint64_t seed),
                                 std::vector<std::string> const& occurrences,
                                 std::uint64_t worlds = worlds_of_a_share) {
    constexpr std::size_t most = 6000;
    WorldOutcome sum;
    worlds = std::min(worlds, worlds_of_a_share);
    for (auto seed = share * worlds + 1; seed <= (share + 1) * worlds; ++seed) {
        auto const outcome = run(seed);
        auto const& trace = outcome.trace;
        EXPECT_THAT(outcome.problems, ::testing::IsEmpty())
            << "seed " << seed << "; tinkxx-sim --world " << world << " --start " << seed
            << " --seeds 1 --trace shows all of it, which ends in\n"
            << (trace.size() <= most ? trace : "...\n" + trace.substr(trace.size() - most));
        if (::testing::Test::HasFailure()) return;
        sum.calls += outcome.calls;
        sum.succeeded += outcome.succeeded;
        sum.failed += outcome.failed;
        sum.cancelled += outcome.cancelled;
        for (auto const& [name, times] : outcome.occurred) sum.occurred[name] += times;
    }
    EXPECT_EQ(sum.calls, sum.succeeded + sum.failed + sum.cancelled);
    if (worlds_of_a_share < 250) return;  // too few for all that can happen to happen
    EXPECT_GT(sum.succeeded, 2000);
    for (auto const& name : occurrences) EXPECT_GT(sum.occurred[name], 0U) << name;
}

}  // namespace tinkxx::simulation
