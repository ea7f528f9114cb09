#include "service/telemetry/telemetry_reporter.hpp"

#include <tinkxx/runtime.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/http/standard_headers.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx::service {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using tinkxx::testing::failing;
using tinkxx::testing::FakeTransport;
using tinkxx::testing::ManualClock;
using tinkxx::testing::Reply;

constexpr auto path = "/base/api/v1/telemetry";
constexpr auto uuid4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
constexpr auto secret = "tml-0123456789abcdef";

Error error_of(ErrorKind kind, std::string message, std::optional<int> status = {},
               std::string body = {}) {
    ErrorDetails details;
    details.kind = kind;
    details.message = std::move(message);
    details.http_status = status;
    details.body = std::move(body);
    return Error{std::move(details)};
}

struct TelemetryReporterTest : ::testing::Test {
    TelemetryReporterTest() {
        ClientConfig config{{}, Endpoint::parse("http://host:8000/base").value()};
        config.headers = standard_headers(parity_version);
        config.log_level = LogLevel::info;
        config.log = [this](LogLevel level, std::string_view line) {
            lines.push_back(std::string{to_string(level)} + ": " + std::string{line});
        };
        config.scrubber.add(secret);
        context = std::make_shared<HttpContext>(
            std::make_shared<ClientConfig const>(std::move(config)), runtime.core(), fake,
            std::make_shared<FixedCredential>(secret));
    }
    ~TelemetryReporterTest() override {
        reporter.reset();
        context->close();
    }

    TelemetryReporter& make(TelemetryOptions options = {.session_id = "S"}) {
        reporter = std::make_unique<TelemetryReporter>(*context, std::move(options));
        return *reporter;
    }
    /// A reporter whose first event is sent and out of the way.
    TelemetryReporter& started() {
        fake->on("POST", path).reply(accepted);
        auto& made = make();
        made.start();
        made.flush();
        clock->run_ready();
        return made;
    }

    /// The bodies sent, and the names of all events in them, in the order of sending.
    std::vector<json::object> bodies() const {
        std::vector<json::object> all;
        for (auto const& sent : fake->sent(path)) all.push_back(json::parse(sent.body).as_object());
        return all;
    }
    std::vector<json::object> events() const {
        std::vector<json::object> all;
        for (auto const& body : bodies()) {
            for (auto const& event : body.at("events").as_array()) all.push_back(event.as_object());
        }
        return all;
    }
    std::vector<std::string> kinds() const {
        std::vector<std::string> all;
        for (auto const& event : events()) {
            all.emplace_back(
                event.at(event.contains("event_name") ? "event_name" : "event").as_string());
        }
        return all;
    }
    std::vector<std::string> warnings() const {
        std::vector<std::string> found;
        for (auto const& line : lines) {
            if (line.starts_with("warning")) found.push_back(line);
        }
        return found;
    }

    Reply const accepted{.body = R"({"status": "accepted"})"};
    std::shared_ptr<ManualClock> clock{std::make_shared<ManualClock>()};
    Runtime runtime{RuntimeOptions{.threads = 0, .scheduler = clock}};
    std::shared_ptr<FakeTransport> fake{std::make_shared<FakeTransport>(*clock)};
    std::vector<std::string> lines{};
    std::shared_ptr<HttpContext> context{};
    std::unique_ptr<TelemetryReporter> reporter{};
};

