#include <tinkxx/status.hpp>

#include <gtest/gtest.h>

#include <set>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;

TEST(StatusText, SaysWhereSinceWhenWhyAndUntilWhen) {
    OperationStatus status;
    status.id = 12;
    status.operation = "sample";
    status.stage = Stage::backing_off;
    status.in_stage = 1200ms;
    status.ends_in = 3800ms;
    status.why = "429 too many requests";
    status.attempt = 2;
    status.age = 14s;
    EXPECT_EQ(to_string(status),
              "sample #12: backing off for 1.2 s, 3.8 s left (429 too many requests), attempt 2, "
              "14 s old");
}

TEST(StatusText, NamesTheServersQueueAndTheRequest) {
    OperationStatus status;
    status.id = 1;
    status.operation = "sample";
    status.stage = Stage::polling;
    status.in_stage = 5min;
    status.age = 3h;
    status.polls = 7;
    status.queue_state = QueueState::paused_capacity;
    status.queue_reason = "no machines";
    status.request_id = "req-9";
    status.deadline_in = 90s;
    EXPECT_EQ(to_string(status),
              "sample #1: polling for 5 min, the service says paused_capacity: no machines, 7 "
              "polls, 3.0 h old, fails in 90 s, request req-9");
}

TEST(StatusText, GivesTheServersReasonWhateverTheState) {
    OperationStatus status;
    status.operation = "optim_step";
    status.stage = Stage::polling;
    status.queue_state = QueueState::active;
    EXPECT_EQ(to_string(status), "optim_step #0: polling for 0.0 s, 0.0 s old");
    status.queue_reason = "waiting for request 3 of this model, which has not arrived yet";
    EXPECT_EQ(to_string(status),
              "optim_step #0: polling for 0.0 s, the service says: waiting for request 3 of this "
              "model, which has not arrived yet, 0.0 s old");
}

TEST(StatusText, HasAWordForEveryStage) {
    std::set<std::string_view> words;
    for (int i = 0; i <= static_cast<int>(Stage::closing); ++i) {
        words.insert(to_string(static_cast<Stage>(i)));
    }
    EXPECT_EQ(words.size(), 23U);
    EXPECT_FALSE(words.contains("unknown"));
}

}  // namespace
}  // namespace tinkxx
