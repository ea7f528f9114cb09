#include "unit/client/client_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using testing::failing;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Reply;
using testing::SentRequest;

struct HttpClientTest : ClientFixture {};

TEST_F(HttpClientTest, GetsAnAnswer) {  // R-EXT-90
    fake->push({.headers = {{"X-Y", "z"}}, .body = R"({"status":"ok"})", .delay = 3s});
    auto http = client();
    auto pending = http.send({.path = "/api/v1/healthz"});
    auto const response = pending.get();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, R"({"status":"ok"})");
    EXPECT_EQ(*response.headers.find("x-y"), "z");
    EXPECT_EQ(response.elapsed, 3s);
    EXPECT_EQ(response.retries, 0);
    EXPECT_EQ(response.url, "http://host:8000/api/v1/healthz");
    auto const sent = fake->sent().at(0);
    EXPECT_EQ(sent.method, "GET");
    EXPECT_FALSE(sent.headers.contains("content-type"));
    EXPECT_FALSE(sent.headers.contains("x-idempotency-key"));
}

TEST_F(HttpClientTest, PostsJsonUnlessToldOtherwise) {  // R-WIRE-01
    fake->otherwise([](auto const&) { return Reply{}; });
    auto http = client();
    http.send({.method = "POST", .path = "a", .body = "{}"}).get();
    http.send(
            {.method = "POST", .path = "b", .body = "x", .content_type = "application/x-protobuf"})
        .get();
    http.send({.method = "DELETE", .path = "c"}).get();
    http.send({.method = "POST", .path = "d", .headers = {{"content-type", "text/plain"}}}).get();
    auto const sent = fake->sent();
    EXPECT_EQ(sent.at(0).header("content-type"), "application/json");
    EXPECT_EQ(sent.at(0).body, "{}");
    EXPECT_EQ(sent.at(1).header("content-type"), "application/x-protobuf");
    EXPECT_EQ(sent.at(2).header("content-type"), "application/json");
    EXPECT_EQ(sent.at(3).header("content-type"), "text/plain");
    for (auto const& request : sent) {
        auto const types =
            std::count_if(request.headers.begin(), request.headers.end(), [](Header const& line) {
                return line.name == "Content-Type" || line.name == "content-type";
            });
        EXPECT_EQ(types, 1);
    }
}

TEST_F(HttpClientTest, SendsTheKeyOnlyIfThereIsOne) {
    fake->otherwise([](auto const&) { return Reply{}; });
    client().send({.path = "/"}).get();
    auto with_key = options();
    with_key.api_key = "tml-key";
    HttpClient{with_key}.send({.path = "/"}).get();
    EXPECT_FALSE(fake->sent().at(0).headers.contains("x-api-key"));
    EXPECT_EQ(fake->sent().at(1).header("x-api-key"), "tml-key");
}

TEST_F(HttpClientTest, RequestsHeadersReplaceStandardOnes) {  // R-CONF-03
    fake->push({});
    auto opts = options();
    opts.default_headers = {{"X-Default", "d"}, {"X-Other", "o"}};
    HttpClient http{opts};
    http.send({.path = "/", .headers = {{"accept", "text/plain"}, {"x-default", "mine"}}}).get();
    auto const sent = fake->sent().at(0);
    EXPECT_EQ(sent.header("accept"), "text/plain");
    EXPECT_EQ(sent.header("x-default"), "mine");
    EXPECT_EQ(sent.header("x-other"), "o");
    EXPECT_EQ(std::count_if(sent.headers.begin(), sent.headers.end(),
                            [](Header const& line) {
                                return line.name == "accept" || line.name == "Accept";
                            }),
              1);
}

TEST_F(HttpClientTest, MergesTheQueries) {  // R-EXT-90
    fake->push({});
    auto opts = options();
    opts.default_query = {{"a", 1}, {"b", 1}, {"c", 1}};
    HttpClient http{opts};
    http.send({.path = "/x?b=2", .query = {{"c", 3}}}).get();
    EXPECT_EQ(fake->sent().at(0).query, "a=1&b=2&c=3");
}

TEST_F(HttpClientTest, RetriesOnVirtualTime) {  // R-RETRY-70, R-TEST-02
    fake->push({.status = 503});
    fake->push(failing(FailureKind::reset));
    fake->push({.status = 429, .headers = {{"retry-after", "30"}}});
    fake->push({.body = "at last"});
    auto const start = clock->now();
    auto http = client();
    auto const response = http.send({.method = "POST", .path = "/x"}).get();
    EXPECT_EQ(response.body, "at last");
    EXPECT_EQ(response.retries, 3);
    EXPECT_GE(clock->now() - start, 30s);
    EXPECT_LE(clock->now() - start, 32s);
}

