#include <tinkxx/concurrency.hpp>

#include "thread/crew.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

namespace tinkxx::testing {
namespace {

/// Futures that threads complete in whatever order they come to them.
class Desk {
public:
    explicit Desk(Runtime const& runtime) : runtime_{runtime} {}

    Future<int> take(int value) {
        auto promise = std::make_shared<Promise<int>>(runtime_);
        auto future = promise->get_future();
        std::scoped_lock const lock{mutex_};
        open_.emplace_back(std::move(promise), value);
        most_ = std::max(most_, ++pending_);
        return future;
    }
    void serve() {
        std::vector<std::pair<std::shared_ptr<Promise<int>>, int>> some;
        {
            std::scoped_lock const lock{mutex_};
            std::swap(some, open_);
            pending_ -= some.size();
        }
        std::reverse(some.begin(), some.end());
        for (auto& [promise, value] : some) promise->set_value(value);
    }

    [[nodiscard]] std::size_t most() const {
        std::scoped_lock const lock{mutex_};
        return most_;
    }

private:
    Runtime runtime_;
    mutable std::mutex mutex_;
    std::size_t pending_{0};
    std::size_t most_{0};
    std::vector<std::pair<std::shared_ptr<Promise<int>>, int>> open_;
};

TEST(ConcurrencyRace, ALimitHoldsWhileManyThreadsEndCalls) {
    Runtime const runtime{{.executor = pool_executor(4)}};
    Desk desk{runtime};
    std::vector<int> items(2'000);
    std::iota(items.begin(), items.end(), 0);
    std::atomic<int> calling{0};
    std::atomic<bool> over{false};
    auto all = map_limited(items, 50, [&](int item) {
        EXPECT_EQ(calling++, 0) << "two threads call it at once";
        auto future = desk.take(item);
        --calling;
        return future;
    });
    race(crew, [&](int thread) {
        while (thread != 0 && !over) desk.serve();
        if (thread == 0) {
            all.wait();
            over = true;
        }
    });
    EXPECT_EQ(all.get(), items);
    EXPECT_LE(desk.most(), 50U);
}

TEST(ConcurrencyRace, ArrivalsAreHandedOutOnceEach) {
    Runtime const runtime;
    Desk desk{runtime};
    std::vector<Future<int>> futures;
    for (int i = 0; i < 2'000; ++i) futures.push_back(desk.take(i));
    Arrivals arrivals{std::move(futures)};
    std::vector<bool> seen(2'000);
    race(crew, [&](int thread) {
        if (thread != 0) return desk.serve();
        for (auto const& [index, result] : arrivals) {
            EXPECT_FALSE(seen[index]);
            seen[index] = true;
            EXPECT_EQ(*result, static_cast<int>(index));
        }
    });
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 2'000);
}

TEST(ConcurrencyRace, CancellingWhileCallsEnd) {
    Runtime const runtime;
    race(crew, [&](int) {
        for (int round = 0; round < 50; ++round) {
            Desk desk{runtime};
            std::vector<int> const items(20, 1);
            auto all =
                for_each_limited(items, 4, [&](int item) { return desk.take(item); }).share();
            auto end = std::async(std::launch::async, [&] { desk.serve(); });
            all.cancel();
            end.get();
            EXPECT_FALSE(all.result());
            // The callback thread may be inside the function: it is done once it has run this.
            Promise<void> last{runtime};
            auto done = last.get_future().then([] {});
            last.set_value();
            done.get();
        }
    });
}

}  // namespace
}  // namespace tinkxx::testing
