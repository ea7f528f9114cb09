#include "unit/client/client_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using testing::Reply;

/// Runs callbacks when the test says so.
struct HandExecutor final : Executor {
    void run(Task task) override { tasks.push_back(std::move(task)); }
    bool step() {
        if (tasks.empty()) return false;
        auto task = std::move(tasks.front());
        tasks.pop_front();
        task();
        return true;
    }
    std::deque<Task> tasks{};
};

struct HttpStreamTest : ClientFixture {
    std::string got{};
    HttpClient::DataHandler collect() {
        return [this](std::span<char const> data) { got.append(data.begin(), data.end()); };
    }
};

TEST_F(HttpStreamTest, GivesTheBodyAwayAsItComes) {  // R-EXT-90
    fake->push({.body = "abcdef", .pieces = 3, .piece_delay = 1s});
    auto http = client();
    std::vector<std::pair<std::chrono::nanoseconds, std::string>> pieces;
    auto const start = clock->now();
    auto pending = http.stream({.path = "/"}, [&](std::span<char const> data) {
        pieces.emplace_back(clock->now() - start, std::string{data.begin(), data.end()});
    });
    auto const response = pending.get();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "");
    EXPECT_EQ(pieces, (decltype(pieces){{1s, "ab"}, {2s, "cd"}, {3s, "ef"}}));
}

TEST_F(HttpStreamTest, CompletesAfterTheLastPiece) {
    fake->push({.body = "abcdef", .pieces = 6});
    auto http = client();
    auto pending = http.stream({.path = "/"}, collect());
    pending.get();
    EXPECT_EQ(got, "abcdef");
}

TEST_F(HttpStreamTest, RetriesUntilThereIsData) {
    fake->push({.status = 503, .body = "not this"});
    fake->push({.body = "this"});
    auto http = client();
    auto const response = http.stream({.path = "/"}, collect()).get();
    EXPECT_EQ(got, "this");
    EXPECT_EQ(response.retries, 1);
}

TEST_F(HttpStreamTest, DoesNotBeginAnewAfterData) {
    fake->push({.body = "part", .failure = Failure{.kind = FailureKind::reset}});
    auto http = client();
    auto const result = http.stream({.path = "/"}, collect()).result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().stopped(), RetryEnd::not_repeatable);
    EXPECT_EQ(got, "part") << "what came is still delivered";
    EXPECT_EQ(fake->sent_count(), 1U);
}

TEST_F(HttpStreamTest, MakesTheServerWaitForASlowHandler) {
    auto hands = std::make_shared<HandExecutor>();
    Runtime slow{RuntimeOptions{.threads = 0, .executor = hands, .scheduler = clock}};
    std::string const body(1 << 20, 'x');
    fake->push({.body = body, .pieces = 64});
    auto opts = options();
    opts.runtime = slow;
    HttpClient http{opts};
    auto pending = http.stream({.path = "/"}, collect());
    auto const pump = [&] {
        while (slow.poll()) {
        }
    };
    pump();
    ASSERT_EQ(fake->sent_count(), 1U);
    auto const call = fake->sent().at(0).call;
    EXPECT_TRUE(fake->paused(call));
    EXPECT_FALSE(pending.ready());
    std::size_t largest = 0;
    for (int rounds = 0; !pending.ready() && rounds < 1000; ++rounds) {
        auto const before = got.size();
        hands->step();
        largest = std::max(largest, got.size() - before);
        pump();
    }
    EXPECT_EQ(got.size(), body.size());
    EXPECT_LE(largest, std::size_t{128} * 1024) << "kept for the handler";
    ASSERT_TRUE(pending.ready());
    EXPECT_EQ(pending.get().status, 200);
}

TEST_F(HttpStreamTest, AHandlerThatThrowsEndsTheCall) {
    fake->push({.body = "abcdef", .pieces = 3, .piece_delay = 1s});
    auto http = client();
    int calls = 0;
    auto pending = http.stream({.path = "/"}, [&](std::span<char const>) {
        ++calls;
        throw std::runtime_error{"disk full"};
    });
    EXPECT_THROW(pending.get(), CallbackError);
    run();
    clock->advance(1min);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(fake->cancelled_count(), 1U);
}

TEST_F(HttpStreamTest, CancelEndsTheStream) {
    fake->push({.body = "abcdef", .pieces = 3, .piece_delay = 1s});
    auto http = client();
    auto pending = http.stream({.path = "/"}, collect());
    run();
    clock->advance(1s);
    EXPECT_EQ(got, "ab");
    pending.cancel();
    clock->advance(1min);
    EXPECT_EQ(got, "ab");
    EXPECT_EQ(fake->cancelled_count(), 1U);
    EXPECT_THROW(pending.get(), CancelledError);
}

TEST_F(HttpStreamTest, ReportsErrorStatusesWithTheirBody) {
    fake->push({.status = 404, .body = "no such file"});
    auto http = client();
    auto const result = http.stream({.path = "/"}, collect()).result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().body(), "no such file");
    EXPECT_EQ(got, "");
}

}  // namespace
}  // namespace tinkxx
