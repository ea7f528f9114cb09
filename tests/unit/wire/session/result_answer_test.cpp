#include "wire/session/result_answer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::wire {
namespace {

using namespace std::chrono_literals;
using namespace result_answer;

ResultAnswer classify(std::string_view body) {
    return classify_result_answer("application/json", body);
}

std::string_view result_of(std::string_view body) {
    auto const answer = classify(body);
    auto const* json = std::get_if<Json>(&answer);
    return json == nullptr ? "no result" : json->result;
}

Failed failure_of(std::string_view body) {
    auto const answer = classify(body);
    auto const* failed = std::get_if<Failed>(&answer);
    return failed == nullptr ? Failed{.message = "no failure"} : *failed;
}

TEST(FutureRequests, NameThePromise) {  // R-FUT-40, R-WIRE-09
    EXPECT_EQ(encode_retrieve_future("req-\"1", true),
              R"({"request_id":"req-\"1","allow_metadata_only":true})");
    EXPECT_EQ(encode_retrieve_future("r", false),
              R"({"request_id":"r","allow_metadata_only":false})");
    EXPECT_EQ(encode_cancel_future("r"), R"({"request_id":"r"})");
}

TEST(ResultAnswer, IsProtobufByItsContentType) {  // R-FUT-03
    for (auto const* type : {"application/x-protobuf", "Application/X-Protobuf; charset=utf-8",
                             "x, application/x-protobuf"}) {
        EXPECT_TRUE(std::holds_alternative<Protobuf>(classify_result_answer(type, "{}"))) << type;
    }
    EXPECT_FALSE(std::holds_alternative<Protobuf>(
        classify_result_answer("application/octet-stream", "\x0a\x06")));
}

TEST(ResultAnswer, AsksToTryAgainWithAQueueState) {  // R-FUT-03
    auto const answer = classify(
        R"({"type": "try_again", "request_id": "r", "queue_state": "paused_capacity", "queue_state_reason": "warming up", "retry_after_ms": 5000, "zzz": 1})");
    auto const* again = std::get_if<TryAgain>(&answer);
    ASSERT_NE(again, nullptr);
    ASSERT_TRUE(again->queue.has_value());
    EXPECT_EQ(again->queue->state, QueueState::paused_capacity);
    EXPECT_EQ(again->queue->reason, "warming up");
    EXPECT_EQ(again->retry_after, 5s);
}

TEST(ResultAnswer, MayAskToTryAgainWithoutSayingWhy) {  // R-FUT-03
    for (
        auto const* body :
        {R"({"type": "try_again"})",
         R"({"type": "try_again", "queue_state": null, "queue_state_reason": null, "retry_after_ms": null})"}) {
        auto const answer = classify(body);
        auto const* again = std::get_if<TryAgain>(&answer);
        ASSERT_NE(again, nullptr) << body;
        EXPECT_FALSE(again->queue.has_value());
        EXPECT_EQ(again->retry_after, std::nullopt);
    }
}

TEST(ResultAnswer, KeepsTheWaitItAsksForAddable) {  // R-FUT-03
    auto const wait = [](std::string const& number) {
        return std::get<TryAgain>(
                   classify(R"({"type": "try_again", "retry_after_ms": )" + number + "}"))
            .retry_after;
    };
    EXPECT_EQ(wait("-5"), 0ms);
    EXPECT_EQ(wait("9223372036854775807"), 24h);
    EXPECT_EQ(wait("250.0"), 250ms);
    EXPECT_EQ(wait("\"x\""), std::nullopt);
}

TEST(ResultAnswer, AnnouncesTheSizeOfALargeResult) {  // R-FUT-03, R-FUT-40
    auto const size = [](std::string_view body) {
        return std::get<Metadata>(classify(body)).payload_bytes;
    };
    EXPECT_EQ(size(R"({"status": "complete_metadata", "response_payload_size": 1000000000000})"),
              1'000'000'000'000);
    EXPECT_EQ(size(R"({"status": "complete_metadata"})"), 0);
    EXPECT_EQ(size(R"({"status": "complete_metadata", "response_payload_size": null})"), 0);
    EXPECT_EQ(size(R"({"status": "complete_metadata", "response_payload_size": -5})"), 0);
    EXPECT_EQ(size(R"({"status": "complete_metadata", "response_payload_size": "x"})"), 0);
}

TEST(ResultAnswer, MayBePending) {  // R-FUT-03
    EXPECT_TRUE(std::holds_alternative<Pending>(classify(R"({"status": "pending"})")));
}

