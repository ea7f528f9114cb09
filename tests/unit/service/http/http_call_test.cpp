#include "service/http/http_call.hpp"

#include <tinkxx/runtime.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/http/standard_headers.hpp"
#include "unit/service/http/scripted_credential.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using tinkxx::testing::failing;
using tinkxx::testing::FakeTransport;
using tinkxx::testing::ManualClock;
using tinkxx::testing::Reply;

struct Waiting final : HttpCall::Listener {
    explicit Waiting(HttpContext& context) : call{context, *this} {}
    void on_response(HttpResponse got) override {
        response = std::move(got);
        ++ends;
        if (then) then();
    }
    void on_error(Error got) override {
        error = std::move(got);
        ++ends;
        if (then) then();
    }
    void on_body(std::span<char const> data) override {
        streamed.append(data.begin(), data.end());
        if (on_piece) on_piece();
    }

    int ends{0};
    std::optional<HttpResponse> response{};
    std::optional<Error> error{};
    std::string streamed{};
    std::function<void()> then{};
    std::function<void()> on_piece{};
    HttpCall call;
};

struct Recorder final : Observer {
    void on_http_start(HttpStartEvent const& event) override { note("start", event); }
    void on_http_retry(HttpRetryEvent const& event) override {
        note("retry " + std::to_string(event.retry_count), event);
    }
    void on_http_stop(HttpStopEvent const& event) override {
        note("stop " + std::to_string(event.status) + " after " + std::to_string(event.retry_count),
             event);
        last_duration = event.duration;
    }
    void on_http_exception(HttpExceptionEvent const& event) override {
        note("exception " + std::string{to_string(event.error->kind())}, event);
    }
    void note(std::string text, HttpEvent const& event) {
        seen.push_back(std::move(text));
        last = event;
        if (seen.size() == throw_at) throw std::runtime_error{"observer trouble"};
    }

    std::vector<std::string> seen{};
    HttpEvent last{};
    std::chrono::nanoseconds last_duration{};
    std::size_t throw_at{0};
};

/// A transport of a user's whose `start` throws so many times.
struct Throwing final : Transport {
    Throwing(std::shared_ptr<Transport> real, int count, std::function<void()> how)
        : inner{std::move(real)}, left{count}, raise{std::move(how)} {}

    Call start(Request request, ReplySink& sink) override {
        if (left-- > 0) raise();
        return inner->start(std::move(request), sink);
    }
    void cancel(Call call) noexcept override { inner->cancel(call); }
    void pause(Call call, bool on) noexcept override { inner->pause(call, on); }
    void drain(TimePoint deadline) noexcept override { inner->drain(deadline); }

    std::shared_ptr<Transport> inner;
    int left;
    std::function<void()> raise;
};

struct HttpCallTest : ::testing::Test {
    HttpCallTest() { rebuild(); }

    void rebuild() {
        ClientConfig config{{}, Endpoint::parse("http://host:8000/base").value()};
        config.headers = standard_headers(parity_version);
        config.observers = observers;
        config.dump_headers = dump;
        config.log_level = LogLevel::info;
        config.metadata = {{"session", "s1"}, {"who", "client"}};
        config.log = [this](LogLevel level, std::string_view line) {
            lines.push_back(std::string{to_string(level)} + ": " + std::string{line});
        };
        config.scrubber.add("tml-0123456789abcdef");
        if (context) context->close();
        context =
            std::make_shared<HttpContext>(std::make_shared<ClientConfig const>(std::move(config)),
                                          runtime.core(), transport, source);
    }

    ~HttpCallTest() override { context->close(); }

    HttpOrder order(std::string method = "POST", std::string path = "/x") {
        HttpOrder made;
        made.operation.method = std::move(method);
        made.operation.path = path;
        made.url = "http://host:8000/base" + path;
        return made;
    }