TEST_F(HttpClientTest, HonoursTheOverridesOfARequest) {
    fake->otherwise([](auto const&) { return Reply{.status = 500}; });
    auto http = client();
    auto const result = http.send({.method = "POST",
                                   .path = "/x",
                                   .purpose = Purpose::telemetry,
                                   .timeouts = Timeouts{.read = 5s},
                                   .max_retries = 1,
                                   .idempotency_key = "mine",
                                   .redirects = Redirects::none})
                            .result();
    EXPECT_FALSE(result);
    auto const sent = fake->sent();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0].purpose, Purpose::telemetry);
    EXPECT_EQ(sent[0].timeouts.read, 5s);
    EXPECT_EQ(sent[0].header("x-stainless-read-timeout"), "5");
    EXPECT_EQ(sent[1].header("x-idempotency-key"), "mine");
    EXPECT_EQ(sent[0].redirects, Redirects::none);
}

TEST_F(HttpClientTest, FailsWithTheClassOfTheError) {  // R-RETRY-74, R-ERR-01
    auto opts = options();
    opts.max_retries = 0;
    HttpClient http{opts};
    fake->push({.status = 401, .body = R"({"detail":"no"})"});
    fake->push({.status = 402, .body = "{}"});
    fake->push(failing(FailureKind::read_timeout));
    fake->push(failing(FailureKind::connect));
    auto unauthorized = http.send({.path = "/api/v1/healthz"});
    try {
        unauthorized.get();
        FAIL();
    } catch (StatusError const& e) {
        EXPECT_STREQ(e.what(), R"(GET /api/v1/healthz: 401 unauthorized: {"detail":"no"}; )"
                               "set TINKER_API_KEY or ClientOptions::api_key");
    }
    EXPECT_THROW(http.send({.path = "/"}).get(), BillingError);
    EXPECT_THROW(http.send({.path = "/"}).get(), TimeoutError);
    EXPECT_THROW(http.send({.path = "/"}).get(), ConnectionError);
}

TEST_F(HttpClientTest, GivesTheRawAnswerOfAnyStatusIfAskedTo) {  // R-EXT-90
    fake->push({.status = 404, .body = "nothing here"});
    auto http = client();
    auto const response = http.send({.path = "/", .fail_on_status = false}).get();
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(response.body, "nothing here");
}

TEST_F(HttpClientTest, ReportsBadRequestsThroughTheFuture) {  // R-CONF-06
    auto http = client();
    auto const refused = [&http](HttpRequest request) {
        auto result = http.send(std::move(request)).result();
        return result ? std::string{"sent"} : std::string{result.error().field()};
    };
    EXPECT_EQ(refused({.method = "G T"}), "method");
    EXPECT_EQ(refused({.method = ""}), "method");
    EXPECT_EQ(refused({.headers = {{"a", "b\nc"}}}), "headers.a");
    EXPECT_EQ(refused({.content_type = "a\nb"}), "content_type.Content-Type");
    EXPECT_EQ(refused({.idempotency_key = "a\nb"}), "idempotency_key.X-Idempotency-Key");
    EXPECT_EQ(refused({.timeouts = Timeouts{.connect = -1ms}}), "timeouts.connect");
    EXPECT_EQ(refused({.max_retries = -3}), "max_retries");
    EXPECT_EQ(fake->sent_count(), 0U);
}

TEST_F(HttpClientTest, ThrowsForBadOptions) {  // R-CONF-06, R-CONF-07
    auto opts = options();
    opts.base_url = "nowhere";
    EXPECT_THROW(HttpClient{opts}, ValidationError);
    opts = options();
    opts.proxy = "socks://p";
    EXPECT_THROW(HttpClient{opts}, ValidationError);
}

