#include "service/telemetry/telemetry_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Next = TelemetryQueue::Next;

TimePoint const start{1h};

std::vector<wire::TelemetryEvent> events(std::size_t count, std::int64_t first = 0) {
    std::vector<wire::TelemetryEvent> group(count);
    for (auto& event : group) event.event_session_index = first++;
    return group;
}

Error error_of(ErrorKind kind, std::string message = "trouble") {
    ErrorDetails details;
    details.kind = kind;
    details.message = std::move(message);
    return Error{std::move(details)};
}

Next add(TelemetryQueue& queue, std::size_t count) {
    auto const added = queue.add(events(count), start);
    EXPECT_TRUE(added.queued);
    return added.step.next;
}

TEST(TelemetryQueue, GathersEventsForTenSeconds) {  // R-TEL-20
    TelemetryQueue queue{{}};
    auto const first = queue.add(events(1), start);
    EXPECT_EQ(first.step.next, Next::wait);
    EXPECT_EQ(first.step.delay, 10s);
    EXPECT_EQ(add(queue, 1), Next::nothing) << "the delay is that of the first";
    EXPECT_EQ(queue.on_time().next, Next::send);
    EXPECT_THAT(queue.batch(), SizeIs(2));
    EXPECT_THAT(queue.waiting(), IsEmpty());
}

TEST(TelemetryQueue, SendsOnceAHundredWait) {  // R-TEL-20
    TelemetryQueue queue{{}};
    (void)add(queue, 99);
    EXPECT_EQ(add(queue, 1), Next::send);
    EXPECT_THAT(queue.batch(), SizeIs(100));
}

TEST(TelemetryQueue, SendsAtMostAHundredAtATimeUntilItIsEmpty) {  // R-TEL-20, R-TEL-21
    TelemetryQueue queue{{}};
    EXPECT_EQ(queue.add(events(250), start).step.next, Next::send);
    EXPECT_EQ(queue.batch().front().event_session_index, 0);
    EXPECT_THAT(queue.batch(), SizeIs(100));
    EXPECT_EQ(queue.on_accepted().next, Next::send);
    EXPECT_EQ(queue.batch().front().event_session_index, 100);
    EXPECT_EQ(queue.on_accepted().next, Next::send);
    EXPECT_THAT(queue.batch(), SizeIs(50));
    EXPECT_EQ(queue.on_accepted().next, Next::nothing);
    EXPECT_EQ(queue.counts(),
              (TelemetryCounts{.logged = 250, .flushed = 250, .accepted = 250, .batches = 3}));
}

TEST(TelemetryQueue, SendsOnDemand) {  // R-TEL-20
    TelemetryQueue queue{{}};
    EXPECT_EQ(queue.flush().next, Next::nothing);
    (void)add(queue, 1);
    EXPECT_EQ(queue.flush().next, Next::send);
    EXPECT_EQ(queue.flush().next, Next::nothing) << "one batch at a time";
}

TEST(TelemetryQueue, GoesOnWithWhatCameWhileItSent) {  // R-TEL-21
    TelemetryQueue queue{{}};
    (void)add(queue, 1);
    (void)queue.flush();
    EXPECT_EQ(add(queue, 1), Next::nothing);
    EXPECT_EQ(queue.on_accepted().next, Next::send);
    EXPECT_EQ(queue.on_accepted().next, Next::nothing);
    EXPECT_EQ(add(queue, 1), Next::wait) << "and begins anew";
}