    std::shared_ptr<ManualClock> clock{std::make_shared<ManualClock>()};
    Runtime runtime{RuntimeOptions{.threads = 0, .scheduler = clock}};
    std::shared_ptr<FakeTransport> fake{std::make_shared<FakeTransport>(*clock)};
    std::shared_ptr<Transport> transport{fake};
    std::shared_ptr<CredentialSource> source{
        std::make_shared<FixedCredential>("tml-0123456789abcdef")};
    std::vector<std::shared_ptr<Observer>> observers{};
    bool dump{false};
    std::vector<std::string> lines{};
    std::shared_ptr<HttpContext> context{};
};

TEST_F(HttpCallTest, TheTextOfAnAnswerServesTheNextOneOfAboutItsSize) {
    std::string text(3000, 'x');
    auto const* const place = text.data();
    context->give_text(std::move(text));
    EXPECT_NE(context->take_text(100).data(), place);  // would hold thirty times what it needs
    auto const again = context->take_text(2000);
    EXPECT_EQ(again.data(), place);
    EXPECT_EQ(again, "");
    EXPECT_GE(context->take_text(5000).capacity(), 5000U);
    std::string large(1'000'000, 'y');
    auto const* const large_place = large.data();
    context->give_text(std::move(large));
    EXPECT_NE(context->take_text(900'000).data(),
              large_place);  // not kept, or it would be for ever
}

TEST_F(HttpCallTest, DeliversAnAnswer) {
    fake->push(
        {.status = 201, .headers = {{"X-Y", "z"}}, .body = "hello", .pieces = 2, .delay = 2s});
    Waiting waiting{*context};
    waiting.call.start(order());
    EXPECT_EQ(waiting.ends, 0);
    clock->advance(2s);
    ASSERT_TRUE(waiting.response);
    EXPECT_EQ(waiting.response->status, 201);
    EXPECT_EQ(waiting.response->body, "hello");
    EXPECT_EQ(*waiting.response->headers.find("x-y"), "z");
    EXPECT_EQ(waiting.response->url, "");  // where it was sent to
    EXPECT_EQ(waiting.response->retries, 0);
    EXPECT_EQ(waiting.response->elapsed, 2s);
    EXPECT_EQ(waiting.response->http_version, 11);
    EXPECT_FALSE(waiting.call.under_way());
    EXPECT_EQ(context->open_calls(), 0U);
}

TEST_F(HttpCallTest, SendsTheStandardHeadersAndTheCredential) {  // R-WIRE-01, R-RETRY-73
    fake->push({});
    Waiting waiting{*context};
    auto made = order();
    made.timeouts.read = 45s;
    waiting.call.start(made);
    auto const sent = fake->sent().at(0);
    EXPECT_EQ(sent.header("accept"), "application/json");
    EXPECT_THAT(sent.header("user-agent"), MatchesRegex("tinkxx/.+"));
    EXPECT_EQ(sent.header("x-api-key"), "tml-0123456789abcdef");
    EXPECT_EQ(sent.header("x-stainless-retry-count"), "0");
    EXPECT_EQ(sent.header("x-stainless-read-timeout"), "45");
    EXPECT_EQ(sent.timeouts.read, 45s);
}

TEST_F(HttpCallTest, RetriesAfterTheBackoffAndNotBefore) {  // R-RETRY-70, R-RETRY-71, R-CONV-01
    fake->push({.status = 503});
    fake->push({.body = "ok"});
    Waiting waiting{*context};
    waiting.call.start(order());
    clock->run_ready();
    auto const wait = *clock->next_due() - clock->now();
    EXPECT_GE(wait, 375ms);
    EXPECT_LE(wait, 500ms);
    clock->set_wall(clock->wall() + 24h);  // a jump of the wall clock does not end a wait
    clock->advance(wait - 1ns);
    EXPECT_EQ(fake->sent_count(), 1U);
    clock->advance(1ns);
    EXPECT_EQ(fake->sent_count(), 2U);
    ASSERT_TRUE(waiting.response);
    EXPECT_EQ(waiting.response->retries, 1);
    EXPECT_EQ(waiting.response->body, "ok");
}

TEST_F(HttpCallTest, KeepsOneIdempotencyKeyForAllAttempts) {  // R-RETRY-72, R-RETRY-73
    fake->otherwise([](auto const&) { return Reply{.status = 500}; });
    Waiting waiting{*context};
    waiting.call.start(order());
    clock->advance(5min);
    ASSERT_TRUE(waiting.error);
    auto const sent = fake->sent();
    ASSERT_EQ(sent.size(), 11U);
    for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_EQ(sent[i].header("x-stainless-retry-count"), std::to_string(i));
        EXPECT_EQ(sent[i].header("x-idempotency-key"), sent[0].header("x-idempotency-key"));
    }
    EXPECT_THAT(sent[0].header("x-idempotency-key"),
                MatchesRegex("stainless-cpp-retry-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-"
                             "[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
    waiting.call.start(order());
    EXPECT_NE(fake->sent().back().header("x-idempotency-key"), sent[0].header("x-idempotency-key"));
}

TEST_F(HttpCallTest, CallerMaySupplyOrSuppressTheIdempotencyKey) {  // R-RETRY-72
    fake->otherwise([](auto const&) { return Reply{}; });
    Waiting waiting{*context};
    auto given = order();
    given.idempotency_key = "mine";
    auto none = order();
    none.idempotency_key = "";
    auto in_header = order();
    in_header.headers.add("X-Idempotency-Key", "lined");
    for (auto const& made : {given, none, in_header, order("GET")}) {
        waiting.call.start(made);
        clock->run_ready();
    }
    EXPECT_EQ(fake->sent().at(0).header("x-idempotency-key"), "mine");
    EXPECT_FALSE(fake->sent().at(1).headers.contains("x-idempotency-key"));
    EXPECT_EQ(fake->sent().at(2).header("x-idempotency-key"), "lined");
    EXPECT_FALSE(fake->sent().at(3).headers.contains("x-idempotency-key"));
}

TEST_F(HttpCallTest, EndsInAConnectionErrorWhenNothingAnswers) {  // R-RETRY-74
    fake->otherwise([](auto const&) { return failing(FailureKind::connect, Seen::no); });
    Waiting waiting{*context};
    auto made = order();
    made.max_retries = 1;
    waiting.call.start(made);
    clock->advance(1min);
    ASSERT_TRUE(waiting.error);
    EXPECT_THROW(waiting.error->raise(), ConnectionError);
    EXPECT_EQ(waiting.error->details().attempts, 2);
    EXPECT_EQ(waiting.ends, 1);
}

TEST_F(HttpCallTest, ATransportThatThrowsIsALostConnection) {  // R-RETRY-74
    transport = std::make_shared<Throwing>(fake, 3, [] { throw std::runtime_error{"no cable"}; });
    rebuild();
    fake->push({.body = "at last"});
    Waiting waiting{*context};
    waiting.call.start(order());
    EXPECT_EQ(waiting.ends, 0) << "never from inside start";
    EXPECT_TRUE(waiting.call.in_doubt()) << "nobody knows how far it came";
    clock->run_ready();
    EXPECT_TRUE(waiting.call.retry_at());
    EXPECT_EQ(waiting.call.retry_reason(),
              "POST /x: the transport threw: no cable; try again later");
    clock->advance(1min);
    ASSERT_TRUE(waiting.response);
    EXPECT_EQ(waiting.response->retries, 3);

    transport = std::make_shared<Throwing>(fake, 100, [] { throw 7; });
    rebuild();
    Waiting other{*context};
    other.call.start(order());
    clock->advance(10min);
    ASSERT_TRUE(other.error);
    EXPECT_EQ(other.error->kind(), ErrorKind::connection);
    EXPECT_TRUE(other.error->retryable());
    EXPECT_EQ(other.error->details().attempts, 11);
    EXPECT_THAT(other.error->what(),
                HasSubstr("the transport threw: something that is no std::exception"));
}

TEST_F(HttpCallTest, AMistakeInATransportIsNotRepeated) {  // R-RETRY-74
    transport =
        std::make_shared<Throwing>(fake, 100, [] { throw std::invalid_argument{"not a URL"}; });
    rebuild();
    Waiting waiting{*context};
    waiting.call.start(order());
    clock->run_ready();
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::connection);
    EXPECT_FALSE(waiting.error->retryable());
    EXPECT_STREQ(waiting.error->what(),
                 "POST /x: the transport threw: not a URL; fix ClientOptions::transport");
    waiting.call.start(order());
    waiting.call.cancel();
    clock->run_ready();
    EXPECT_EQ(waiting.ends, 1);
}

TEST_F(HttpCallTest, DiscardsAConnectionThatAProxyRejects) {  // R-RETRY-75
    fake->push({.status = 400});
    fake->push({.body = "ok"});
    Waiting waiting{*context};
    waiting.call.start(order());
    clock->advance(1min);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::connection);
    EXPECT_EQ(fake->sent_count(), 1U) << "the submit loop repeats, not this layer";
    waiting.call.start(order());
    clock->advance(1s);
    ASSERT_TRUE(waiting.response);
    EXPECT_TRUE(fake->sent().at(0).discarded);
    EXPECT_FALSE(fake->sent().at(1).discarded);
}