TEST_F(HttpClientTest, KeepsClientsApart) {  // R-CONF-10
    fake->otherwise([](auto const&) { return Reply{.status = 500}; });
    auto one = options();
    one.api_key = "tml-one";
    one.max_retries = 0;
    auto two = options();
    two.base_url = "http://other";
    two.api_key = "tml-two";
    two.max_retries = 1;
    HttpClient first{one};
    HttpClient second{two};
    one.api_key = "changed later";
    auto a = first.send({.path = "/a"});
    auto b = second.send({.path = "/b"});
    (void)a.result();
    (void)b.result();
    EXPECT_EQ(fake->sent("/a").size(), 1U);
    EXPECT_EQ(fake->sent("/b").size(), 2U);
    EXPECT_EQ(fake->sent("/a").at(0).header("x-api-key"), "tml-one");
    EXPECT_EQ(fake->sent("/b").at(0).header("x-api-key"), "tml-two");
    EXPECT_EQ(fake->sent("/b").at(0).url, "http://other/b");
}

TEST_F(HttpClientTest, SendsItsSecretsToNobodyElse) {  // R-ERR-04
    fake->otherwise([](auto const&) { return Reply{}; });
    auto opts = options();
    opts.api_key = "tml-key";
    opts.default_headers = {{"CF-Access-Client-Secret", "s"}};
    opts.default_query = {{"q", 1}};
    HttpClient http{opts};
    http.send({.path = "https://store.example/file?sig=1", .headers = {{"Range", "bytes=0-9"}}})
        .get();
    http.send({.path = "http://host:8000/own"}).get();
    auto const foreign = fake->sent().at(0);
    EXPECT_EQ(foreign.url, "https://store.example/file?sig=1");
    EXPECT_FALSE(foreign.headers.contains("x-api-key"));
    EXPECT_FALSE(foreign.headers.contains("cf-access-client-secret"));
    EXPECT_EQ(foreign.header("range"), "bytes=0-9");
    EXPECT_EQ(fake->sent().at(1).header("x-api-key"), "tml-key");
}

TEST_F(HttpClientTest, CarriesTheTraceContext) {  // R-EXT-20
    fake->otherwise([](auto const&) { return Reply{}; });
    auto opts = options();
    opts.otel_propagate = true;
    opts.trace_propagator = [] {
        return Headers{{"traceparent", "00-1"}, {"TraceState", "s=1"}, {"X-Other", "no"}};
    };
    HttpClient http{opts};
    http.send({.path = "/a"}).get();
    http.send({.path = "/b", .headers = {{"Traceparent", "mine"}}}).get();
    auto const sent = fake->sent();
    EXPECT_EQ(sent.at(0).header("traceparent"), "00-1");
    EXPECT_EQ(sent.at(0).header("tracestate"), "s=1");
    EXPECT_FALSE(sent.at(0).headers.contains("x-other"));
    EXPECT_EQ(sent.at(1).header("traceparent"), "mine") << "never in place of a line given";
}

TEST_F(HttpClientTest, ABadPropagatorLeavesTheHeadersAlone) {  // R-EXT-20
    fake->otherwise([](auto const&) { return Reply{}; });
    auto opts = options();
    opts.otel_propagate = true;
    opts.trace_propagator = []() -> Headers { throw std::runtime_error{"no span"}; };
    HttpClient{opts}.send({.path = "/a"}).get();
    opts.trace_propagator = [] {
        return Headers{{"traceparent", "fine"}, {"tracestate", "a\r\nb: c"}};
    };
    HttpClient{opts}.send({.path = "/b"}).get();
    EXPECT_FALSE(fake->sent().at(0).headers.contains("traceparent"));
    EXPECT_FALSE(fake->sent().at(1).headers.contains("traceparent")) << "all or nothing";
}

TEST_F(HttpClientTest, CancellingAFutureCancelsItsCall) {
    fake->otherwise([](auto const&) { return std::nullopt; });
    auto http = client();
    auto pending = http.send({.path = "/"});
    run();
    ASSERT_EQ(fake->open_count(), 1U);
    pending.cancel();
    run();
    EXPECT_EQ(fake->cancelled_count(), 1U);
    EXPECT_THROW(pending.get(), CancelledError);
}

TEST_F(HttpClientTest, ACallThatIsCancelledBeforeItBeganIsNeverSent) {
    auto http = client();
    auto pending = http.send({.path = "/"});
    pending.cancel();
    run();
    EXPECT_EQ(fake->sent_count(), 0U);
}

TEST_F(HttpClientTest, DroppingAFutureDoesNotRecallTheRequest) {
    fake->push({});
    auto http = client();
    { auto const dropped = http.send({.path = "/"}); }
    run();
    EXPECT_EQ(fake->sent_count(), 1U);
    EXPECT_EQ(fake->cancelled_count(), 0U);
}