TEST(ResultAnswer, IsAFailureIfItHasAnError) {  // R-FUT-03
    auto const failed =
        failure_of(R"({"metrics": {}, "error": "prompt too long", "category": "user"})");
    EXPECT_EQ(failed.message, "prompt too long");
    EXPECT_EQ(failed.category, ErrorCategory::user);
    EXPECT_EQ(failure_of(R"({"error": "x", "category": "server"})").category,
              ErrorCategory::server);
    for (auto const* body :
         {R"({"error": "x", "category": "bogus"})", R"({"error": "x"})",
          R"({"error": "x", "category": 5})", R"({"error": "x", "category": null})",
          R"({"error": "x", "category": "users"})"}) {
        EXPECT_EQ(failure_of(body).category, ErrorCategory::unknown) << body;
    }
    EXPECT_EQ(failure_of(R"({"error": null})").message, "the server gave no reason");
    EXPECT_EQ(failure_of(R"({"error": ""})").message, "");
    EXPECT_EQ(failure_of(R"({"error": {"code": "X", "msg": "y"}})").message,
              R"({"code":"X","msg":"y"})");
}

TEST(ResultAnswer, ReadsCategoriesInAnyCase) {  // R-FUT-03; C-45: the official SDK is exact
    EXPECT_EQ(failure_of(R"({"error": "x", "category": "USER"})").category, ErrorCategory::user);
    EXPECT_EQ(failure_of(R"({"error": "x", "category": "Server"})").category,
              ErrorCategory::server);
}

TEST(ResultAnswer, UnwrapsEnvelopes) {  // R-FUT-03
    EXPECT_EQ(result_of(R"({"status": "completed", "result": {"a": [1]} })"), R"({"a": [1]})");
    EXPECT_EQ(failure_of(R"({"status": "completed", "result": {"error": "e", "category": "user"}})")
                  .message,
              "e");
    auto const failed =
        failure_of(R"({"status": "failed", "error": {"message": "m", "category": "server"}})");
    EXPECT_EQ(failed.message, "m");
    EXPECT_EQ(failed.category, ErrorCategory::server);
    EXPECT_EQ(failure_of(R"({"status": "failed"})").message, "the server gave no reason");
    EXPECT_EQ(result_of(R"({"status": "completed"})"), R"({"status": "completed"})");
}

TEST(ResultAnswer, IsOtherwiseTheResult) {  // R-FUT-03
    for (std::string const body :
         {R"({"sequences": [{"tokens": [1]}], "type": "sample"})", "{}",
          R"( {"metrics": {"error": 1}} )", R"({"path": "error", "status": null})",
          R"({"type": "TRY_AGAIN"})"}) {
        EXPECT_EQ(result_of(body), body);
    }
    EXPECT_EQ(std::get<Json>(classify_result_answer("text/plain", "{}")).result, "{}");
    EXPECT_EQ(std::get<Json>(classify_result_answer("", "{}")).result, "{}");
}

TEST(ResultAnswer, DoesNotReadTheResult) {  // R-FUT-03
    // Whoever decodes it finds out.
    EXPECT_EQ(result_of(R"({"metrics": {"a": NaN}})"), R"({"metrics": {"a": NaN}})");
}

TEST(ResultAnswer, SeesAnErrorBehindALargeResult) {  // R-FUT-03
    std::string numbers = "1";
    while (numbers.size() < 1'000'000) numbers += ",151643";
    EXPECT_EQ(failure_of(R"({"tokens": [)" + numbers + R"(], "err\u006fr": "late"})").message,
              "late");
}

TEST(ResultAnswer, IsMalformedIfItIsNoObject) {  // R-FUT-03
    for (auto const* body :
         {"", "null", "[1]", "<html>", "{", "\xef\xbb\xbf{}", "{\"error\": \"\xff\"}",
          R"({"type": "try_again", "x": NaN})", R"({"error": "x"} y)"}) {
        auto const answer = classify(body);
        auto const* malformed = std::get_if<Malformed>(&answer);
        ASSERT_NE(malformed, nullptr) << body;
        EXPECT_TRUE(malformed->why.starts_with("retrieve_future: the answer is no JSON"))
            << malformed->why;
    }
}

TEST(ResultAnswer, IsToldForAnyBytes) {  // R-TEST-03
    EXPECT_TRUE(rc::check([](std::string const& body) {
        auto const answer = classify(body);
        if (auto const* json = std::get_if<Json>(&answer)) {
            RC_ASSERT(json->result.data() >= body.data());
            RC_ASSERT(json->result.data() + json->result.size() <= body.data() + body.size());
        }
        (void)decode_queue_report(body);
    }));
}

TEST(QueueReport, IsReadFromAnyBodyThatHasOne) {  // R-FUT-07, R-FUT-30
    auto const report = decode_queue_report(
        R"({"queue_state": "paused_rate_limit", "queue_state_reason": "limit"})");
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->state, QueueState::paused_rate_limit);
    EXPECT_EQ(report->reason, "limit");
    EXPECT_EQ(decode_queue_report(R"({"queue_state": "new_state"})")->state, QueueState::unknown);
    for (auto const* body :
         {"", "timeout", "[1, 2]", "{}", R"({"queue_state": null})", R"({"queue_state": 5})",
          R"({"detail": "Timeout waiting for result"})"}) {
        EXPECT_FALSE(decode_queue_report(body).has_value()) << body;
    }
}

}  // namespace
}  // namespace tinkxx::wire