TEST_F(HttpCallTest, DiscardsTheConnectionOfAServerThatFellOverAForm) {  // R-WIRE-10
    testing::Reply const fallen{.status = 500,
                                .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                                .body = "Internal Server Error"};
    fake->push(fallen);
    fake->push(fallen);
    Waiting waiting{*context};
    auto trying = order();
    trying.plain_500_ends = true;
    waiting.call.start(std::move(trying));
    clock->advance(1s);
    ASSERT_TRUE(waiting.error);
    auto settled = order();
    settled.max_retries = 0;
    waiting.call.start(std::move(settled));
    clock->advance(1s);
    EXPECT_TRUE(fake->sent().at(0).discarded);
    EXPECT_FALSE(fake->sent().at(1).discarded) << "a failure like any other";
}

TEST_F(HttpCallTest, LogsDeprecationNotesOfFinalAnswers) {  // R-RETRY-76
    Headers const note{{"x-deprecation-note", "use y"}, {"content-length", "1"}};
    fake->push({.headers = note});
    fake->push({.status = 404, .headers = note, .body = "{}"});
    Waiting waiting{*context};
    waiting.call.start(order("GET", "/a"));
    clock->run_ready();
    EXPECT_THAT(lines, ::testing::ElementsAre("warning: GET /a: deprecated: use y"));
    clock->advance(1h);
    waiting.call.start(order("GET", "/b"));
    clock->run_ready();
    EXPECT_THAT(lines, SizeIs(2));
}