TEST_F(HttpClientTest, RefusesCallsAfterClose) {
    fake->otherwise([](auto const&) { return std::nullopt; });
    auto http = client();
    auto const copy = http;
    auto pending = http.send({.path = "/"});
    run();
    copy.close();
    copy.close();
    EXPECT_THROW(http.send({.path = "/"}).get(), ClosedError);
    EXPECT_THROW(pending.get(), CancelledError);
    EXPECT_EQ(fake->sent_count(), 1U);
}

TEST_F(HttpClientTest, CallsUnderWayNeedNoHandle) {
    fake->push({.delay = 5s});
    clock->set_auto_advance(false);
    auto http = std::make_optional(client());
    auto pending = http->send({.path = "/"});
    auto cancelled = http->send({.path = "/"});
    http.reset();
    run();
    EXPECT_FALSE(pending.ready());
    cancelled.cancel();
    clock->advance(5s);
    run();
    ASSERT_TRUE(pending.ready());
    EXPECT_EQ(pending.get().status, 200);
    EXPECT_EQ(fake->open_count(), 0U);
}

TEST_F(HttpClientTest, EndsWithTheRuntime) {
    fake->otherwise([](auto const&) { return std::nullopt; });
    auto http = client();
    auto pending = http.send({.path = "/"});
    runtime.shutdown();
    EXPECT_THROW(pending.get(), CancelledError);
    EXPECT_THROW(http.send({.path = "/"}).get(), CancelledError);
}

TEST_F(HttpClientTest, StartsCallsInTheOrderOfTheProgram) {
    fake->otherwise([](auto const&) { return Reply{}; });
    auto http = client();
    std::vector<Future<HttpResponse>> pending;
    for (int i = 0; i < 20; ++i) pending.push_back(http.send({.path = std::to_string(i)}));
    auto const all = when_all(std::move(pending)).get();
    for (std::size_t i = 0; i < 20; ++i) {
        EXPECT_EQ(fake->sent().at(i).path, '/' + std::to_string(i));
        EXPECT_EQ(all.at(i).url, "http://host:8000/" + std::to_string(i));
    }
}

TEST_F(HttpClientTest, WorksInCoroutines) {
    fake->push({.body = "first"});
    fake->push({.body = "second"});
    auto http = client();
    auto const both = [](HttpClient client) -> Future<std::string> {
        auto one = client.send({.path = "/1"});
        auto const a = co_await one;
        auto two = client.send({.path = "/2"});
        auto const b = co_await two;
        co_return a.body + b.body;
    };
    auto pending = both(http);
    EXPECT_EQ(pending.get(), "firstsecond");
}

TEST_F(HttpClientTest, TellsObserversAndTheLog) {  // R-EXT-30, R-CONF-12
    std::vector<std::string> lines;
    auto const sink = [&lines](LogLevel, std::string_view line) { lines.emplace_back(line); };
    auto opts = options();
    opts.api_key = "tml-0123456789abcdef";
    opts.observers = {console_observer(sink)};
    opts.dump_headers = true;
    opts.log = sink;
    HttpClient http{opts};
    fake->push({.status = 503, .body = "key tml-0123456789abcdef"});
    fake->push({});
    http.send({.path = "/x"}).get();
    run();
    auto const all = ::testing::PrintToString(lines);
    EXPECT_THAT(all, HasSubstr("GET /x [rest]: started"));
    EXPECT_THAT(all, HasSubstr("retry 1 in"));
    EXPECT_THAT(all, HasSubstr("GET /x < 503"));
    EXPECT_THAT(all, HasSubstr("200 in"));
    EXPECT_THAT(all, Not(HasSubstr("tml-0123")));
}

// What is pending
// ----------------------------------------------------------------------------------

/// A client whose clock stands still, and its warnings.
struct PendingHttp : HttpClientTest {
    PendingHttp() { clock->set_auto_advance(false); }

    HttpClient listed() {
        auto opts = options();
        opts.log = [this](LogLevel, std::string_view line) { lines.emplace_back(line); };
        return HttpClient{opts};
    }
    std::vector<OperationStatus> pending(HttpClient const& http) {
        auto asked = http.pending();
        run();
        return asked.get();
    }
    void pass_time(std::chrono::seconds span) {
        for (; span > 0s; span -= 1s) {
            clock->advance(1s);
            run();
        }
    }
    static Reply refused() {
        return Reply{.status = 0,
                     .failure = Failure{.kind = FailureKind::connect,
                                        .message = "cannot connect to host:8000: refused",
                                        .seen = Seen::no}};
    }

