#pragma once

#include <latch>
#include <thread>
#include <vector>

namespace tinkxx::testing {

inline constexpr int crew = 8;

/// Runs `work(i)` on `threads` threads that start together, and waits for all of them.
template <class Work>
void race(int threads, Work work) {
    std::latch start{threads};
    std::vector<std::thread> running;
    running.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
        running.emplace_back([&start, &work, i] {
            start.arrive_and_wait();
            work(i);
        });
    }
    for (auto& thread : running) thread.join();
}

}  // namespace tinkxx::testing
