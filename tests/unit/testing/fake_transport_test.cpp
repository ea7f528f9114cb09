#include <tinkxx/testing/fake_transport.hpp>

#include <tinkxx/testing/contract_sink.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FakeTransportTest : ::testing::Test {
    ManualClock clock{};
    FakeTransport fake{clock};

    static Request request(std::string method, std::string path) {
        Request made;
        made.method = std::move(method);
        made.url = "http://host:8000" + path;
        return made;
    }
};

TEST_F(FakeTransportTest, AnswersFromTheQueueInOrder) {  // R-TEST-02
    fake.push({.status = 201, .body = "one"});
    fake.push({.status = 202, .body = "two"});
    ContractSink first;
    ContractSink second;
    first.start(fake, request("GET", "/a"));
    second.start(fake, request("GET", "/b"));
    EXPECT_FALSE(first.ended());
    clock.run_ready();
    EXPECT_EQ(first.status(), 201);
    EXPECT_EQ(first.body(), "one");
    EXPECT_EQ(second.status(), 202);
    EXPECT_EQ(second.body(), "two");
    EXPECT_THAT(first.breaches(), IsEmpty());
    EXPECT_THAT(second.breaches(), IsEmpty());
}

TEST_F(FakeTransportTest, RulesAnswerByMethodAndPath) {
    fake.on("GET", "/api/v1/healthz").reply({.status = 503}).always({.body = "ok"});
    fake.on("POST", "/api/*").handle([](SentRequest const& sent) {
        return Reply{.body = sent.path + " got " + sent.body};
    });
    ContractSink busy;
    ContractSink fine;
    ContractSink posted;
    busy.start(fake, request("GET", "/api/v1/healthz?x=1"));
    fine.start(fake, request("GET", "/api/v1/healthz"));
    auto post = request("POST", "/api/v1/asample");
    post.body.head = std::make_shared<std::string const>("he");
    post.body.tail = std::make_shared<std::string const>("llo");
    posted.start(fake, post);
    clock.run_ready();
    EXPECT_EQ(busy.status(), 503);
    EXPECT_EQ(fine.body(), "ok");
    EXPECT_EQ(posted.body(), "/api/v1/asample got hello");
}

TEST_F(FakeTransportTest, RecordsWhatItWasSent) {
    fake.push({});
    auto sent = request("POST", "/p?q=1");
    sent.common_headers = std::make_shared<Headers const>(Headers{{"User-Agent", "x"}});
    sent.headers.add("X-API-Key", "k");
    sent.purpose = Purpose::train;
    sent.timeouts.read = 45s;
    sent.redirects = Redirects::none;
    ContractSink sink;
    auto const call = sink.start(fake, sent);
    auto const record = fake.sent().at(0);
    EXPECT_EQ(record.call, call);
    EXPECT_EQ(record.method, "POST");
    EXPECT_EQ(record.path, "/p");
    EXPECT_EQ(record.query, "q=1");
    EXPECT_EQ(record.headers, (Headers{{"User-Agent", "x"}, {"X-API-Key", "k"}}));
    EXPECT_EQ(record.header("x-api-key"), "k");
    EXPECT_EQ(record.purpose, Purpose::train);
    EXPECT_EQ(record.timeouts.read, 45s);
    EXPECT_EQ(record.redirects, Redirects::none);
    EXPECT_EQ(record.at, clock.now());
    EXPECT_FALSE(record.ended);
    EXPECT_EQ(fake.open_count(), 1U);
    clock.run_ready();
    EXPECT_TRUE(fake.sent().at(0).ended);
    EXPECT_EQ(fake.open_count(), 0U);
}

TEST_F(FakeTransportTest, ListsTheScriptWhenNothingAnswers) {
    fake.on("GET", "/other").reply({}, 2);
    ContractSink sink;
    sink.start(fake, request("GET", "/asked"));
    clock.run_ready();
    ASSERT_TRUE(sink.failure());
    EXPECT_EQ(sink.failure()->kind, FailureKind::invalid_request);
    EXPECT_THAT(sink.failure()->message, HasSubstr("GET /asked"));
    EXPECT_THAT(sink.failure()->message, HasSubstr("GET /other (2 left)"));
}

