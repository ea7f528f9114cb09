#include "service/results/queue_state_reporter.hpp"

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

TEST(QueueStateReporter, WarnsAtMostOnceAMinute) {  // R-SAMP-60
    QueueStateReporter reporter{sampling_queue};
    TimePoint const start{};
    EXPECT_EQ(reporter.report("s1", QueueState::paused_capacity, "machines are short", start),
              "Sampling is paused for s1: machines are short");
    EXPECT_FALSE(reporter.report("s1", QueueState::paused_rate_limit, "", start + 59'999ms))
        << "not even with another reason";
    EXPECT_TRUE(reporter.report("s1", QueueState::paused_capacity, "", start + 60s));
    EXPECT_FALSE(reporter.report("s1", QueueState::paused_capacity, "", start + 119s));
}

TEST(QueueStateReporter, SaysNothingWhileTheQueueMoves) {  // R-SAMP-60
    QueueStateReporter reporter{sampling_queue};
    TimePoint const start{};
    EXPECT_FALSE(reporter.report("s1", QueueState::active, "all is well", start));
    EXPECT_TRUE(reporter.report("s1", QueueState::unknown, "", start + 1s))
        << "an active report does not start the minute";
    EXPECT_FALSE(reporter.report("s1", QueueState::active, "", start + 30s));
    EXPECT_TRUE(reporter.report("s1", QueueState::unknown, "", start + 61s));
}

TEST(QueueStateReporter, GivesTheUsualReasonIfTheServiceGivesNone) {  // R-SAMP-61
    QueueStateReporter const reporter{sampling_queue};
    EXPECT_EQ(reporter.reason_for(QueueState::paused_rate_limit, ""),
              "concurrent sampler weights limit hit");
    EXPECT_EQ(reporter.reason_for(QueueState::paused_capacity, ""),
              "Tinker backend is running short on capacity, please wait");
    EXPECT_EQ(reporter.reason_for(QueueState::unknown, ""), "unknown");
    EXPECT_EQ(reporter.reason_for(QueueState::paused_capacity, "said\nby the service"),
              "said by the service");
    EXPECT_EQ(reporter.reason_for(QueueState::paused_capacity, " \n"),
              "Tinker backend is running short on capacity, please wait");
}

TEST(QueueStateReporter, KnowsTrainingAndModelCreation) {  // R-SAMP-62
    QueueStateReporter training{training_queue};
    EXPECT_EQ(training.report("m1", QueueState::paused_rate_limit, "", {}),
              "Training is paused for m1: concurrent training clients rate limit hit");
    QueueStateReporter creation{model_creation_queue};
    EXPECT_EQ(creation.report("Qwen", QueueState::paused_rate_limit, "", {}),
              "Model creation is paused for Qwen: concurrent training clients rate limit hit");
}

TEST(QueueStateReporter, RemembersForItselfAlone) {  // R-SAMP-63
    QueueStateReporter one{sampling_queue};
    QueueStateReporter other{sampling_queue};
    EXPECT_TRUE(one.report("s1", QueueState::unknown, "", {}));
    EXPECT_TRUE(other.report("s2", QueueState::unknown, "", {}));
}

}  // namespace
}  // namespace tinkxx::service