TEST_F(TelemetryReporterTest, SendsTheBodyOfTheService) {  // R-TEL-01, R-TEL-02, R-TEL-03
    fake->on("POST", path).always(accepted);
    clock->set_wall(WallTime{1'767'323'045s} + 678'901us);
    auto& telemetry = make();
    telemetry.start();
    telemetry.event("user_step", Severity::debug, {{"n", 1}});
    clock->advance(10s);

    ASSERT_THAT(bodies(), SizeIs(1));
    auto const body = bodies()[0];
    EXPECT_EQ(body.at("platform"), "Linux");
    EXPECT_EQ(body.at("sdk_version"), "0.36.0");
    EXPECT_EQ(body.at("session_id"), "S");
    EXPECT_THAT(std::string{body.at("process_uuid").as_string()}, MatchesRegex(uuid4));
    auto const& first = body.at("events").at(0).as_object();
    EXPECT_EQ(first.at("event"), "SESSION_START");
    EXPECT_EQ(first.at("severity"), "INFO");
    EXPECT_EQ(first.at("event_session_index"), 0);
    EXPECT_EQ(first.at("timestamp"), "2026-01-02T03:04:05.678901Z");
    EXPECT_THAT(std::string{first.at("event_id").as_string()}, MatchesRegex(uuid4));
    auto const& second = body.at("events").at(1).as_object();
    EXPECT_EQ(second.at("event"), "GENERIC_EVENT");
    EXPECT_EQ(second.at("event_name"), "user_step");
    EXPECT_EQ(second.at("event_data"), (json::object{{"n", 1}}));
    EXPECT_EQ(second.at("severity"), "DEBUG");
    EXPECT_EQ(second.at("event_session_index"), 1);
    EXPECT_NE(second.at("event_id"), first.at("event_id"));

    EXPECT_EQ(telemetry.queue().counts().accepted, 2U);
    EXPECT_THAT(lines, IsEmpty());
}

TEST_F(TelemetryReporterTest, SendsOnItsOwnQuotaWithinFiveSeconds) {  // R-TEL-22, R-RETRY-04
    fake->on("POST", path).always(accepted);
    make().start();
    reporter->flush();
    clock->run_ready();
    auto const sent = fake->sent(path).at(0);
    EXPECT_EQ(sent.purpose, Purpose::telemetry);
    EXPECT_EQ(sent.timeouts,
              (Timeouts{.connect = 5s, .read = 5s, .write = 5s, .pool = 5s, .total = 0s}));
    EXPECT_EQ(sent.header("x-stainless-read-timeout"), "5");
    EXPECT_EQ(sent.header("content-type"), "application/json");
    EXPECT_EQ(sent.header("x-api-key"), secret);
}

TEST_F(TelemetryReporterTest, FlushesTenSecondsAfterTheFirstEvent) {  // R-TEL-20
    fake->on("POST", path).always(accepted);
    make().start();
    clock->advance(3s);
    reporter->event("a", Severity::info, {});
    clock->advance(7s - 1ns);
    EXPECT_THAT(bodies(), IsEmpty());
    clock->advance(1ns);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START", "a"));
    clock->advance(1h);
    EXPECT_THAT(bodies(), SizeIs(1)) << "nothing new, nothing sent";
    reporter->event("b", Severity::info, {});
    clock->advance(10s);
    EXPECT_THAT(bodies(), SizeIs(2));
}

TEST_F(TelemetryReporterTest, TakesAnotherInterval) {  // R-TEST-02
    fake->on("POST", path).always(accepted);
    make({.session_id = "S", .rules = {.flush_interval = 20ms}}).start();
    clock->advance(20ms);
    EXPECT_THAT(bodies(), SizeIs(1));
}

TEST_F(TelemetryReporterTest, SendsOnceAHundredEventsWait) {  // R-TEL-20
    fake->on("POST", path).always(accepted);
    auto& telemetry = make();
    for (int i = 0; i < 99; ++i) telemetry.event("e", Severity::info, {});
    clock->run_ready();
    EXPECT_THAT(bodies(), IsEmpty());
    telemetry.event("e", Severity::info, {});
    clock->run_ready();
    EXPECT_THAT(events(), SizeIs(100));
}

TEST_F(TelemetryReporterTest, EmptiesItsQueueInBatchesOfAHundred) {  // R-TEL-20, R-TEL-21
    fake->on("POST", path).hold();
    fake->on("POST", path).always(accepted);
    auto& telemetry = make();
    for (int i = 0; i < 350; ++i) telemetry.event("e", Severity::info, {});
    clock->run_ready();
    EXPECT_THAT(bodies(), SizeIs(1)) << "one at a time";
    EXPECT_EQ(telemetry.queue().waiting().size(), 250U);
    fake->release_next(accepted);
    clock->run_ready();
    ASSERT_THAT(bodies(), SizeIs(4));
    EXPECT_EQ(bodies()[3].at("events").as_array().size(), 50U);
    std::int64_t index = 0;
    for (auto const& event : events()) EXPECT_EQ(event.at("event_session_index"), index++);
}

TEST_F(TelemetryReporterTest, SaysWhetherAnEventWasLogged) {  // R-TEL-20
    fake->on("POST", path).hold();
    auto& telemetry = make({.session_id = "S", .rules = {.most_queued = 1, .most_in_batch = 1}});
    EXPECT_TRUE(telemetry.log("sent", Severity::info, {}));
    EXPECT_TRUE(telemetry.log("waits", Severity::info, {}));
    EXPECT_FALSE(telemetry.log("dropped", Severity::info, {}));
    clock->run_ready();
    EXPECT_THAT(warnings(), ElementsAre(HasSubstr("1 event dropped")));
}

TEST_F(TelemetryReporterTest, DropsAnErrorTogetherWithItsSessionEnd) {  // R-TEL-20, R-TEL-31
    fake->on("POST", path).hold();
    fake->on("POST", path).always(accepted);
    auto& telemetry = make({.session_id = "S", .rules = {.most_queued = 2, .most_in_batch = 1}});
    telemetry.event("sent", Severity::info, {});
    telemetry.event("waits", Severity::info, {});
    telemetry.capture(error_of(ErrorKind::connection, "no room for two"));
    EXPECT_FALSE(telemetry.session_ended());
    fake->release_next(accepted);
    clock->run_ready();
    telemetry.capture(error_of(ErrorKind::connection, "room"));
    clock->run_ready();
    EXPECT_TRUE(telemetry.session_ended()) << "told with the first that fits";
    EXPECT_THAT(kinds(), ElementsAre("sent", "waits", "UNHANDLED_EXCEPTION", "SESSION_END"));
}

TEST_F(TelemetryReporterTest, SendsARefusedBatchAgainEverySecond) {  // R-TEL-22
    fake->on("POST", path).reply({.status = 404, .body = R"({"detail": "Not Found"})"}, 3);
    fake->on("POST", path).always(accepted);
    make().start();
    reporter->flush();
    clock->run_ready();
    EXPECT_THAT(bodies(), SizeIs(1));
    clock->advance(1s - 1ns);
    EXPECT_THAT(bodies(), SizeIs(1));
    clock->advance(1ns);
    EXPECT_THAT(bodies(), SizeIs(2));
    clock->advance(2s);
    EXPECT_THAT(bodies(), SizeIs(4));
    EXPECT_EQ(bodies()[3], bodies()[0]) << "the same batch, ids and all";
    clock->advance(1h);
    EXPECT_THAT(bodies(), SizeIs(4));
    EXPECT_EQ(reporter->queue().counts().failures, 3U);
    EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("404"), HasSubstr("again in 1 s"))));
}