TEST_F(FakeTransportTest, TakesItsTime) {
    fake.push({.body = "abcd", .pieces = 2, .delay = 3s, .piece_delay = 1s});
    ContractSink sink;
    sink.start(fake, request("GET", "/"));
    clock.advance(2999ms);
    EXPECT_FALSE(sink.head());
    clock.advance(1ms);
    EXPECT_TRUE(sink.head());
    EXPECT_EQ(sink.body(), "");
    clock.advance(1s);
    EXPECT_EQ(sink.body(), "ab");
    clock.advance(1s);
    EXPECT_EQ(sink.body(), "abcd");
    EXPECT_TRUE(sink.succeeded());
    EXPECT_THAT(sink.breaches(), IsEmpty());
}

TEST_F(FakeTransportTest, AddsAContentLengthUnlessThereIsOne) {
    fake.push({.body = "abcd"});
    fake.push({.headers = {{"Transfer-Encoding", "chunked"}}, .body = "abcd"});
    ContractSink counted;
    ContractSink chunked;
    counted.start(fake, request("GET", "/"));
    chunked.start(fake, request("GET", "/"));
    clock.run_ready();
    EXPECT_EQ(*counted.head()->headers.find("content-length"), "4");
    EXPECT_FALSE(chunked.head()->headers.contains("content-length"));
}

TEST_F(FakeTransportTest, FailsInsteadOfAnswering) {
    fake.push(failing(FailureKind::connect, Seen::no));
    fake.push({.body = "part", .failure = Failure{.kind = FailureKind::reset}});
    ContractSink refused;
    ContractSink cut;
    refused.start(fake, request("GET", "/"));
    cut.start(fake, request("GET", "/"));
    clock.run_ready();
    ASSERT_TRUE(refused.failure());
    EXPECT_FALSE(refused.head());
    EXPECT_EQ(refused.failure()->kind, FailureKind::connect);
    EXPECT_EQ(refused.failure()->seen, Seen::no);
    ASSERT_TRUE(cut.failure());
    EXPECT_EQ(cut.body(), "part");
    EXPECT_THAT(cut.breaches(), IsEmpty());
}

TEST_F(FakeTransportTest, HoldsAnAnswerBackUntilReleased) {
    fake.on("GET", "/").hold().hold();
    ContractSink first;
    ContractSink second;
    first.start(fake, request("GET", "/"));
    second.start(fake, request("GET", "/"));
    clock.advance(10s);
    EXPECT_EQ(fake.held().size(), 2U);
    EXPECT_TRUE(fake.release(second.call(), {.body = "second"}));
    EXPECT_TRUE(fake.fail_next({.kind = FailureKind::tls}));
    EXPECT_FALSE(fake.release(second.call(), {}));
    EXPECT_FALSE(second.ended()) << "never from inside release";
    clock.run_ready();
    EXPECT_EQ(second.body(), "second");
    EXPECT_EQ(first.failure()->kind, FailureKind::tls);
    EXPECT_THAT(fake.held(), IsEmpty());
}

TEST_F(FakeTransportTest, HonoursTheTimeLimitsOfARequest) {
    fake.otherwise([](SentRequest const&) { return std::nullopt; });
    ContractSink read;
    ContractSink total;
    read.start(fake, request("GET", "/"));
    auto limited = request("GET", "/");
    limited.timeouts.total = 30s;
    total.start(fake, limited);
    clock.advance(30s);
    ASSERT_TRUE(total.ended());
    EXPECT_EQ(total.failure()->kind, FailureKind::total_timeout);
    clock.advance(29999ms);
    EXPECT_FALSE(read.ended());
    clock.advance(1ms);
    ASSERT_TRUE(read.ended());
    EXPECT_EQ(read.failure()->kind, FailureKind::read_timeout);
    EXPECT_EQ(clock.pending_timers(), 0U);
}