TEST_F(HttpCallTest, ACredentialThatFailsEndsTheCall) {  // R-RETRY-77
    auto scripted = std::make_shared<ScriptedCredential>();
    scripted->now = Result<Credential>{
        ErrorDetails{.kind = ErrorKind::status, .message = "token: 401", .http_status = 401}};
    source = scripted;
    rebuild();
    Waiting waiting{*context};
    waiting.call.start(order());
    EXPECT_EQ(waiting.ends, 0) << "never from inside start";
    clock->advance(5min);
    ASSERT_TRUE(waiting.error);
    EXPECT_STREQ(waiting.error->what(), "token: 401");
    EXPECT_EQ(scripted->asked, 1);
    EXPECT_EQ(fake->sent_count(), 0U);
}

TEST_F(HttpCallTest, WaitsForACredential) {  // R-RETRY-77
    auto scripted = std::make_shared<ScriptedCredential>();
    source = scripted;
    rebuild();
    fake->push({.status = 503});
    fake->push({});
    Waiting waiting{*context};
    waiting.call.start(order());
    clock->advance(1min);
    EXPECT_EQ(fake->sent_count(), 0U);
    scripted->waiter->on_credential(std::make_shared<std::string const>("jwt-1"));
    scripted->now = Result<Credential>{std::make_shared<std::string const>("jwt-2")};
    clock->advance(1s);
    EXPECT_EQ(fake->sent().at(0).header("x-api-key"), "jwt-1");
    EXPECT_EQ(fake->sent().at(1).header("x-api-key"), "jwt-2") << "asked anew for each attempt";

    scripted->now.reset();
    waiting.call.start(order());
    waiting.call.cancel();
    EXPECT_EQ(scripted->waiter, nullptr);
}