    std::vector<std::string> lines{};
};

TEST_F(PendingHttp, CallsAreListedUntilTheyAreOver) {  // R-TEST-01
    fake->push({.delay = 9s});
    fake->push({.body = "data: 1", .delay = 9s});
    auto const http = listed();
    auto sent = http.send({.path = "/a"});
    auto streamed = http.stream({.path = "/b"}, [](std::span<char const>) {});
    run();
    clock->advance(2s);
    auto const all = pending(http);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].operation, "GET /a");
    EXPECT_EQ(all[1].operation, "GET /b");
    EXPECT_LT(all[0].id, all[1].id);
    EXPECT_EQ(all[0].stage, Stage::submitting);
    EXPECT_EQ(all[0].age, 2s);
    EXPECT_EQ(all[0].stalled, 2s);
    EXPECT_EQ(all[0].attempt, 1);
    EXPECT_EQ(all[0].why, "the service has not answered yet");
    pass_time(7s);
    EXPECT_TRUE(sent.ready() && streamed.ready());
    EXPECT_EQ(pending(http).size(), 0U);
}

TEST_F(PendingHttp, ACallThatIsRepeatedSaysWhy) {  // R-TEST-01
    fake->otherwise([](auto const&) { return refused(); });
    auto const http = listed();
    auto sent = http.send({.path = "/a"});
    run();
    auto const waits = pending(http).at(0);
    EXPECT_EQ(waits.stage, Stage::waiting_to_submit);
    EXPECT_THAT(waits.why, HasSubstr("cannot connect to host:8000"));
    EXPECT_GT(waits.ends_in.value_or(0s), 0s);
    EXPECT_EQ(waits.attempt, 2);
    fake->otherwise([](auto const&) { return Reply{.delay = 9s}; });
    clock->advance(1s);
    auto const again = pending(http).at(0);
    EXPECT_EQ(again.stage, Stage::submitting);
    EXPECT_THAT(again.why, HasSubstr("last: GET /a: cannot connect"));
    EXPECT_EQ(again.stalled, 1s);
}

TEST_F(PendingHttp, CallsThatAreCancelledOrClosedLeaveTheList) {
    fake->otherwise([](auto const&) { return Reply{.delay = 24h}; });
    auto const http = listed();
    auto sent = http.send({.path = "/a"});
    auto streamed = http.stream({.path = "/b"}, [](std::span<char const>) {});
    auto third = http.send({.path = "/c"});
    run();
    sent.cancel();
    streamed.cancel();
    EXPECT_EQ(pending(http).size(), 1U);
    http.close();
    EXPECT_EQ(pending(http).size(), 0U);
    EXPECT_TRUE(third.ready());
}

TEST_F(PendingHttp, AStallIsWarnedOf) {  // R-TEST-01
    fake->otherwise([](auto const&) { return refused(); });
    auto const http = listed();
    auto sent = http.send({.path = "/a"});
    auto streamed = http.stream({.path = "/b"}, [](std::span<char const>) {});
    pass_time(4s);
    EXPECT_EQ(lines.size(), 0U);
    pass_time(2s);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_THAT(lines[0], HasSubstr("2 calls are pending; GET /"));
    EXPECT_THAT(lines[0], HasSubstr(" has waited 5.0 s: GET /"));
    EXPECT_THAT(lines[0], HasSubstr("cannot connect to host:8000"));
}

TEST_F(PendingHttp, ObserversSeeEachStage) {  // R-EXT-30
    struct Stages final : Observer {
        void on_stage(StageEvent const& event) override {
            seen.push_back(event.operation + ' ' + std::string{to_string(event.stage)});
        }
        bool wants_stages() const noexcept override { return true; }
        std::vector<std::string> seen{};
    };
    auto const stages = std::make_shared<Stages>();
    fake->push(refused());
    fake->push({});
    auto opts = options();
    opts.observers = {stages};
    auto sent = HttpClient{opts}.send({.path = "/a"});
    run();
    clock->advance(1s);
    run();
    EXPECT_TRUE(sent.ready());
    EXPECT_THAT(stages->seen,
                ::testing::ElementsAre("GET /a submitting", "GET /a waiting to submit again",
                                       "GET /a submitting"));
}

}  // namespace
}  // namespace tinkxx
