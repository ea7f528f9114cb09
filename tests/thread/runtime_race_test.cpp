// Runtimes that end while everything is in flight.
#include <tinkxx/future.hpp>
#include <tinkxx/runtime.hpp>

#include "base/runtime/runtime_core.hpp"
#include "thread/crew.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

using testing::crew;
using testing::race;

/// Ends with `cancelled` or a value, never hangs.
void expect_end(Result<int> const& result) {
    if (!result) {
        EXPECT_EQ(result.error().kind(), ErrorKind::cancelled) << result.error().what();
    }
}

Future<int> await_it(Future<int> source) {
    auto const value = co_await source;
    co_return value;
}

/// A runtime with continuations, a coroutine and posts in flight, ended in one of several ways.
void live_and_die(int way) {
    auto runtime = std::make_unique<Runtime>();
    auto early = std::make_shared<Promise<int>>(*runtime);
    auto late = std::make_shared<Promise<int>>(*runtime);
    auto one = early->get_future().then([](int x) { return x + 1; });
    auto two = await_it(late->get_future());
    runtime->scheduler().post([early] { early->set_value(1); });
    std::promise<void> drop;
    auto dropped = drop.get_future();
    switch (way % 6) {
        case 0:  // while the loop is busy
            runtime.reset();
            break;
        case 1: {  // the last handle goes inside a callback
            auto const core = runtime->core();
            core->run_callback([own = std::move(runtime), said = std::move(drop)]() mutable {
                own.reset();
                said.set_value();
            });
            dropped.wait();
            break;
        }
        case 2: {  // the last handle goes on the I/O thread
            auto& scheduler = runtime->scheduler();
            scheduler.post([own = std::move(runtime), said = std::move(drop)]() mutable {
                own.reset();
                said.set_value();
            });
            dropped.wait();
            break;
        }
        case 3: {  // from two threads at once
            std::thread other{[copy = *runtime]() mutable { copy.shutdown(); }};
            runtime->shutdown();
            other.join();
            break;
        }
        case 4: {  // from a callback and from outside at once
            runtime->core()->run_callback([copy = *runtime]() mutable { copy.shutdown(); });
            runtime.reset();
            break;
        }
        default:  // with a cancellation in between
            one.cancel();
            runtime.reset();
            two.cancel();
    }
    early.reset();
    late.reset();
    expect_end(one.result());
    expect_end(two.result());
}

TEST(RuntimeRace, EndsInEveryWayWhileWorkIsInFlight) {  // R-CONV-03, R-CONF-43
    // More than 5,000 runtimes.
    race(crew, [](int thread) {
        for (int round = 0; round < 640; ++round) live_and_die(thread + round);
    });
}

TEST(RuntimeRace, FuturesAreCancelledAndDroppedMidFlight) {  // R-CONV-03
    // At least 5,000 of each, against one runtime that ends while they are at it.
    constexpr int rounds = 700;
    auto runtime = std::make_unique<Runtime>();
    auto const handle = *runtime;
    std::atomic<int> finished{0};
    race(crew, [&](int thread) {
        for (int round = 0; round < rounds; ++round) {
            auto promise = std::make_shared<Promise<int>>(handle);
            auto next = promise->get_future().then([](int x) { return x; });
            handle.scheduler().post([promise] { promise->set_value(2); });
            promise.reset();
            switch (round % 4) {
                case 0:
                    next.cancel();
                    break;
                case 1:
                    continue;  // dropped
                default:
                    break;
            }
            expect_end(next.result());
            if (thread == 0 && round == rounds / 2) Runtime{handle}.shutdown();
        }
        ++finished;
    });
    EXPECT_EQ(finished, crew);
}

TEST(RuntimeRace, ManyPostersLoseNothing) {
    Runtime runtime;
    constexpr int posts = 2'000;
    std::vector<int> last(crew, -1);  // loop thread only
    int count = 0;
    race(crew, [&](int thread) {
        for (int i = 0; i < posts; ++i) {
            runtime.scheduler().post([&, thread, i] {
                EXPECT_EQ(last[static_cast<std::size_t>(thread)], i - 1);  // FIFO per thread
                last[static_cast<std::size_t>(thread)] = i;
                ++count;
            });
        }
    });
    std::promise<int> all;
    auto total = all.get_future();
    runtime.scheduler().post([&count, own = std::move(all)]() mutable { own.set_value(count); });
    EXPECT_EQ(total.get(), crew * posts);
}

TEST(RuntimeRace, CallbacksOfManyThreadsAllRun) {
    Runtime runtime;
    constexpr int callbacks = 1'000;
    int count = 0;  // callback thread only
    race(crew, [&](int) {
        for (int i = 0; i < callbacks; ++i) runtime.core()->run_callback([&count] { ++count; });
    });
    std::promise<int> all;
    auto total = all.get_future();
    runtime.core()->run_callback(
        [&count, own = std::move(all)]() mutable { own.set_value(count); });
    EXPECT_EQ(total.get(), crew * callbacks);
}

TEST(RuntimeRace, TheSharedRuntimeComesAndGoes) {  // R-CONF-43
    race(crew, [](int) {
        for (int round = 0; round < 50; ++round) {
            auto const runtime = Runtime::shared();
            Promise<int> promise{runtime};
            auto next = promise.get_future().then([](int x) { return x; });
            promise.set_value(1);
            EXPECT_EQ(next.get(), 1);
        }
    });
}

TEST(RuntimeRace, PollsFromManyThreadsTakeTurns) {
    Runtime runtime{{.threads = 0}};
    std::atomic<bool> inside{false};
    std::atomic<int> ran{0};
    constexpr int tasks = 400;
    race(crew, [&](int thread) {
        if (thread % 2 == 0) {
            for (int i = 0; i < tasks; ++i) {
                runtime.scheduler().post([&] {
                    EXPECT_FALSE(inside.exchange(true));
                    inside = false;
                    ++ran;
                });
            }
        }
        while (ran < crew / 2 * tasks) runtime.poll(std::chrono::milliseconds{1});
    });
    EXPECT_EQ(ran, crew / 2 * tasks);
}

/// Runs each callback on a new thread.
class ThreadExecutor final : public Executor {
public:
    void run(Task task) override {
        std::scoped_lock const lock{mutex_};
        threads_.emplace_back([own = std::move(task)]() mutable { own(); });
    }
    ~ThreadExecutor() override {
        for (auto& thread : threads_) thread.join();
    }

private:
    std::mutex mutex_;
    std::vector<std::thread> threads_;
};

TEST(RuntimeRace, ShutdownWaitsForCallbacksOnAUsersExecutor) {
    auto const executor = std::make_shared<ThreadExecutor>();
    for (int round = 0; round < 30; ++round) {
        std::optional<Runtime> runtime{std::in_place, RuntimeOptions{.executor = executor}};
        // Alive until the runtime has ended: no callback may touch it after that.
        auto counter = std::make_unique<int>(0);
        std::mutex mutex;
        race(2, [&](int) {
            for (int i = 0; i < 5; ++i) {
                runtime->core()->run_callback([&mutex, count = counter.get()] {
                    std::scoped_lock const lock{mutex};
                    ++*count;
                });
            }
        });
        runtime.reset();
        counter.reset();
    }
}

}  // namespace
}  // namespace tinkxx
