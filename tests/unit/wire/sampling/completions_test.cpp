#include "wire/sampling/completions.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::wire {
namespace {

TEST(CompletionPoll, NamesItsTargetAndWhatWasRetrieved) {  // R-FUT-60, R-FUT-64, R-WIRE-09
    std::vector<std::string> const retrieved{"req-0", "req-1"};
    EXPECT_EQ(
        encode_completion_poll({.sampling_session_id = "S:sample:0"}),
        R"({"target":{"type":"sampling_session","sampling_session_id":"S:sample:0","cloned_sampler_id":0},"prev_cursor":0,"retrieved_request_ids":[]})");
    EXPECT_EQ(
        encode_completion_poll({.sampling_session_id = "S",
                                .cloned_sampler_id = 7,
                                .prev_cursor = 3,
                                .retrieved_request_ids = retrieved}),
        R"({"target":{"type":"sampling_session","sampling_session_id":"S","cloned_sampler_id":7},"prev_cursor":3,"retrieved_request_ids":["req-0","req-1"]})");
}

TEST(Completions, TellWhatIsDoneAndHowLargeItIs) {  // R-FUT-62, R-FUT-63
    auto const answer = decode_completions(R"({"completions": [
        {"state": "finished", "request_id": "a", "response_payload_uncompressed_size": 77},
        {"state": "finished", "request_id": "b"},
        {"state": "finished", "request_id": "c", "response_payload_uncompressed_size": null},
        {"state": "failed", "request_id": "d", "new": 1},
        {"state": "evicted", "request_id": "e", "response_payload_uncompressed_size": -1}],
        "cursor": 12})");
    ASSERT_TRUE(answer.has_value()) << answer.error().what();
    EXPECT_EQ(answer->cursor, 12);
    ASSERT_EQ(answer->completions.size(), 5);
    EXPECT_EQ(answer->completions[0].request_id, "a");
    EXPECT_EQ(answer->completions[0].payload_bytes, 77);
    EXPECT_FALSE(answer->completions[0].failed);
    EXPECT_EQ(answer->completions[1].payload_bytes, 0);
    EXPECT_EQ(answer->completions[2].payload_bytes, 0);
    EXPECT_TRUE(answer->completions[3].failed);
    EXPECT_FALSE(answer->completions[4].failed);
    EXPECT_EQ(answer->completions[4].payload_bytes, 0);
}

TEST(Completions, NeedBothMembers) {  // R-FUT-60
    EXPECT_EQ(decode_completions(R"({"completions": []})").error().field(), "/cursor");
    EXPECT_EQ(decode_completions(R"({"cursor": 1})").error().field(), "/completions");
    EXPECT_EQ(decode_completions(R"({"completions": [{"state": "failed"}], "cursor": 1})")
                  .error()
                  .field(),
              "/completions/0/request_id");
    EXPECT_EQ(decode_completions(R"({"completions": [{"request_id": "a"}], "cursor": 1})")
                  .error()
                  .field(),
              "/completions/0/state");
    EXPECT_TRUE(rc::check([](std::string const& json) { (void)decode_completions(json); }));
}

}  // namespace
}  // namespace tinkxx::wire
