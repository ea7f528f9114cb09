#include "service/results/cancel_queue.hpp"

#include "results_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct CancelQueueTest : ResultsTest {
    static constexpr auto path = "/api/v1/cancel_future";

    CancelQueueTest() {
        flags.sample_cancel_enabled = true;
        flags.sample_cancel_max_batch_size = 2;
        fake->otherwise([](auto const&) { return std::nullopt; });
    }
    [[nodiscard]] std::vector<std::string> sent() const {
        std::vector<std::string> ids;
        for (auto const& each : fake->sent(path)) ids.push_back(each.body);
        return ids;
    }
    void answer(Reply reply = {.body = "{}"}) {
        ASSERT_TRUE(fake->release_next(std::move(reply)));
        clock->run_ready();
    }

    wire::DynamicFlags flags{};
    std::unique_ptr<CancelQueue> queue{
        std::make_unique<CancelQueue>(context, [this] { return flags; })};
};

TEST_F(CancelQueueTest, TellsTheServerWhatNobodyWaitsFor) {  // R-FUT-70
    queue->cancel("r1");
    clock->run_ready();
    auto const request = fake->sent(path).at(0);
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.body, R"({"request_id":"r1"})");
    EXPECT_EQ(request.purpose, Purpose::retrieve);
    EXPECT_EQ(request.timeouts.read, 30s);
    answer();
    EXPECT_EQ(queue->under_way(), 0U);
}

TEST_F(CancelQueueTest, SendsInBatchesOneAfterTheOther) {  // R-FUT-71
    for (auto const* id : {"r1", "r2", "r3", "r4", "r5"}) queue->cancel(id);
    clock->run_ready();
    EXPECT_EQ(fake->sent_count(), 2U);
    EXPECT_EQ(queue->queued(), 3U);
    answer();
    EXPECT_EQ(fake->sent_count(), 2U) << "the batch is not through";
    flags.sample_cancel_max_batch_size = 3;
    answer();
    EXPECT_EQ(fake->sent_count(), 5U) << "the size is read when it is used";
    EXPECT_THAT(sent().back(), HasSubstr("r5"));
}

TEST_F(CancelQueueTest, QueuesNothingWhileTheFlagIsOff) {  // R-FUT-71, R-CONF-32
    flags.sample_cancel_enabled = false;
    queue->cancel("r1");
    clock->run_ready();
    EXPECT_EQ(fake->sent_count(), 0U);
    flags.sample_cancel_enabled = true;
    queue->cancel("r2");
    queue->cancel("r3");
    queue->cancel("r4");
    clock->run_ready();
    EXPECT_EQ(fake->sent_count(), 2U);
    flags.sample_cancel_enabled = false;
    answer();
    answer();
    EXPECT_EQ(fake->sent_count(), 2U);
    EXPECT_EQ(queue->queued(), 0U);
}

TEST_F(CancelQueueTest, TakesNonsensicalBatchSizes) {
    flags.sample_cancel_max_batch_size = -4;
    queue->cancel("r1");
    queue->cancel("r2");
    clock->run_ready();
    EXPECT_EQ(fake->sent_count(), 1U);
    answer();
    EXPECT_EQ(fake->sent_count(), 2U);
}

TEST_F(CancelQueueTest, RepeatsACancelAsAnySubmit) {  // R-FUT-70
    queue->cancel("r1");
    clock->run_ready();
    answer({.status = 503});
    EXPECT_EQ(fake->sent_count(), 1U) << "not by the HTTP layer";
    clock->advance(1s);
    EXPECT_EQ(fake->sent_count(), 2U);
    EXPECT_EQ(fake->sent().at(1).header("x-stainless-retry-count"), "0");
}

