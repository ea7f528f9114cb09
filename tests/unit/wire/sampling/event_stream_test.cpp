#include "wire/sampling/event_stream.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::wire {
namespace {

using namespace std::chrono_literals;

std::vector<ServerEvent> feed(EventStream& stream, std::string_view bytes) {
    return stream.feed(bytes).value();
}

std::vector<std::string> data_of(std::vector<ServerEvent> const& events) {
    std::vector<std::string> out;
    for (auto const& event : events) out.push_back(event.event + "|" + event.data + "|" + event.id);
    return out;
}

std::vector<std::string> events_in(std::string_view bytes) {
    EventStream stream;
    return data_of(feed(stream, bytes));
}

using Data = std::vector<std::string>;

TEST(EventStream, EndsEventsAtBlankLines) {  // R-EXT-60
    EXPECT_EQ(events_in("data: a\n\ndata:b\n\n"), (Data{"|a|", "|b|"}));
    EXPECT_EQ(events_in("data: a\r\n\r\ndata: b\r\n\r\n"), (Data{"|a|", "|b|"}));
    EXPECT_EQ(events_in("data: a\r\rdata: b\r\r"), (Data{"|a|", "|b|"}));
    EXPECT_EQ(events_in("data: unfinished\n"), Data{});
}

TEST(EventStream, ReadsItsFields) {  // R-EXT-60
    EventStream stream;
    auto const events =
        feed(stream, "event: token\nid: 7\nretry: 1500\ndata: one\ndata\ndata:  two\nother: x\n\n");
    ASSERT_EQ(events.size(), 1);
    EXPECT_EQ(events[0].event, "token");
    EXPECT_EQ(events[0].id, "7");
    EXPECT_EQ(events[0].retry, 1500ms);
    EXPECT_EQ(events[0].data, "one\n\n two");
    // The id stays, the rest does not.
    EXPECT_EQ(data_of(feed(stream, "data: x\n\n")), Data{"|x|7"});
}

TEST(EventStream, PassesOverCommentsAndEmptyEvents) {  // R-EXT-60
    EXPECT_EQ(events_in(": keep-alive\n\n\n\nevent: ping\n\ndata: x\n\ndata:\n\n"),
              (Data{"|x|", "||"}));
    EXPECT_EQ(events_in("\xef\xbb\xbf"
                        "data: x\n\n"),
              Data{"|x|"});
    EXPECT_EQ(events_in(std::string_view{"id: a\0b\ndata: x\n\n", 17}), Data{"|x|"});
}

TEST(EventStream, TakesOnlyDigitsForAWait) {  // R-EXT-60
    EventStream stream;
    for (auto const* wait : {"", "x", "-1", "1.5", " 1"}) {
        EXPECT_EQ(feed(stream, "data\nretry: " + std::string{wait} + "\n\n").at(0).retry,
                  std::nullopt)
            << wait;
    }
    EXPECT_EQ(feed(stream, "data\nretry: 99999999999999999999\n\n").at(0).retry, 24h);
}

TEST(EventStream, GivesTheSameEventsHoweverTheBytesAreCut) {  // R-EXT-60, R-TEST-03
    EXPECT_TRUE(rc::check([] {
        std::string text;
        auto const pieces = *rc::gen::container<std::vector<std::string>>(
            rc::gen::element<std::string>("\r", "\n", "\r\n", "data: a", "data", "event: e",
                                          "id: 1", ": c", "x", "\xef\xbb\xbf"));
        for (auto const& piece : pieces) text += piece;
        auto const whole = events_in(text);
        EventStream stream;
        Data parts;
        for (std::size_t at = 0; at < text.size();) {
            auto const size = *rc::gen::inRange<std::size_t>(1, 5);
            for (auto& one : data_of(feed(stream, std::string_view{text}.substr(at, size)))) {
                parts.push_back(std::move(one));
            }
            at += size;
        }
        RC_ASSERT(parts == whole);
    }));
}

TEST(EventStream, RefusesAnEventThatNeverEnds) {  // R-EXT-60
    EventStream stream{100};
    EXPECT_TRUE(stream.feed("data: " + std::string(90, 'x')).has_value());
    EXPECT_FALSE(stream.feed(std::string(10, 'x')).has_value());

    EventStream lines{100};
    bool refused = false;
    for (int i = 0; i < 50 && !refused; ++i) refused = !lines.feed("data: 1234\n").has_value();
    EXPECT_TRUE(refused);
}

TEST(SampleChunk, HoldsATokenOrTheEnd) {  // R-EXT-61
    auto const token = decode_sample_chunk(
        R"({"token": "hi", "token_id": 5, "index": 2, "logprob": -0.5, "total_tokens": 3, "x": 1})");
    ASSERT_TRUE(token.has_value());
    EXPECT_EQ(token->token, "hi");
    EXPECT_EQ(token->token_id, 5);
    EXPECT_EQ(token->index, 2);
    EXPECT_EQ(token->logprob, -0.5F);
    EXPECT_EQ(token->total_tokens, 3);
    EXPECT_EQ(token->finish_reason, std::nullopt);
    EXPECT_EQ(decode_sample_chunk(R"({"finish_reason": "stop"})")->finish_reason, "stop");
    EXPECT_EQ(decode_sample_chunk(R"({"finish_reason": null})")->finish_reason, std::nullopt);
}

TEST(SampleChunk, MayBeAnError) {  // R-EXT-61
    EXPECT_EQ(decode_sample_chunk(R"({"error": "boom"})")->error, "boom");
    EXPECT_EQ(decode_sample_chunk(R"({"error": {"code": 5}})")->error, R"({"code":5})");
    EXPECT_EQ(decode_sample_chunk(R"({"error": null})")->error, std::nullopt);
}

TEST(SampleChunk, IsNoneIfItCannotBeRead) {  // R-EXT-61
    for (auto const* text :
         {"", "[DONE]", "null", "[]", "{", R"({"token_id": "x"})", R"({"logprob": []})"}) {
        EXPECT_FALSE(decode_sample_chunk(text).has_value()) << text;
    }
}

}  // namespace
}  // namespace tinkxx::wire