TEST(TelemetryQueue, DropsAWholeGroupThatDoesNotFit) {  // R-TEL-20
    TelemetryQueue queue{{}};
    (void)add(queue, 1);
    (void)queue.flush();  // what is being sent takes no room
    (void)add(queue, 9'999);
    auto const refused = queue.add(events(2), start);
    EXPECT_FALSE(refused.queued);
    EXPECT_THAT(refused.step.warning, HasSubstr("2 events dropped"));
    EXPECT_THAT(refused.step.warning, HasSubstr("TINKER_TELEMETRY"));
    EXPECT_THAT(queue.waiting(), SizeIs(9'999));
    EXPECT_TRUE(queue.add(events(1), start).queued);
    EXPECT_FALSE(queue.add(events(1), start).queued);
    EXPECT_EQ(queue.counts().logged, 10'001U);
    EXPECT_EQ(queue.counts().dropped, 3U);
}

TEST(TelemetryQueue, WarnsOfDroppedEventsOnceAMinute) {  // R-TEL-20
    TelemetryQueue queue{{.most_queued = 1}};
    (void)add(queue, 1);
    EXPECT_THAT(queue.add(events(1), start).step.warning, Not(IsEmpty()));
    EXPECT_THAT(queue.add(events(1), start + 60s - 1ns).step.warning, IsEmpty());
    EXPECT_THAT(queue.add(events(1), start + 60s).step.warning, HasSubstr("3 events dropped"));
}

TEST(TelemetryQueue, SendsTheSameBatchAgainAfterASecond) {  // R-TEL-22
    for (auto const kind :
         {ErrorKind::status, ErrorKind::billing, ErrorKind::connection, ErrorKind::timeout}) {
        TelemetryQueue queue{{}};
        (void)add(queue, 100);
        (void)add(queue, 1);
        for (int i = 0; i < 1000; ++i) {
            auto const step = queue.on_failure(error_of(kind), start);
            ASSERT_EQ(step.next, Next::wait);
            ASSERT_EQ(step.delay, 1s);
            ASSERT_EQ(queue.flush().next, Next::nothing) << "a flush does not cut it short";
            ASSERT_EQ(queue.on_time().next, Next::send);
            ASSERT_THAT(queue.batch(), SizeIs(100));
        }
        EXPECT_EQ(queue.counts().flushed, 0U);
        EXPECT_EQ(queue.counts().failures, 1000U);
        EXPECT_EQ(queue.on_accepted().next, Next::send);
    }
}

TEST(TelemetryQueue, WarnsOfFailuresOnceAMinute) {  // R-TEL-22
    TelemetryQueue queue{{}};
    (void)add(queue, 100);
    auto const fail = [&](TimePoint now) {
        auto warning = queue.on_failure(error_of(ErrorKind::status, "404"), now).warning;
        (void)queue.on_time();
        return warning;
    };
    auto const first = fail(start);
    EXPECT_THAT(first, HasSubstr("404"));
    EXPECT_THAT(first, HasSubstr("100 events"));
    EXPECT_THAT(first, HasSubstr("again in 1 s"));
    EXPECT_THAT(first, HasSubstr("TINKER_TELEMETRY"));
    EXPECT_THAT(fail(start + 1s), IsEmpty());
    EXPECT_THAT(fail(start + 59s), IsEmpty());
    EXPECT_THAT(fail(start + 60s), Not(IsEmpty()));
}

TEST(TelemetryQueue, GivesABatchUpAfterSoManyRetriesIfToldSo) {  // R-TEL-22
    TelemetryQueue queue{{.max_retries = 2}};
    (void)add(queue, 100);
    (void)add(queue, 1);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(queue.on_failure(error_of(ErrorKind::status), start).next, Next::wait);
        (void)queue.on_time();
    }
    auto const step = queue.on_failure(error_of(ErrorKind::status), start + 1h);
    EXPECT_THAT(step.warning, HasSubstr("dropped"));
    EXPECT_EQ(step.next, Next::send) << "the next batch gets its own retries";
    EXPECT_THAT(queue.batch(), SizeIs(1));
    EXPECT_EQ(queue.on_failure(error_of(ErrorKind::status), start).next, Next::wait);
    EXPECT_EQ(queue.counts().flushed, 100U);
    EXPECT_EQ(queue.counts().accepted, 0U);
}

TEST(TelemetryQueue, DropsABatchThatCannotBeSentAndStaysAlive) {  // R-TEL-21, R-TEL-22
    TelemetryQueue queue{{}};
    (void)add(queue, 100);
    (void)add(queue, 1);
    auto const step = queue.on_failure(error_of(ErrorKind::validation, "no key"), start);
    EXPECT_EQ(step.next, Next::send);
    EXPECT_THAT(step.warning, HasSubstr("no key"));
    EXPECT_THAT(step.warning, HasSubstr("100 events dropped"));
    EXPECT_EQ(queue.counts().flushed, 100U) << "whoever waits for it is not held up";
    EXPECT_EQ(queue.counts().accepted, 0U);
    EXPECT_EQ(queue.on_accepted().next, Next::nothing);
}

TEST(TelemetryQueue, TakesNothingMoreOnceStopped) {  // R-TEL-41
    TelemetryQueue queue{{}};
    (void)add(queue, 150);
    queue.stop();
    EXPECT_TRUE(queue.stopped());
    EXPECT_THAT(queue.waiting(), IsEmpty());
    EXPECT_THAT(queue.batch(), IsEmpty());
    EXPECT_FALSE(queue.add(events(1), start).queued);
    EXPECT_EQ(queue.flush().next, Next::nothing);
    EXPECT_EQ(queue.on_time().next, Next::nothing);
    EXPECT_EQ(queue.on_accepted().next, Next::nothing);
    EXPECT_EQ(queue.on_failure(error_of(ErrorKind::status), start).next, Next::nothing);
}

RC_GTEST_PROP(TelemetryQueueProperty, KeepsCountOfEveryEvent, ()) {  // R-TEL-20, R-TEST-01
    TelemetryQueue queue{{.most_queued = 30, .most_in_batch = 10, .max_retries = 2}};
    auto const steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
    bool sending = false;
    auto const follow = [&](TelemetryQueue::Step const& step) {
        if (step.next == Next::send) sending = true;
    };
    std::uint64_t given = 0;
    std::int64_t index = 0;
    for (auto const step : steps) {
        if (step <= 1) {
            auto const count = *rc::gen::inRange<std::size_t>(0, 20);
            auto const group = events(count, index);
            index += static_cast<std::int64_t>(count);
            given += count;
            follow(queue.add(group, start).step);
        } else if (step == 2) {
            follow(queue.flush());
        } else if (step == 3) {
            if (!sending) follow(queue.on_time());
        } else if (sending) {
            sending = false;
            follow(step == 4 ? queue.on_accepted()
                             : queue.on_failure(error_of(ErrorKind::timeout), start));
        }
        auto const& counts = queue.counts();
        RC_ASSERT(queue.batch().size() <= 10U);
        RC_ASSERT(queue.waiting().size() <= 30U);
        RC_ASSERT(counts.logged + counts.dropped == given);
        RC_ASSERT(counts.flushed + queue.batch().size() + queue.waiting().size() == counts.logged);
        RC_ASSERT(counts.accepted <= counts.flushed);
        RC_ASSERT(queue.sending() == sending);
    }
}

}  // namespace
}  // namespace tinkxx::service