TEST_F(CancelQueueTest, LogsAndDropsWhatFails) {  // R-FUT-71
    queue->cancel("r1");
    queue->cancel("r2");
    queue->cancel("r3");
    clock->run_ready();
    answer({.status = 403, .body = "{}"});
    answer({.status = 404, .body = "{}"});
    clock->run_ready();
    EXPECT_THAT(logged(LogLevel::error), ElementsAre(HasSubstr("request r1 was not cancelled")));
    auto const debug = logged(LogLevel::debug);
    EXPECT_TRUE(std::ranges::any_of(debug, [](std::string const& line) {
        return line.find("request r2 was not cancelled") != std::string::npos;
    }));
    EXPECT_EQ(fake->sent_count(), 3U) << "and goes on";
}

TEST_F(CancelQueueTest, DropsItsQueueWhenTheSessionIsFinished) {  // R-FUT-72
    for (auto const* id : {"r1", "r2", "r3"}) queue->cancel(id);
    clock->run_ready();
    queue->close();
    EXPECT_EQ(fake->cancelled_count(), 2U);
    EXPECT_EQ(queue->queued(), 0U);
    queue->cancel("r4");
    clock->advance(1h);
    EXPECT_EQ(fake->sent_count(), 2U);
}

TEST_F(CancelQueueTest, SendsWhatIsQueuedWhenItDrains) {  // R-FUT-72
    for (auto const* id : {"r1", "r2", "r3"}) queue->cancel(id);
    int drained = 0;
    queue->drain(clock->now() + 5s, [&] { ++drained; });
    clock->run_ready();
    answer();
    answer();
    EXPECT_EQ(drained, 0);
    answer();
    EXPECT_EQ(drained, 1);
    EXPECT_EQ(fake->sent_count(), 3U);
    queue->cancel("late");
    clock->advance(1h);
    EXPECT_EQ(fake->sent_count(), 3U);
    EXPECT_EQ(drained, 1);
}

TEST_F(CancelQueueTest, DrainsNoLongerThanItMay) {  // R-FUT-72
    for (auto const* id : {"r1", "r2", "r3"}) queue->cancel(id);
    int drained = 0;
    queue->drain(clock->now() + 5s, [&] { ++drained; });
    clock->advance(5s - 1ms);
    EXPECT_EQ(drained, 0);
    clock->advance(1ms);
    EXPECT_EQ(drained, 1);
    EXPECT_EQ(fake->cancelled_count(), 2U);
    EXPECT_EQ(queue->queued(), 0U);
}

TEST_F(CancelQueueTest, HasNothingToDrainWhenItIsEmpty) {  // R-FUT-72
    int drained = 0;
    queue->drain(clock->now() + 5s, [&] { ++drained; });
    EXPECT_EQ(drained, 1);
}

TEST_F(CancelQueueTest, MayBeDestroyedAtAnyMoment) {
    queue->cancel("r1");
    queue.reset();
    clock->run_ready();
    EXPECT_EQ(fake->sent_count(), 0U);

    queue = std::make_unique<CancelQueue>(context, [this] { return flags; });
    for (auto const* id : {"r1", "r2", "r3"}) queue->cancel(id);
    queue->drain(clock->now() + 5s, [&] { queue.reset(); });
    clock->run_ready();
    answer();
    answer();
    answer();
    EXPECT_FALSE(queue);
    EXPECT_EQ(clock->pending_timers(), 0U);
}

TEST_F(CancelQueueTest, ForgetsAllWhenItsClientCloses) {
    for (auto const* id : {"r1", "r2", "r3"}) queue->cancel(id);
    clock->run_ready();
    context.close();
    http->close();
    clock->advance(1h);
    EXPECT_EQ(queue->queued(), 0U);
    EXPECT_EQ(queue->under_way(), 0U);
    EXPECT_THAT(logged(LogLevel::error), IsEmpty());
}

TEST_F(CancelQueueTest, KeepsOnlySoMany) {
    flags.sample_cancel_max_batch_size = 1;
    queue->cancel("first");
    clock->run_ready();
    for (std::size_t i = 0; i < CancelQueue::most_queued + 5; ++i) {
        queue->cancel(std::to_string(i));
    }
    EXPECT_EQ(queue->queued(), CancelQueue::most_queued);
    answer();
    EXPECT_THAT(sent().back(), HasSubstr("\"5\""));
}

}  // namespace
}  // namespace tinkxx::service
