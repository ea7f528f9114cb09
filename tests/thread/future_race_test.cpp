// Futures, promises and continuations that meet on many threads at once.
#include <tinkxx/future.hpp>

#include "thread/crew.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using testing::crew;
using testing::race;

TEST(FutureRace, OneOfManyCompletesIt) {  // R-CONV-03
    Runtime runtime;
    for (int round = 0; round < 200; ++round) {
        Promise<int> promise{runtime};
        auto const shared = promise.get_future().share();
        std::atomic<int> wins{0};
        race(crew, [&](int i) {
            if (i % 3 == 0) {
                shared.cancel();
            } else if (promise.set_value(i)) {
                ++wins;
            }
            auto const result = shared.result();
            if (!result) {
                EXPECT_EQ(result.error().kind(), ErrorKind::cancelled);
            }
        });
        EXPECT_LE(wins, 1);
        EXPECT_EQ(shared.result().has_value(), wins == 1);
    }
}

TEST(FutureRace, CancelMeetsThenAndCompletion) {  // R-CONV-03
    Runtime runtime;
    std::atomic<int> told{0};
    std::atomic<int> ended{0};
    constexpr int rounds = 750;
    race(crew, [&](int) {
        for (int round = 0; round < rounds; ++round) {
            auto promise = std::make_shared<Promise<int>>(runtime);
            promise->on_cancel([&told] { ++told; });
            auto next = promise->get_future()
                            .then([](int x) { return x + 1; })
                            .then_result([&ended](Result<int>) { ++ended; });
            runtime.scheduler().post([promise] { promise->set_value(1); });
            if (round % 3 == 0) next.cancel();
            auto const result = next.result();
            if (!result) {
                EXPECT_EQ(result.error().kind(), ErrorKind::cancelled);
            }
        }
    });
    EXPECT_LE(told, crew * rounds / 3 + crew);
    runtime.shutdown();
    EXPECT_GE(ended, crew * rounds * 2 / 3);
}

TEST(FutureRace, CancelEndsAWaitOnTheSameFuture) {
    Runtime runtime;
    for (int round = 0; round < 300; ++round) {
        Promise<int> promise{runtime};
        auto future = promise.get_future();
        race(2, [&](int i) {
            if (i == 0) {
                future.cancel();
            } else {
                EXPECT_THROW((void)future.get(), CancelledError);
            }
        });
    }
}

TEST(FutureRace, WhenAllUnderCancellation) {  // R-FUT-50
    Runtime runtime;
    race(crew, [&](int thread) {
        for (int round = 0; round < 150; ++round) {
            std::vector<std::shared_ptr<Promise<int>>> parts;
            std::vector<Future<int>> futures;
            for (int i = 0; i < 4; ++i) {
                parts.push_back(std::make_shared<Promise<int>>(runtime));
                futures.push_back(parts.back()->get_future());
            }
            auto all = when_all(std::move(futures)).share();
            // Two parts by the loop, two by the callback thread, a failure or a cancel between.
            for (std::size_t i = 0; i < 2; ++i) {
                runtime.scheduler().post([part = parts[i]] { part->set_value(1); });
            }
            Promise<void> start{runtime};
            auto rest = start.get_future().then([parts, round] {
                if (round % 3 == 1) {
                    parts[2]->set_error(Error{{.kind = ErrorKind::status, .message = "no"}});
                } else {
                    parts[2]->set_value(1);
                }
                parts[3]->set_value(1);
            });
            start.set_value();
            if ((round + thread) % 3 == 0) all.cancel();
            auto const result = all.result();
            if (result) {
                EXPECT_EQ(result->size(), 4U);
            }
            rest.get();
        }
    });
}

TEST(FutureRace, WaitersAreWokenWithoutThreadsToo) {
    Runtime runtime{{.threads = 0}};
    race(crew, [&](int thread) {
        for (int round = 0; round < 200; ++round) {
            auto promise = std::make_shared<Promise<int>>(runtime);
            auto future = promise->get_future();
            auto const shared = future.then([](int x) { return x; }).share();
            if (thread % 2 == 0) {
                runtime.scheduler().post([promise] { promise->set_value(1); });
            } else {
                promise->set_value(1);
            }
            if (round % 5 == 0) shared.cancel();
            auto const result = shared.result();
            if (!result) {
                EXPECT_EQ(result.error().kind(), ErrorKind::cancelled);
            }
        }
    });
}

Future<int> sum_of(std::vector<Future<int>> parts) {
    int sum = 0;
    for (auto& part : parts) sum += co_await part;
    co_return sum;
}

TEST(FutureRace, CoroutinesUnderCancellation) {
    Runtime runtime;
    race(crew, [&](int thread) {
        for (int round = 0; round < 200; ++round) {
            std::vector<Future<int>> futures;
            for (int i = 0; i < 3; ++i) {
                auto promise = std::make_shared<Promise<int>>(runtime);
                futures.push_back(promise->get_future());
                runtime.scheduler().post([promise] { promise->set_value(1); });
            }
            auto sum = sum_of(std::move(futures));
            if ((round + thread) % 2 == 0) sum.cancel();
            auto const result = sum.result();
            if (result) {
                EXPECT_EQ(*result, 3);
            } else {
                EXPECT_EQ(result.error().kind(), ErrorKind::cancelled);
            }
        }
    });
}

}  // namespace
}  // namespace tinkxx