TEST_F(FakeTransportTest, HonoursTheLimitOnTheBody) {
    fake.push({.body = "12345"});
    auto limited = request("GET", "/");
    limited.max_response_bytes = 4;
    ContractSink sink;
    sink.start(fake, limited);
    clock.run_ready();
    ASSERT_TRUE(sink.failure());
    EXPECT_EQ(sink.failure()->kind, FailureKind::too_large);
}

TEST_F(FakeTransportTest, CancelSilencesACallAndIsRecorded) {
    fake.push({.delay = 1s});
    ContractSink sink;
    sink.start(fake, request("GET", "/"));
    sink.cancel(fake);
    sink.cancel(fake);
    clock.advance(10s);
    EXPECT_FALSE(sink.ended());
    EXPECT_THAT(sink.breaches(), IsEmpty());
    EXPECT_TRUE(fake.sent().at(0).cancelled);
    EXPECT_EQ(fake.cancelled_count(), 1U);
}

TEST_F(FakeTransportTest, MayBeCancelledInsideEveryCallback) {
    for (std::string const stage : {"head", "data", "done", "failure"}) {
        Reply reply{.body = "text", .pieces = 2};
        if (stage == "failure") reply.failure = Failure{};
        fake.push(reply);
        ContractSink sink;
        sink.on_event = [&](std::string_view event) {
            if (event == stage) sink.cancel(fake);
        };
        sink.start(fake, request("GET", "/"));
        clock.run_ready();
        EXPECT_THAT(sink.breaches(), IsEmpty()) << stage;
        EXPECT_EQ(fake.open_count(), 0U) << stage;
    }
}

TEST_F(FakeTransportTest, PauseHoldsTheBodyBack) {
    fake.push({.body = "text", .pieces = 4});
    ContractSink sink;
    sink.on_event = [&](std::string_view event) {
        if (event == "data" && sink.pieces() == 2) fake.pause(sink.call(), true);
    };
    sink.start(fake, request("GET", "/"));
    clock.advance(10min);
    EXPECT_EQ(sink.body(), "te");
    EXPECT_FALSE(sink.ended()) << "a pause of our own is not the server's silence";
    EXPECT_TRUE(fake.paused(sink.call()));
    fake.pause(sink.call(), false);
    clock.run_ready();
    EXPECT_EQ(sink.body(), "text");
    EXPECT_TRUE(sink.succeeded());
}

TEST_F(FakeTransportTest, AHandlerThatThrowsFailsTheCallAndSaysSo) {  // R-TEST-02
    fake.on("GET", "/told").handle([](SentRequest const&) -> Reply {
        throw std::runtime_error{"no such answer"};
    });
    fake.on("GET", "/untold").handle([](SentRequest const&) -> Reply { throw 7; });
    ContractSink told;
    ContractSink untold;
    told.start(fake, request("GET", "/told"));
    untold.start(fake, request("GET", "/untold"));
    clock.run_ready();
    ASSERT_TRUE(told.failure() && untold.failure());
    EXPECT_THAT(told.failure()->message, HasSubstr("the handler threw: no such answer"));
    EXPECT_THAT(untold.failure()->message, HasSubstr("no std::exception"));
}

TEST_F(FakeTransportTest, DrainLetsCallsFinishUntilTheDeadline) {
    fake.push({.body = "in time", .delay = 1s});
    fake.push({.body = "too late", .delay = 10s});
    ContractSink quick;
    ContractSink slow;
    ContractSink refused;
    quick.start(fake, request("GET", "/"));
    slow.start(fake, request("GET", "/"));
    EXPECT_FALSE(fake.draining());
    fake.drain(clock.now() + 5s);
    EXPECT_TRUE(fake.draining());
    refused.start(fake, request("GET", "/"));
    clock.run_ready();
    EXPECT_EQ(refused.failure()->kind, FailureKind::closed);
    clock.advance(5s);
    EXPECT_TRUE(quick.succeeded());
    ASSERT_TRUE(slow.ended());
    EXPECT_EQ(slow.failure()->kind, FailureKind::closed);
}

}  // namespace
}  // namespace tinkxx::testing