TEST_F(HttpCallTest, CredentialsAreTheSameForTheSameAccount) {  // R-CONF-11
    EXPECT_EQ(FixedCredential{"tml-a"}.identity(), FixedCredential{"tml-a"}.identity());
    EXPECT_NE(FixedCredential{"tml-a"}.identity(), FixedCredential{"tml-b"}.identity());
    EXPECT_EQ(FixedCredential{""}.identity(), "");
}

TEST_F(HttpCallTest, ErrorsHoldNoSecretOfTheCall) {  // R-ERR-04, R-CONF-13
    fake->otherwise([](tinkxx::testing::SentRequest const& sent) {
        return Reply{
            .status = 400,
            .body = sent.header("x-api-key") + ' ' + sent.header("x-tinker-weights-access-token")};
    });
    Waiting waiting{*context};
    auto made = order();
    made.headers.add("X-Tinker-Weights-Access-Token", "weights-token");
    waiting.call.start(made);
    clock->run_ready();
    ASSERT_TRUE(waiting.error);
    EXPECT_THAT(waiting.error->what(), Not(HasSubstr("weights-token")));
    EXPECT_THAT(waiting.error->what(), Not(HasSubstr("tml-0123")));
    EXPECT_THAT(waiting.error->what(), HasSubstr("<redacted> <redacted>"));
}

TEST_F(HttpCallTest, CancelIsSilentInEveryState) {
    fake->on("POST", "/wait").hold();
    fake->otherwise([](auto const&) { return Reply{.status = 503}; });
    Waiting waiting{*context};
    waiting.call.start(order("POST", "/wait"));
    waiting.call.cancel();
    EXPECT_TRUE(fake->sent().at(0).cancelled);
    waiting.call.start(order());
    clock->run_ready();  // now it waits for its second attempt
    waiting.call.cancel();
    waiting.call.cancel();
    clock->advance(1h);
    EXPECT_EQ(waiting.ends, 0);
    EXPECT_EQ(fake->sent_count(), 2U);
    EXPECT_EQ(clock->pending_timers(), 0U);
    EXPECT_EQ(context->open_calls(), 0U);
}

TEST_F(HttpCallTest, MayBeStartedAgainFromItsEnd) {
    fake->push({.body = "one"});
    fake->push({.body = "two"});
    Waiting waiting{*context};
    waiting.then = [&] {
        if (waiting.ends == 1) waiting.call.start(order());
    };
    waiting.call.start(order());
    clock->run_ready();
    EXPECT_EQ(waiting.ends, 2);
    EXPECT_EQ(waiting.response->body, "two");
}

TEST_F(HttpCallTest, StreamsASuccessfulBodyInPieces) {
    fake->push({.status = 503, .body = "not this"});
    fake->push({.body = "abcdef", .pieces = 3});
    Waiting waiting{*context};
    auto made = order("GET");
    made.stream = true;
    waiting.on_piece = [&] {
        if (waiting.streamed == "ab") waiting.call.pause(true);
    };
    waiting.call.start(made);
    clock->advance(1min);
    EXPECT_EQ(waiting.streamed, "ab");
    EXPECT_EQ(waiting.ends, 0);
    waiting.call.pause(false);
    clock->run_ready();
    EXPECT_EQ(waiting.streamed, "abcdef");
    ASSERT_TRUE(waiting.response);
    EXPECT_EQ(waiting.response->body, "");
}

