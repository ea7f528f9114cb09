#include <tinkxx/error.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/runtime.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

namespace tinkxx {
namespace {

TEST(PoolExecutor, ASlowCallbackHoldsNoOtherUp) {
    Runtime const runtime{{.executor = pool_executor(2)}};
    std::latch slow{1};
    Promise<int> first{runtime};
    Promise<int> second{runtime};
    auto waits = first.get_future().then([&](int) { slow.wait(); });
    auto passes = second.get_future().then([&](int) { slow.count_down(); });
    first.set_value(1);
    second.set_value(2);
    passes.get();
    waits.get();
}

TEST(PoolExecutor, RunsAsManyAtOnceAsItHasThreads) {
    constexpr int threads = 4;
    std::latch all{threads};
    auto const pool = pool_executor(threads);
    std::promise<void> done;
    std::atomic<int> left{threads};
    for (int i = 0; i < threads; ++i) {
        pool->run([&] {
            all.arrive_and_wait();
            if (--left == 0) done.set_value();
        });
    }
    done.get_future().get();
}

TEST(PoolExecutor, DropsWhatWaitsWhenItEnds) {
    auto const kept = std::make_shared<int>(1);
    std::promise<void> running;
    std::latch go_on{1};
    auto pool = pool_executor(1);
    pool->run([&] {
        running.set_value();
        go_on.wait();
    });
    running.get_future().get();
    bool ran = false;
    pool->run([&ran, held = kept] { ran = true; });
    EXPECT_EQ(kept.use_count(), 2);
    std::thread release{[&] {
        // The destructor below drops what waits before it joins.
        while (kept.use_count() > 1) std::this_thread::yield();
        go_on.count_down();
    }};
    pool.reset();
    release.join();
    EXPECT_FALSE(ran);
}

TEST(PoolExecutor, MayEndInsideItsOwnCallback) {
    auto const done = std::make_shared<std::promise<void>>();  // the thread may outlive the test
    auto pool = pool_executor(1);
    std::promise<std::shared_ptr<Executor>> handed;
    pool->run([done, later = handed.get_future()]() mutable {
        later.get().reset();
        done->set_value();
    });
    handed.set_value(std::move(pool));
    done->get_future().get();
}

TEST(PoolExecutor, NeedsAThread) {
    try {
        (void)pool_executor(0);
        FAIL() << "a pool without threads";
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "threads");
        EXPECT_EQ(error.value(), "0");
    }
}

}  // namespace
}  // namespace tinkxx
