#include "wire/rest/sessions.hpp"

#include <gtest/gtest.h>

namespace tinkxx::wire {
namespace {

TEST(SessionSearch, SendsWhatWasAskedFor) {  // R-REST-04
    SessionSearch search;
    EXPECT_EQ(encode_session_search(search),
              R"({"user_metadata":{},"owner":{"type":"own"},"limit":50})");
    search.session_id = "s";
    search.project_ids = {"p"};
    search.user_metadata = {{"k", "v"}};
    search.display_name = "n";
    search.owner = SessionsOfUsers{{"u"}};
    search.statuses = {{.state = SessionState::failed},
                       {.state = SessionState::client_finished,
                        .reasons = {CloseReason::errored, CloseReason::interrupted}}};
    search.limit = 7;
    search.cursor = SessionCursor{"2026-01-02T03:04:05.1Z", "z"};
    EXPECT_EQ(encode_session_search(search),
              R"({"session_id":"s","project_ids":["p"],"user_metadata":{"k":"v"},)"
              R"("display_name":"n","owner":{"type":"user","owner_urns":["u"]},)"
              R"("statuses":[{"type":"failed"},{"type":"client_finished",)"
              R"("reasons":["errored","interrupted"]}],"limit":7,)"
              R"("cursor":{"last_created_at":"2026-01-02T03:04:05.1Z","last_session_id":"z"}})");
}

SessionSummary summary_with(std::string const& status) {
    auto const page = decode_session_search(
        R"({"sessions": [{"session_id": "s", "owner": "o", "project_id": "p",
            "created_at": "2026-01-02T03:04:05Z", "checkpoints_count": 3, "status": )" +
        status + R"(}], "next_cursor": {"last_created_at": "t", "last_session_id": "s"}})");
    EXPECT_TRUE(page.has_value()) << page.error().what();
    EXPECT_EQ(page->next_cursor, (SessionCursor{"t", "s"}));
    return page->sessions.at(0);
}

TEST(SessionSearch, TellsWhyASessionEnded) {  // R-REST-04
    auto const found = summary_with(
        R"({"type": "failed", "category": "user", "message": "m",
            "reason": {"type": "request", "request_id": "r", "request_type": "forward"}})");
    EXPECT_EQ(found.session_id, "s");
    EXPECT_EQ(found.owner, "o");
    EXPECT_EQ(found.project_id, "p");
    EXPECT_EQ(to_string(found.created_at), "2026-01-02T03:04:05Z");
    EXPECT_EQ(found.checkpoints_count, 3);
    SessionStatus expected;
    expected.type = "failed";
    expected.category = "user";
    expected.message = "m";
    expected.reason = "request";
    expected.request_id = "r";
    expected.request_type = "forward";
    EXPECT_EQ(found.status, expected);

    expected = {};
    expected.type = "client_finished";
    expected.reason = "interrupted";
    expected.detail = "d";
    EXPECT_EQ(summary_with(R"({"type": "client_finished", "reason": {"type": "interrupted"},
                               "detail": "d"})")
                  .status,
              expected);
    EXPECT_FALSE(summary_with("null").status);
}

TEST(SessionSearch, TakesAStateThatNobodyKnows) {  // R-REST-05
    auto const found = summary_with(R"({"type": "asleep", "detail": [1], "reason": "why"})");
    SessionStatus expected;
    expected.type = "asleep";
    EXPECT_EQ(found.status, expected);
}

TEST(TraceExport, IsPendingReadyOrFailed) {  // R-REST-00
    using State = TraceExport::State;
    EXPECT_EQ(decode_trace_export(R"({"status":"pending"})")->state, State::pending);
    auto const ready = decode_trace_export(R"({"status":"ready","url":"https://x/t"})");
    EXPECT_EQ(ready->state, State::ready);
    EXPECT_EQ(ready->url, "https://x/t");
    EXPECT_EQ(decode_trace_export(R"({"status":"failed","error":"e"})")->error, "e");
    EXPECT_FALSE(decode_trace_export(R"({"status":"ready"})").has_value());
    EXPECT_FALSE(decode_trace_export(R"({"status":"odd"})").has_value());
}

TEST(Sampler, IsLookedUp) {  // R-SAMP-06, R-WIRE-07
    auto const sampler = decode_sampler_info(
        R"({"sampler_id": "x", "base_model": "b", "model_path": null, "q": 1})");
    ASSERT_TRUE(sampler.has_value());
    EXPECT_EQ(sampler->sampler_id, "x");
    EXPECT_EQ(sampler->base_model, "b");
    EXPECT_EQ(sampler->model_path, std::nullopt);
    EXPECT_EQ(decode_sampler_info(R"({"sampler_id": "x"})").error().field(), "/base_model");
}

}  // namespace
}  // namespace tinkxx::wire
