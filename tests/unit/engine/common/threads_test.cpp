#include "engine/common/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <numeric>
#include <thread>
#include <vector>

namespace tinkxx::engine {
namespace {

TEST(Threads, RunsEveryChunkOnce) {
    for (unsigned const count : {1U, 2U, 3U, 8U}) {
        Threads threads{count};
        EXPECT_EQ(threads.count(), count);
        for (std::size_t chunks = 0; chunks != 70; ++chunks) {
            std::vector<int> times(chunks, 0);
            threads.run(chunks, [&](std::size_t chunk, unsigned) { ++times[chunk]; });
            EXPECT_EQ(times, std::vector<int>(chunks, 1));
        }
    }
}

TEST(Threads, NoTwoCallsWithOneSlotOverlap) {
    Threads threads{4};
    std::vector<std::atomic<int>> busy(threads.count());
    std::atomic<int> overlaps{0};
    for (int round = 0; round != 200; ++round) {
        threads.run(50, [&](std::size_t, unsigned slot) {
            if (slot >= busy.size() || busy[slot].fetch_add(1) != 0) ++overlaps;
            busy[slot].fetch_sub(1);
        });
    }
    EXPECT_EQ(overlaps, 0);
}

TEST(Threads, ACallerWhoFindsTheWorkersBusyDoesItsChunksItself) {
    Threads threads{2};
    std::latch held{1};
    std::latch release{1};
    std::thread other{[&] {
        threads.run(2, [&](std::size_t chunk, unsigned) {
            if (chunk != 0) return;
            held.count_down();
            release.wait();
        });
    }};
    held.wait();
    int done = 0;
    threads.run(10, [&](std::size_t, unsigned) { ++done; });
    EXPECT_EQ(done, 10);
    release.count_down();
    other.join();
}

TEST(Threads, ARoundInsideABodyRunsOnItsOwnThread) {
    Threads threads{3};
    std::vector<int> sums(20, 0);
    std::atomic<int> strangers{0};
    threads.run(sums.size(), [&](std::size_t chunk, unsigned slot) {
        auto const here = std::this_thread::get_id();
        threads.run(5, [&](std::size_t inner, unsigned inner_slot) {
            if (std::this_thread::get_id() != here || inner_slot != slot) ++strangers;
            sums[chunk] += static_cast<int>(inner);
        });
    });
    EXPECT_EQ(sums, std::vector<int>(20, 10));
    EXPECT_EQ(strangers, 0);
}

TEST(Threads, WorkersSeeWhatTheCallerWroteAndTheCallerWhatTheyWrote) {
    Threads threads{3};
    std::vector<std::uint64_t> data(1000);
    std::uint64_t expected = 0;
    for (std::uint64_t round = 1; round != 300; ++round) {
        std::iota(data.begin(), data.end(), round);
        threads.run(100, [&](std::size_t chunk, unsigned) {
            for (std::size_t i = chunk * 10; i != chunk * 10 + 10; ++i) data[i] *= 2;
        });
        expected = 2 * (1000 * round + 999 * 500);
        ASSERT_EQ(std::accumulate(data.begin(), data.end(), std::uint64_t{0}), expected);
    }
}

TEST(Threads, SeveralCallersAtOnceEachGetTheirChunksDone) {
    Threads threads{2};
    std::atomic<int> total{0};
    std::vector<std::thread> callers;
    callers.reserve(3);
    for (int i = 0; i != 3; ++i) {
        callers.emplace_back([&] {
            for (int round = 0; round != 100; ++round) {
                threads.run(7, [&](std::size_t, unsigned) { ++total; });
            }
        });
    }
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(total, 3 * 100 * 7);
}

TEST(Threads, ZeroMeansOneForEachCpu) {
    EXPECT_EQ(Threads{0}.count(), std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace tinkxx::engine