TEST_F(HttpCallTest, DoesNotRepeatAStreamThatBrokeOff) {
    fake->push({.body = "part", .failure = Failure{.kind = FailureKind::reset}});
    Waiting waiting{*context};
    auto made = order("GET");
    made.stream = true;
    waiting.call.start(made);
    clock->advance(1min);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->stopped(), RetryEnd::not_repeatable);
    EXPECT_EQ(fake->sent_count(), 1U);
}

TEST_F(HttpCallTest, MayBeDestroyedInsideAPiece) {
    fake->push({.body = "abcdef", .pieces = 3});
    auto waiting = std::make_unique<Waiting>(*context);
    auto made = order("GET");
    made.stream = true;
    waiting->on_piece = [&] { waiting.reset(); };
    waiting->call.start(made);
    clock->run_ready();
    EXPECT_EQ(waiting, nullptr);
    EXPECT_TRUE(fake->sent().at(0).cancelled);
}

TEST_F(HttpCallTest, DoesNotTrustTheContentLength) {
    fake->push({.headers = {{"content-length", "99999999999999"}}, .body = "small"});
    Waiting waiting{*context};
    waiting.call.start(order("GET"));
    clock->run_ready();
    ASSERT_TRUE(waiting.response);
    EXPECT_LE(waiting.response->body.capacity(), std::size_t{2} << 20U);
}

TEST_F(HttpCallTest, ClosingTheContextCancelsEveryCall) {
    fake->otherwise([](auto const&) { return std::nullopt; });
    Waiting one{*context};
    Waiting two{*context};
    one.call.start(order());
    two.call.start(order());
    context->close();
    EXPECT_EQ(one.error->kind(), ErrorKind::cancelled);
    EXPECT_EQ(two.error->kind(), ErrorKind::cancelled);
    EXPECT_EQ(fake->cancelled_count(), 2U);
    EXPECT_FALSE(context->usable());
    one.call.start(order());
    EXPECT_EQ(one.ends, 1);
    clock->run_ready();
    EXPECT_EQ(one.ends, 2);
}

TEST_F(HttpCallTest, EndsWithItsRuntime) {
    fake->otherwise([](auto const&) { return std::nullopt; });
    Waiting waiting{*context};
    waiting.call.start(order());
    runtime.shutdown();
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::cancelled);
}

TEST_F(HttpCallTest, TellsObserversWhatHappens) {  // R-EXT-30
    auto recorder = std::make_shared<Recorder>();
    observers = {recorder};
    rebuild();
    fake->push({.status = 503});
    fake->push({.status = 200});
    fake->push({.status = 404, .body = "{}"});
    fake->push(failing(FailureKind::invalid_request, Seen::no));
    fake->on("POST", "/held").hold();
    Waiting waiting{*context};
    auto made = order();
    made.metadata = {{"who", "request"}};
    made.purpose = Purpose::train;
    waiting.call.start(made);
    clock->advance(1s);
    EXPECT_THAT(recorder->seen, ::testing::ElementsAre("start", "retry 1", "stop 200 after 1"));
    EXPECT_EQ(recorder->last.method, "POST");
    EXPECT_EQ(recorder->last.path, "/x");
    EXPECT_EQ(recorder->last.purpose, Purpose::train);
    EXPECT_EQ(recorder->last.base_url, "http://host:8000/base");
    EXPECT_EQ(recorder->last.metadata, (Metadata{{"session", "s1"}, {"who", "request"}}));
    EXPECT_GE(recorder->last_duration, 375ms);

    recorder->seen.clear();
    waiting.call.start(order());
    clock->run_ready();
    waiting.call.start(order());
    clock->run_ready();
    waiting.call.start(order("POST", "/held"));
    waiting.call.cancel();
    clock->run_ready();
    EXPECT_THAT(recorder->seen,
                ::testing::ElementsAre("start", "stop 404 after 0", "start", "exception validation",
                                       "start", "exception cancelled"));
}