TEST_F(TelemetryReporterTest, LeavesPassingTroubleToHttpRetriesFirst) {  // R-TEL-22, R-RETRY-04
    fake->on("POST", path).always({.status = 503});
    make().start();
    reporter->flush();
    while (reporter->queue().counts().failures == 0) clock->advance(100ms);
    EXPECT_THAT(bodies(), SizeIs(11)) << "one call with ten retries";
    clock->advance(1s);
    EXPECT_THAT(bodies(), SizeIs(12));
}

TEST_F(TelemetryReporterTest, DropsWhatCannotBeSentAndGoesOn) {  // R-TEL-21, R-TEL-22
    fake->on("POST", path).reply(failing(FailureKind::invalid_request, Seen::no));
    fake->on("POST", path).always(accepted);
    make().start();
    reporter->flush();
    clock->run_ready();
    EXPECT_EQ(reporter->queue().counts().flushed, 1U);
    EXPECT_EQ(reporter->queue().counts().accepted, 0U);
    EXPECT_THAT(warnings(), ElementsAre(HasSubstr("1 event dropped")));
    reporter->event("next", Severity::info, {});
    clock->advance(10s);
    EXPECT_EQ(reporter->queue().counts().accepted, 1U);
}

TEST_F(TelemetryReporterTest, IsNeverMoreThanAQueueToThoseWhoReport) {  // R-TEL-23
    fake->on("POST", path).hold();
    auto& telemetry = make();
    for (int i = 0; i < 50'000; ++i) telemetry.event("flood", Severity::error, {});
    EXPECT_EQ(telemetry.queue().waiting().size(), 10'000U);
    telemetry.capture(error_of(ErrorKind::connection, "in vain"));
    clock->run_ready();
    EXPECT_EQ(fake->sent_count(), 1U);
    EXPECT_THAT(warnings(), SizeIs(1));
}

TEST_F(TelemetryReporterTest, OutlivesABrokenProcessNumber) {  // R-TEL-23
    int asked = 0;
    auto& telemetry = make({.session_id = "S", .pid = [&asked]() -> std::int64_t {
                                if (++asked > 1) throw std::runtime_error{"no number"};
                                return 1;
                            }});
    EXPECT_NO_THROW(telemetry.event("e", Severity::info, {}));
    EXPECT_NO_THROW(telemetry.capture(error_of(ErrorKind::connection, "x")));
    EXPECT_NO_THROW(telemetry.start());
    clock->run_ready();
    EXPECT_THAT(warnings(), Contains(HasSubstr("no number")));
}

TEST_F(TelemetryReporterTest, ReportsErrorsOfTheUserByName) {  // R-TEL-30
    auto& telemetry = started();
    fake->on("POST", path).always(accepted);
    ErrorDetails outer;
    outer.kind = ErrorKind::connection;
    outer.message = "outer";
    outer.cause = std::make_shared<Error const>(
        error_of(ErrorKind::status, "POST /x: 400: bad prompt", 400, R"({"detail":"bad prompt"})"));
    telemetry.note(Error{outer});
    clock->run_ready();
    ASSERT_THAT(kinds(), ElementsAre("SESSION_START", "user_error")) << "sent at once";
    auto const event = events()[1];
    EXPECT_EQ(event.at("event"), "GENERIC_EVENT");
    EXPECT_EQ(event.at("severity"), "WARNING");
    EXPECT_EQ(event.at("event_data"), (json::object{{"error_type", "BadRequestError"},
                                                    {"message", "POST /x: 400: bad prompt"},
                                                    {"status_code", 400},
                                                    {"body", {{"detail", "bad prompt"}}}}));
    EXPECT_FALSE(telemetry.session_ended());
}

TEST_F(TelemetryReporterTest, ReportsABodyThatIsNoJsonAsText) {  // R-TEL-30
    auto& telemetry = started();
    fake->on("POST", path).always(accepted);
    telemetry.note(error_of(ErrorKind::status, "m", 422, "<html>\xff"));
    clock->run_ready();
    EXPECT_EQ(events().at(1).at("event_data").at("body"), "<html>\xef\xbf\xbd");
}

TEST_F(TelemetryReporterTest, ReportsOtherErrorsAsUnhandled) {  // R-TEL-30
    auto& telemetry = started();
    fake->on("POST", path).always(accepted);
    ErrorDetails outer;
    outer.kind = ErrorKind::timeout;
    outer.message = "gave up";
    outer.cause = std::make_shared<Error const>(error_of(ErrorKind::status, "broken", 500));
    telemetry.note(Error{outer});
    telemetry.note(error_of(ErrorKind::connection, "alone"));
    clock->run_ready();
    ASSERT_THAT(kinds(),
                ElementsAre("SESSION_START", "UNHANDLED_EXCEPTION", "UNHANDLED_EXCEPTION"));
    auto const event = events()[1];
    EXPECT_EQ(event.at("severity"), "ERROR");
    EXPECT_EQ(event.at("error_type"), "APITimeoutError");
    EXPECT_EQ(event.at("error_message"), "gave up");
    EXPECT_EQ(event.at("traceback"), "caused by InternalServerError: broken");
    EXPECT_FALSE(events()[2].contains("traceback"));
}

TEST_F(TelemetryReporterTest, KeepsSecretsAndNovelsToItself) {  // R-TEL-30, R-ERR-04
    auto& telemetry = started();
    fake->on("POST", path).always(accepted);
    telemetry.note(error_of(ErrorKind::callback, std::string{"mine: "} + secret));
    telemetry.note(error_of(ErrorKind::status, secret, 400, std::string{"echo "} + secret));
    telemetry.note(error_of(ErrorKind::callback, std::string(1'000'000, 'x')));
    clock->run_ready();
    for (auto const& sent : fake->sent(path)) {
        EXPECT_THAT(sent.body, Not(HasSubstr(secret)));
        EXPECT_LT(sent.body.size(), 20'000U);
    }
    EXPECT_EQ(events().at(1).at("error_message"), "mine: <redacted>");
}

TEST_F(TelemetryReporterTest, EndsTheSessionWithTheFirstFatalError) {  // R-TEL-31, R-TEL-03
    auto& telemetry = started();
    fake->on("POST", path).always(accepted);
    clock->advance(1h + 2min + 3s + 4us);
    telemetry.capture(error_of(ErrorKind::connection, "first"));
    clock->run_ready();
    ASSERT_THAT(kinds(), ElementsAre("SESSION_START", "UNHANDLED_EXCEPTION", "SESSION_END"));
    EXPECT_THAT(bodies(), SizeIs(2)) << "together, and at once";
    EXPECT_EQ(events()[2].at("duration"), "1:02:03.000004");
    EXPECT_EQ(events()[2].at("severity"), "INFO");

    telemetry.capture(error_of(ErrorKind::connection, "second"));
    clock->run_ready();
    bool drained = false;
    telemetry.close(clock->now() + close_drain, [&](bool) { drained = true; });
    clock->run_ready();
    EXPECT_TRUE(drained);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START", "UNHANDLED_EXCEPTION", "SESSION_END",
                                     "UNHANDLED_EXCEPTION"));
}

TEST_F(TelemetryReporterTest, NamesTheSessionOnceAFatalErrorIsReported) {  // R-TEL-31
    auto& telemetry = started();
    fake->on("POST", path).hold();
    telemetry.capture(error_of(ErrorKind::connection, "x"));
    telemetry.capture(error_of(ErrorKind::connection, "y"));
    clock->advance(4s);
    EXPECT_THAT(lines, IsEmpty());
    fake->on("POST", path).always(accepted);
    fake->release_next(accepted);
    clock->run_ready();
    EXPECT_THAT(lines, ElementsAre(AllOf(StartsWith("info"), HasSubstr("session S"))));
}

TEST_F(TelemetryReporterTest, NamesTheSessionAfterThirtySecondsAtTheLatest) {  // R-TEL-31
    auto& telemetry = started();
    fake->on("POST", path).always({.status = 404});
    telemetry.capture(error_of(ErrorKind::connection, "x"));
    auto const named = [&] {
        clock->run_ready();
        return std::ranges::any_of(lines, [](auto const& l) { return l.starts_with("info"); });
    };
    clock->advance(30s - 1ns);
    EXPECT_FALSE(named());
    clock->advance(1ns);
    EXPECT_TRUE(named());
}

TEST_F(TelemetryReporterTest, LeavesCancelledCallsOut) {  // R-TEL-30
    auto& telemetry = started();
    telemetry.capture(error_of(ErrorKind::cancelled, "x"));
    telemetry.note(error_of(ErrorKind::cancelled, "x"));
    clock->advance(1h);
    EXPECT_THAT(bodies(), SizeIs(1));
    EXPECT_FALSE(telemetry.session_ended());
}

TEST_F(TelemetryReporterTest, HasNoStartAndEndWithoutASession) {  // R-TEL-40, R-TEL-31
    fake->on("POST", path).always(accepted);
    auto& telemetry = make(TelemetryOptions{});
    telemetry.start();
    telemetry.capture(error_of(ErrorKind::connection, "x"));
    clock->run_ready();
    telemetry.close(clock->now() + close_drain, {});
    clock->run_ready();
    EXPECT_THAT(kinds(), ElementsAre("UNHANDLED_EXCEPTION"));
    EXPECT_THAT(std::string{bodies()[0].at("session_id").as_string()},
                MatchesRegex(std::string{"sessionless-"} + uuid4));
    EXPECT_EQ(telemetry.session_id(), bodies()[0].at("session_id").as_string());
}

TEST_F(TelemetryReporterTest, StartsASessionOnce) {  // R-TEL-40
    auto& telemetry = started();
    telemetry.start();
    clock->advance(1h);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START"));
}

TEST_F(TelemetryReporterTest, GivesAChildProcessItsOwnIds) {  // R-TEL-01
    fake->on("POST", path).always(accepted);
    std::int64_t pid = 100;
    auto& telemetry = make({.session_id = "S", .pid = [&pid] { return pid; }});
    telemetry.event("parent", Severity::info, {});
    telemetry.flush();
    clock->run_ready();
    pid = 101;
    telemetry.event("child", Severity::info, {});
    telemetry.flush();
    clock->run_ready();
    ASSERT_THAT(bodies(), SizeIs(2));
    EXPECT_NE(bodies()[0].at("process_uuid"), bodies()[1].at("process_uuid"));
    pid = 100;
    telemetry.event("parent", Severity::info, {});
    telemetry.flush();
    clock->run_ready();
    EXPECT_EQ(bodies()[2].at("process_uuid"), bodies()[0].at("process_uuid"));
}

TEST_F(TelemetryReporterTest, DrawsOtherEventIdsInAChildProcess) {  // R-TEL-02
    fake->on("POST", path).always(accepted);
    std::set<std::string> ids;
    for (std::int64_t const child : {100, 101}) {
        std::int64_t pid = 100;
        Runtime other{RuntimeOptions{.threads = 0,
                                     .scheduler = std::make_shared<ManualClock>(
                                         tinkxx::testing::ManualClockOptions{.seed = 9})}};
        ClientConfig config{{}, Endpoint::parse("http://host").value()};
        auto const its_context = std::make_shared<HttpContext>(
            std::make_shared<ClientConfig const>(std::move(config)), other.core(), fake,
            std::make_shared<FixedCredential>(""));
        {
            TelemetryReporter telemetry{*its_context,
                                        {.session_id = "S", .pid = [&pid] { return pid; }}};
            pid = child;
            telemetry.event("e", Severity::info, {});
            ids.insert(telemetry.queue().waiting().front().event_id);
        }
        its_context->close();
    }
    EXPECT_THAT(ids, SizeIs(2));
}

TEST_F(TelemetryReporterTest, TellsWhenAllThatWasQueuedIsSent) {  // R-TEL-20, R-TEL-31
    fake->on("POST", path).hold();
    auto& telemetry = make();
    telemetry.event("before", Severity::info, {});
    std::vector<bool> told;
    telemetry.flush_then(clock->now() + 30s, [&](bool drained) { told.push_back(drained); });
    telemetry.event("after", Severity::info, {});
    EXPECT_EQ(telemetry.pending_drains(), 1U);
    clock->advance(1s);
    EXPECT_THAT(told, IsEmpty());
    fake->on("POST", path).hold();
    fake->release_next(accepted);
    clock->run_ready();
    EXPECT_THAT(told, ElementsAre(true)) << "what came later is not waited for";
    EXPECT_EQ(telemetry.pending_drains(), 0U);
}

TEST_F(TelemetryReporterTest, TellsAtTheDeadlineWhatIsNotSent) {  // R-TEL-20, R-TEL-31
    fake->on("POST", path).always({.status = 404});
    auto& telemetry = make();
    telemetry.event("e", Severity::info, {});
    std::vector<bool> told;
    telemetry.flush_then(clock->now() + 30s, [&](bool drained) { told.push_back(drained); });
    telemetry.flush_then(clock->now() + 10s, [&](bool drained) { told.push_back(drained); });
    clock->advance(10s - 1ns);
    EXPECT_THAT(told, IsEmpty());
    clock->advance(1ns);
    EXPECT_THAT(told, ElementsAre(false));
    clock->advance(20s);
    EXPECT_THAT(told, ElementsAre(false, false));
    EXPECT_FALSE(telemetry.queue().stopped()) << "it goes on trying";
}

TEST_F(TelemetryReporterTest, TellsAtOnceWhenNothingIsQueuedButNeverInside) {  // R-TEL-20
    auto& telemetry = make();
    bool told = false;
    telemetry.flush_then(clock->now() + 30s, [&](bool drained) { told = drained; });
    EXPECT_FALSE(told);
    clock->run_ready();
    EXPECT_TRUE(told);
}

TEST_F(TelemetryReporterTest, CountsWhatCouldNotBeSentAsFlushed) {  // R-TEL-21
    fake->on("POST", path).always(failing(FailureKind::invalid_request, Seen::no));
    auto& telemetry = make();
    telemetry.event("e", Severity::info, {});
    bool told = false;
    telemetry.flush_then(clock->now() + 30s, [&](bool drained) { told = drained; });
    clock->run_ready();
    EXPECT_TRUE(told);
}

TEST_F(TelemetryReporterTest, SaysGoodbyeWhenItCloses) {  // R-TEL-41, R-TEL-43
    auto& telemetry = started();
    fake->on("POST", path).always(accepted);
    telemetry.event("last", Severity::info, {});
    bool told = false;
    telemetry.close(clock->now() + close_drain, [&](bool drained) { told = drained; });
    clock->run_ready();
    EXPECT_TRUE(told);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START", "last", "SESSION_END"));
    EXPECT_TRUE(telemetry.queue().stopped());
    telemetry.event("too late", Severity::info, {});
    telemetry.capture(error_of(ErrorKind::connection, "too late"));
    clock->advance(1h);
    EXPECT_THAT(kinds(), SizeIs(3));
    EXPECT_THAT(warnings(), IsEmpty());
    EXPECT_EQ(clock->pending_timers(), 0U);
}

TEST_F(TelemetryReporterTest, ClosesWithinItsBound) {  // R-TEL-41, R-TEL-43
    auto& telemetry = started();
    fake->on("POST", path).hold();
    bool told = false;
    telemetry.close(clock->now() + close_drain, [&](bool drained) {
        told = true;
        EXPECT_FALSE(drained);
    });
    clock->advance(5s - 1ns);
    EXPECT_FALSE(told);
    clock->advance(1ns);
    EXPECT_TRUE(told);
    EXPECT_EQ(fake->open_count(), 0U) << "what was under way is cancelled";
    EXPECT_THAT(warnings(), ElementsAre(HasSubstr("closed before 1 of its events")));
    clock->advance(1h);
    EXPECT_THAT(bodies(), SizeIs(2));
}

TEST_F(TelemetryReporterTest, ClosesTwiceAsIfOnce) {  // R-TEL-41
    auto& telemetry = started();
    fake->on("POST", path).always(accepted);
    int told = 0;
    telemetry.close(clock->now() + close_drain, [&](bool) { ++told; });
    telemetry.close(clock->now() + close_drain, [&](bool) { ++told; });
    clock->run_ready();
    telemetry.close(clock->now() + close_drain, [&](bool) { ++told; });
    clock->run_ready();
    EXPECT_EQ(told, 3);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START", "SESSION_END"));
}

TEST_F(TelemetryReporterTest, MayBeDestroyedByWhoeverWaits) {  // R-TEL-41
    started();
    fake->on("POST", path).always(accepted);
    int told = 0;
    reporter->capture(error_of(ErrorKind::connection, "x"));
    reporter->close(clock->now() + close_drain, [&](bool) {
        ++told;
        reporter.reset();
    });
    reporter->close(clock->now() + close_drain, [&](bool) { ++told; });
    clock->run_ready();
    EXPECT_EQ(told, 1) << "the other went with the reporter";
    EXPECT_FALSE(reporter);
}

TEST_F(TelemetryReporterTest, LeavesNothingBehindWhenDestroyed) {  // R-TEL-41
    fake->on("POST", path).hold();
    make().start();
    reporter->flush_then(clock->now() + 30s, [](bool) { FAIL(); });
    clock->run_ready();
    EXPECT_EQ(fake->open_count(), 1U);
    reporter.reset();
    EXPECT_EQ(fake->open_count(), 0U);
    clock->advance(1h);
    EXPECT_EQ(clock->pending_timers(), 0U);
}

TEST_F(TelemetryReporterTest, StopsWhenItsClientIsClosed) {  // R-TEL-41
    fake->on("POST", path).hold();
    make().start();
    std::vector<bool> told;
    reporter->flush_then(clock->now() + 30s, [&](bool drained) { told.push_back(drained); });
    clock->run_ready();
    context->close();
    clock->run_ready();
    EXPECT_TRUE(reporter->queue().stopped());
    EXPECT_THAT(told, ElementsAre(false));
    EXPECT_NO_THROW(reporter->event("late", Severity::info, {}));
    clock->advance(1h);
    EXPECT_THAT(bodies(), SizeIs(1));
}

TEST_F(TelemetryReporterTest, StopsWhenTheRuntimeShutsDown) {  // R-TEL-23
    fake->on("POST", path).hold();
    make().start();
    reporter->flush_then(clock->now() + 30s, [](bool) {});
    clock->run_ready();
    runtime.shutdown();
    EXPECT_TRUE(reporter->queue().stopped());
    EXPECT_NO_THROW(reporter->capture(error_of(ErrorKind::connection, "late")));
}

TEST_F(TelemetryReporterTest, ShowsWhatItHolds) {  // R-TEST-01
    fake->on("POST", path).hold();
    auto& telemetry = make();
    telemetry.start();
    telemetry.flush();
    telemetry.event("a", Severity::info, {});
    EXPECT_EQ(telemetry.queue().batch().size(), 1U);
    EXPECT_EQ(telemetry.queue().waiting().size(), 1U);
    EXPECT_TRUE(telemetry.queue().sending());
    EXPECT_EQ(telemetry.next_index(), 2);
    EXPECT_EQ(telemetry.queue().counts(), (TelemetryCounts{.logged = 2}));
}

}  // namespace
}  // namespace tinkxx::service