TEST_F(HttpCallTest, AnEarlierAnswerIsNotTakenForTheEnd) {  // R-EXT-30, R-RETRY-77
    auto recorder = std::make_shared<Recorder>();
    auto scripted = std::make_shared<ScriptedCredential>();
    scripted->now = Result<Credential>{std::make_shared<std::string const>("jwt-1")};
    observers = {recorder};
    source = scripted;
    rebuild();
    fake->push({.status = 503});
    Waiting waiting{*context};
    waiting.call.start(order());
    clock->run_ready();
    scripted->now = Result<Credential>{ErrorDetails{.kind = ErrorKind::connection}};
    clock->advance(1s);
    EXPECT_THAT(recorder->seen, ::testing::ElementsAre("start", "retry 1", "exception connection"));
}

TEST_F(HttpCallTest, SurvivesAnObserverThatThrows) {  // R-EXT-30
    auto thrower = std::make_shared<Recorder>();
    thrower->throw_at = 1;
    auto other = std::make_shared<Recorder>();
    observers = {thrower, other};
    rebuild();
    fake->push({});
    Waiting waiting{*context};
    waiting.call.start(order());
    clock->run_ready();
    EXPECT_TRUE(waiting.response);
    EXPECT_THAT(other->seen, SizeIs(2));
    ASSERT_THAT(lines, SizeIs(1));
    EXPECT_THAT(lines[0], HasSubstr("observer trouble"));
}

TEST_F(HttpCallTest, DumpsRequestsAndAnswersWithoutSecrets) {  // R-EXT-90, R-CONF-12
    dump = true;
    rebuild();
    fake->push({.headers = {{"content-type", "application/json"}},
                .body = R"({"echo":"tml-0123456789abcdef"})"});
    Waiting waiting{*context};
    auto made = order();
    made.common_headers = context->json_headers();
    made.body.tail = std::make_shared<std::string const>(R"({"prompt":[1,2]})");
    waiting.call.start(made);
    clock->run_ready();
    ASSERT_THAT(lines, SizeIs(2));
    EXPECT_THAT(lines[0], HasSubstr("POST /x > POST http://host:8000/base/x"));
    EXPECT_THAT(lines[0], HasSubstr("[X-API-Key: <redacted>]"));
    EXPECT_THAT(lines[0], HasSubstr(R"(body 16 bytes: {"prompt":[1,2]})"));
    EXPECT_THAT(lines[1], HasSubstr("POST /x < 200"));
    EXPECT_THAT(lines[1], HasSubstr(R"({"echo":"<redacted>"})"));
    for (auto const& line : lines) EXPECT_THAT(line, Not(HasSubstr("tml-0123")));
}

TEST(HttpCall, EqualSeedsGiveEqualKeysAndWaits) {  // R-CONV-02
    auto const run = [](std::uint64_t seed) {
        auto clock =
            std::make_shared<ManualClock>(tinkxx::testing::ManualClockOptions{.seed = seed});
        Runtime runtime{RuntimeOptions{.threads = 0, .scheduler = clock}};
        auto fake = std::make_shared<FakeTransport>(*clock);
        fake->push({.status = 503});
        ClientConfig config{{}, Endpoint::parse("http://h").value()};
        config.log = silent_log();
        auto context = std::make_shared<HttpContext>(
            std::make_shared<ClientConfig const>(std::move(config)), runtime.core(), fake,
            std::make_shared<FixedCredential>(""));
        Waiting waiting{*context};
        HttpOrder made;
        made.operation = {.method = "POST", .path = "/x"};
        made.url = "http://h/x";
        waiting.call.start(made);
        clock->run_ready();
        return std::pair{fake->sent().at(0).header("x-idempotency-key"),
                         *clock->next_due() - clock->now()};
    };
    EXPECT_EQ(run(1), run(1));
    EXPECT_NE(run(1).first, run(2).first);
    EXPECT_NE(run(1).second, run(2).second);
}

}  // namespace
}  // namespace tinkxx::service
