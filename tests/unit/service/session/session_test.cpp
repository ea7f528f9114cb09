#include "service/session/session.hpp"

#include "service/auth/process_runner.hpp"
#include "unit/service/session/session_fixture.hpp"
#include "wire/json/base64.hpp"

#include <boost/json/parse.hpp>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using tinkxx::testing::SentRequest;

constexpr auto config_path = "/api/v1/client/config";
constexpr auto dynamic_path = "/api/v1/client/dynamic_config";
constexpr auto session_path = "/api/v1/create_session";
constexpr auto token_path = "/api/v1/auth/token";
constexpr auto heartbeat_path = "/api/v1/session_heartbeat";
constexpr auto finish_path = "/api/v1/sessions/s-1/finish";

struct Waiter final : ReadyWaiter {
    void on_ready(Result<void> got) override {
        ++told;
        outcome = got;
        if (then) then();
    }
    [[nodiscard]] bool succeeded() const { return outcome && outcome->has_value(); }
    [[nodiscard]] Error error() const {
        return outcome && !*outcome ? outcome->error() : Error{{.message = "no error"}};
    }
    int told{0};
    std::optional<Result<void>> outcome{};
    std::function<void()> then{};
};

struct Closed {
    Session::Done done() {
        return [this](Result<void> got) {
            ++told;
            outcome = got;
        };
    }
    int told{0};
    std::optional<Result<void>> outcome{};
};

/// Commands that print what the test says.
struct EchoRunner final : ProcessRunner {
    explicit EchoRunner(Scheduler& loop) : scheduler{&loop} {}
    std::uint64_t start(std::string const& command, ProcessListener& listener) override {
        started.push_back(command);
        scheduler->post([this, &listener] { listener.on_process_end({.output = output}); });
        return started.size();
    }
    void kill(std::uint64_t /*run*/) noexcept override {}
    Scheduler* scheduler;
    std::string output{"tml-from-cmd"};
    std::vector<std::string> started{};
};

struct Part final : SessionPart {
    void on_session_ready() override { seen.emplace_back("ready"); }
    void on_session_closing(bool finished) override {
        seen.emplace_back(finished ? "closing, finished" : "closing");
        if (then) then();
    }
    void drain(TimePoint until, std::function<void()> done) override {
        seen.emplace_back("drain");
        deadline = until;
        drained = std::move(done);
        if (at_once) drained();
    }
    std::vector<std::string> seen{};
    TimePoint deadline{};
    std::function<void()> drained{};
    std::function<void()> then{};
    bool at_once{true};
};

struct SessionTest : SessionFixture {
    SessionTest() { config.sdk_version = "0.36.0"; }
    ~SessionTest() override {
        for (auto const& one : made) one->close({}, {});
        clock->advance(1min);
    }

    std::shared_ptr<Session> session(SessionKind kind = SessionKind::session,
                                     std::optional<SessionSnapshot> snapshot = {}) {
        made.push_back(std::make_shared<Session>(std::make_shared<ClientConfig const>(config), kind,
                                                 runtime.core(), fake, std::move(snapshot),
                                                 runner));
        return made.back();
    }
    /// A server that answers everything.
    void serve(std::string const& flags = "{}", std::string const& dynamic = "{}") {
        fake->on("POST", config_path).always({.body = flags});
        fake->on("POST", dynamic_path).always({.body = dynamic});
        fake->on("POST", session_path).always({.body = R"({"session_id":"s-1"})"});
        fake->on("POST", heartbeat_path).always({.body = "{}"});
        fake->on("POST", token_path).always({.body = R"({"jwt":")" + jwt(1000s) + R"("})"});
        fake->on("POST", finish_path).always({.status = 204});
    }
    std::shared_ptr<Session> ready(std::string const& flags = "{}") {
        serve(flags);
        auto one = session();
        Waiter waiter;
        one->when_ready(waiter);
        clock->run_ready();
        EXPECT_TRUE(waiter.succeeded()) << waiter.error().what();
        return one;
    }
    [[nodiscard]] std::string jwt(std::chrono::seconds left) const {
        auto const end = std::chrono::duration_cast<std::chrono::seconds>(
            (clock->wall() + left).time_since_epoch());
        return "eyJhIjoxfQ." +
               wire::base64url(R"({"sub":"u-1","exp":)" + std::to_string(end.count()) + "}") +
               ".c2ln";
    }
    [[nodiscard]] std::vector<std::string> paths() const {
        std::vector<std::string> all;
        for (auto const& request : fake->sent()) all.push_back(request.path);
        return all;
    }

    ClientConfig config{client_config()};
    std::shared_ptr<EchoRunner> runner{std::make_shared<EchoRunner>(*clock)};
    std::vector<std::shared_ptr<Session>> made{};
};

TEST_F(SessionTest, DoesNothingUntilItIsStarted) {  // R-CONF-40
    auto const one = session();
    clock->advance(1h);
    EXPECT_EQ(fake->sent_count(), 0U);
    EXPECT_EQ(one->standing(), "not started");
    EXPECT_FALSE(one->ready());
}

TEST_F(SessionTest, StartsInOrder) {  // R-CONF-41, R-CONF-20, R-CONF-30, R-SESS-01
    config.tags = {"exp1"};
    config.user_metadata = {{"owner", "ada"}};
    config.project_id = "p-1";
    config.display_name = "nightly";
    auto const one = ready();
    EXPECT_THAT(paths(), ElementsAre(config_path, dynamic_path, session_path));
    auto const sent = fake->sent();
    EXPECT_EQ(sent[0].body, R"({"sdk_version":"0.36.0"})");
    EXPECT_EQ(sent[0].header("x-api-key"), test_key);
    EXPECT_EQ(sent[0].header("x-stainless-read-timeout"), "60");
    EXPECT_EQ(sent[0].purpose, Purpose::auth);
    EXPECT_EQ(sent[1].header("x-stainless-read-timeout"), "10");
    EXPECT_EQ(sent[1].timeouts.connect, 10s);
    EXPECT_EQ(boost::json::parse(sent[2].body),
              boost::json::parse(R"({"tags":["exp1"],"user_metadata":{"owner":"ada"},
                  "sdk_version":"0.36.0","project_id":"p-1","display_name":"nightly",
                  "type":"create_session"})"));
    EXPECT_EQ(one->session_id(), "s-1");
    EXPECT_TRUE(one->ready());
    EXPECT_EQ(one->standing(), "");
}

TEST_F(SessionTest, WithoutASessionItStopsBeforeOneAndDoesNotRefresh) {  // R-CONF-41, R-CONF-31
    serve();
    auto const one = session(SessionKind::sessionless);
    one->start();
    clock->run_ready();
    EXPECT_TRUE(one->ready());
    EXPECT_EQ(one->session_id(), "");
    clock->advance(1h);
    EXPECT_THAT(paths(), ElementsAre(config_path, dynamic_path));
}

TEST_F(SessionTest, TellsAllWhoWait) {  // R-CONF-40
    serve();
    auto const one = session();
    Waiter first;
    Waiter second;
    Waiter gone;
    one->when_ready(first);
    one->when_ready(second);
    one->when_ready(gone);
    one->forget(gone);
    one->forget(gone);
    EXPECT_EQ(first.told, 0);
    clock->run_ready();
    EXPECT_TRUE(first.succeeded());
    EXPECT_TRUE(second.succeeded());
    EXPECT_EQ(gone.told, 0);
    Waiter late;
    one->when_ready(late);
    EXPECT_EQ(late.told, 0) << "never inside the call";
    clock->run_ready();
    EXPECT_TRUE(late.succeeded());
    EXPECT_THAT(fake->sent(config_path), SizeIs(1)) << "built once";
}

TEST_F(SessionTest, AFailedStartFailsAllWhoWaitAndIsTriedAgain) {  // R-CONF-20
    fake->on("POST", config_path).reply({.status = 403, .body = "no"});
    serve();
    auto const one = session();
    Waiter first;
    Waiter second;
    one->when_ready(first);
    one->when_ready(second);
    Waiter again;
    first.then = [&] { one->when_ready(again); };
    clock->run_ready();
    EXPECT_EQ(first.error().http_status(), 403);
    EXPECT_EQ(second.error().http_status(), 403);
    EXPECT_TRUE(again.succeeded()) << "tried anew";
    EXPECT_EQ(again.told, 1);
}

TEST_F(SessionTest, ASecondTryGoesOnWhereTheFirstFailed) {  // R-CONF-20
    fake->on("POST", session_path).reply({.status = 403, .body = "no project"});
    serve();
    auto const one = session();
    Waiter waiter;
    one->when_ready(waiter);
    clock->run_ready();
    EXPECT_EQ(waiter.error().http_status(), 403);
    one->when_ready(waiter);
    clock->run_ready();
    EXPECT_TRUE(waiter.succeeded());
    EXPECT_THAT(paths(), ElementsAre(config_path, dynamic_path, session_path, session_path));
}

TEST_F(SessionTest, ConfigsAreFetchedInTheSubmitLoop) {        // R-CONF-20, R-CONF-30
    fake->on("POST", config_path).reply({.status = 503}, 11);  // all HTTP attempts of one round
    fake->on("POST", dynamic_path).reply({.status = 503}, 2);
    serve();
    auto const one = session();
    one->start();
    clock->advance(5min);
    EXPECT_TRUE(one->ready());
    EXPECT_THAT(fake->sent(config_path), SizeIs(12));
    auto const dynamic = fake->sent(dynamic_path);
    ASSERT_THAT(dynamic, SizeIs(3));
    EXPECT_EQ(dynamic[1].at - dynamic[0].at, 1s) << "no HTTP retries";
    EXPECT_EQ(dynamic[2].at - dynamic[1].at, 2s);
}

TEST_F(SessionTest, CreatingTheSessionIsNotInTheSubmitLoop) {  // R-SESS-01
    fake->on("POST", session_path).reply({.status = 503}, 11);
    serve();
    auto const one = session();
    Waiter waiter;
    one->when_ready(waiter);
    clock->advance(5min);
    EXPECT_EQ(waiter.error().http_status(), 503);
    EXPECT_THAT(fake->sent(session_path), SizeIs(11));
}

TEST_F(SessionTest, DoesWithoutConfigs) {  // R-CONF-20, R-CONF-30, R-CONF-21
    fake->on("POST", config_path).always({.status = 404, .body = "no"});
    fake->on("POST", dynamic_path).always({.status = 404, .body = "no"});
    auto const one = ready();
    EXPECT_EQ(one->flags(), wire::ClientFlags{});
    EXPECT_EQ(one->dynamic(), wire::DynamicFlags{});
    EXPECT_THAT(logged(LogLevel::debug), Contains(HasSubstr("no client config")));
}

TEST_F(SessionTest, TakesWhatTheServerSays) {  // R-CONF-21, R-CONF-22
    auto const one = ready(R"({"sample_dispatch_bytes_semaphore_size":7,
        "inflight_response_bytes_semaphore_size":8,"sample_max_concurrent_requests":9,
        "sample_use_retrieve_futures":true,"sample_join_sampling_session":true,
        "fwdbwd_max_chunk_len":3,"fwdbwd_max_chunk_bytes_count":4,
        "fwdbwd_dispatch_bytes_semaphore_size":5,"unknown":1,
        "billing_exception_max_pause_duration_sec":60})");
    EXPECT_EQ(one->sample_bytes_budget(), 7);
    EXPECT_EQ(one->download_budget(), 8);
    EXPECT_EQ(one->max_concurrent_samples(), 9);
    EXPECT_EQ(one->chunk_items(), 3);
    EXPECT_EQ(one->chunk_bytes(), 4);
    EXPECT_EQ(one->forward_backward_budget(), 5);
    EXPECT_TRUE(one->completion_poll());
    EXPECT_TRUE(one->join_sampling_session());
    EXPECT_EQ(one->context().billing().limit(), 60s);
}

TEST_F(SessionTest, HasBaselinesForWhatTheServerLeavesOut) {  // R-CONF-22
    auto const one = ready();
    EXPECT_EQ(one->sample_bytes_budget(), 5 * 1024 * 1024);
    EXPECT_EQ(one->max_concurrent_samples(), 1000);
    EXPECT_EQ(one->download_budget(), 50 * 1024 * 1024);
    EXPECT_EQ(one->chunk_items(), 1024);
    EXPECT_EQ(one->chunk_bytes(), 5'000'000);
    EXPECT_EQ(one->forward_backward_budget(), 50'000'000);
    EXPECT_FALSE(one->completion_poll());
    EXPECT_FALSE(one->join_sampling_session());
}

TEST_F(SessionTest, TheCallersChoiceStandsAboveTheServers) {  // R-CONF-22, R-CONF-24
    config.dispatch.bytes = 1;
    config.download_bytes = 2;
    config.chunks = {.items = 3, .bytes = 4, .bytes_in_flight = 5};
    config.completion_poll = false;
    config.join_sampling_session = true;
    auto const one = ready(R"({"sample_dispatch_bytes_semaphore_size":70,
        "inflight_response_bytes_semaphore_size":80,"sample_use_retrieve_futures":true})");
    EXPECT_EQ(one->sample_bytes_budget(), 1);
    EXPECT_EQ(one->download_budget(), 2);
    EXPECT_EQ(one->chunk_items(), 3);
    EXPECT_EQ(one->chunk_bytes(), 4);
    EXPECT_EQ(one->forward_backward_budget(), 5);
    EXPECT_FALSE(one->completion_poll());
    EXPECT_TRUE(one->join_sampling_session());
}

TEST_F(SessionTest, ExchangesItsKeyForATokenIfTheServerWantsThat) {  // R-AUTH-10, R-AUTH-17
    auto const one = ready(R"({"pjwt_auth_enabled":true})");
    EXPECT_THAT(paths(), ElementsAre(config_path, token_path, dynamic_path, session_path));
    auto const sent = fake->sent();
    EXPECT_EQ(sent[1].header("x-api-key"), test_key);
    EXPECT_THAT(sent[2].header("x-api-key"), HasSubstr("eyJ"));
    EXPECT_EQ(sent[3].header("x-api-key"), sent[2].header("x-api-key"));
    ASSERT_TRUE(one->identity_token());
    EXPECT_EQ(*one->identity_token(), sent[2].header("x-api-key")) << "R-AUTH-30";
}

TEST_F(SessionTest, AKeyThatIsRefusedByTheExchangeIsTheAnswer) {  // R-AUTH-17
    fake->on("POST", token_path).reply({.status = 401, .body = "bad key"});
    serve(R"({"pjwt_auth_enabled":true})");
    auto const one = session();
    Waiter waiter;
    one->when_ready(waiter);
    clock->advance(10min);
    EXPECT_EQ(waiter.error().http_status(), 401);
    EXPECT_THAT(waiter.error().what(), HasSubstr("auth/token"));
    EXPECT_THAT(fake->sent(token_path), SizeIs(1)) << "not repeated";
    EXPECT_THAT(fake->sent(dynamic_path), IsEmpty());
}

TEST_F(SessionTest, TheFirstExchangeIsInTheSubmitLoop) {  // R-AUTH-10
    fake->on("POST", token_path).reply({.status = 503}, 11);
    serve(R"({"pjwt_auth_enabled":true})");
    auto const one = session();
    one->start();
    clock->advance(5min);
    EXPECT_TRUE(one->ready());
    EXPECT_THAT(fake->sent(token_path), SizeIs(12));
}

TEST_F(SessionTest, AsksTheCommandIfTheServerRequiresIt) {  // R-AUTH-21, R-AUTH-20
    config.credentials.command = "print-key";
    auto const one =
        ready(R"({"pjwt_auth_enabled":true,"credential_default_source":"credential_cmd"})");
    auto const sent = fake->sent();
    EXPECT_EQ(sent[0].header("x-api-key"), test_key);
    EXPECT_EQ(sent[1].header("x-api-key"), "tml-from-cmd");
    EXPECT_THAT(runner->started, ElementsAre("print-key"));
    EXPECT_EQ(one->credential_identity(), test_key);
}

TEST_F(SessionTest, ACommandAloneServesTheConfigToo) {  // R-AUTH-23, R-CONF-11
    config.credentials = {.command = "print-key"};
    auto const one = ready(R"({"pjwt_auth_enabled":true})");
    EXPECT_EQ(fake->sent().at(0).header("x-api-key"), "tml-from-cmd");
    EXPECT_THAT(runner->started, SizeIs(2)) << "anew for each request for a credential";
    EXPECT_EQ(one->credential_identity(), "print-key");
}

TEST_F(SessionTest, ACommandAloneIsNotEnoughWithoutTheExchange) {  // R-AUTH-22, R-AUTH-23
    config.credentials = {.command = "print-key"};
    serve();
    auto const one = session();
    Waiter waiter;
    one->when_ready(waiter);
    clock->run_ready();
    EXPECT_EQ(waiter.error().kind(), ErrorKind::validation);
    EXPECT_EQ(waiter.error().field(), "credential_cmd");
    EXPECT_THAT(paths(), ElementsAre(config_path));
}

TEST_F(SessionTest, WithoutACredentialNothingIsSent) {  // R-CONF-05
    config.credentials = {};
    auto const one = session();
    Waiter waiter;
    one->when_ready(waiter);
    EXPECT_EQ(waiter.told, 0);
    clock->run_ready();
    EXPECT_EQ(waiter.error().field(), "api_key");
    EXPECT_EQ(fake->sent_count(), 0U);
}

TEST_F(SessionTest, LogsWhatTheServerSaysAboutTheSession) {  // R-SESS-02
    fake->on("POST", session_path)
        .reply(
            {.body = R"({"session_id":"s-1","info_message":"hello","warning_message":"old\nclient",
                     "error_message":"quota"})"});
    (void)ready();
    EXPECT_THAT(logged(LogLevel::info), Contains(HasSubstr("s-1")));
    EXPECT_THAT(logged(LogLevel::info), Contains("hello"));
    EXPECT_THAT(logged(LogLevel::warning), ElementsAre("old client"));
    EXPECT_THAT(logged(LogLevel::error), ElementsAre("quota"));
}

TEST_F(SessionTest, NumbersWhatIsMadeInIt) {  // R-SESS-03, R-SESS-04
    auto const one = session();
    for (std::int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(one->next_model_seq(), i);
        EXPECT_EQ(one->next_sampling_session_seq(), i);
        EXPECT_EQ(one->next_custom_loss_seq(), i);
    }
}

TEST_F(SessionTest, BeatsForItsSession) {  // R-SESS-10
    (void)ready();
    clock->advance(10s - 1ns);
    EXPECT_THAT(fake->sent(heartbeat_path), IsEmpty());
    clock->advance(1ns);
    ASSERT_THAT(fake->sent(heartbeat_path), SizeIs(1));
    auto const sent = fake->sent(heartbeat_path).at(0);
    EXPECT_EQ(boost::json::parse(sent.body),
              boost::json::parse(R"({"session_id":"s-1","type":"session_heartbeat"})"));
    EXPECT_EQ(sent.header("x-stainless-read-timeout"), "10");
    EXPECT_EQ(sent.purpose, Purpose::session);
    clock->advance(50s);
    EXPECT_THAT(fake->sent(heartbeat_path), SizeIs(6));
}

TEST_F(SessionTest, BeatsAreNotRepeatedAndWarnWhenAllFail) {  // R-SESS-10, R-SESS-11
    fake->on("POST", heartbeat_path).always({.status = 503, .body = "down"});
    (void)ready();
    clock->advance(120s);
    EXPECT_THAT(fake->sent(heartbeat_path), SizeIs(12));
    EXPECT_THAT(logged(LogLevel::warning), IsEmpty());
    clock->advance(20s);
    EXPECT_THAT(logged(LogLevel::warning), ElementsAre(HasSubstr("130 s"), HasSubstr("140 s")));
}

TEST_F(SessionTest, StopsBeatingForASessionThatHasFinished) {  // R-SESS-14
    fake->on("POST", heartbeat_path).always({.status = 410, .body = "finished"});
    (void)ready();
    clock->advance(10min);
    EXPECT_THAT(fake->sent(heartbeat_path), SizeIs(1));
    EXPECT_THAT(logged(LogLevel::warning), IsEmpty());
    EXPECT_THAT(logged(LogLevel::info), Contains(HasSubstr("has finished")));
}

TEST_F(SessionTest, FetchesTheDynamicConfigAgainAndAgain) {  // R-CONF-31, R-CONF-32
    fake->on("POST", dynamic_path)
        .reply({.body = "{}"})
        .reply({.body = R"({"refresh_interval_sec":3,"sample_cancel_enabled":true,
                            "sample_cancel_max_batch_size":5})"})
        .reply({.status = 503})
        .reply({.body = "nonsense"});
    auto const one = ready();
    clock->advance(300s - 1ns);
    EXPECT_THAT(fake->sent(dynamic_path), SizeIs(1));
    clock->advance(1ns);
    EXPECT_THAT(fake->sent(dynamic_path), SizeIs(2));
    EXPECT_TRUE(one->dynamic().sample_cancel_enabled);
    EXPECT_EQ(one->dynamic().sample_cancel_max_batch_size, 5);
    EXPECT_THAT(logged(LogLevel::debug), Contains(HasSubstr("dynamic config changed")));
    clock->advance(10s - 1ns);
    EXPECT_THAT(fake->sent(dynamic_path), SizeIs(2)) << "never more often than every 10 s";
    clock->advance(1ns);
    EXPECT_THAT(fake->sent(dynamic_path), SizeIs(3));
    clock->advance(10s - 1ns);
    EXPECT_THAT(fake->sent(dynamic_path), SizeIs(3)) << "no retries in between";
    clock->advance(1ns);
    EXPECT_THAT(fake->sent(dynamic_path), SizeIs(4));
    EXPECT_TRUE(one->dynamic().sample_cancel_enabled) << "the last good one";
    EXPECT_THAT(logged(LogLevel::debug), Contains(HasSubstr("kept as it was")));
    EXPECT_THAT(logged(LogLevel::warning), IsEmpty());
    clock->advance(10s);
    EXPECT_FALSE(one->dynamic().sample_cancel_enabled);
}

TEST_F(SessionTest, AShadowGoesOnFromASnapshot) {  // R-SESS-31, R-AUTH-18, R-CONF-31
    serve();
    SessionSnapshot const snapshot{.session_id = "s-1",
                                   .flags = {.pjwt_auth_enabled = true},
                                   .dynamic = {.refresh_interval_sec = 50s}};
    auto const one = session(SessionKind::shadow, snapshot);
    Waiter waiter;
    one->when_ready(waiter);
    EXPECT_EQ(waiter.told, 0);
    clock->run_ready();
    EXPECT_TRUE(waiter.succeeded());
    EXPECT_EQ(fake->sent_count(), 0U) << "neither config nor session, and no token before its use";
    EXPECT_EQ(one->session_id(), "s-1");
    clock->advance(10s);
    EXPECT_THAT(paths(), ElementsAre(token_path, heartbeat_path)) << "a token of its own";
    clock->advance(40s);
    EXPECT_THAT(fake->sent(dynamic_path), SizeIs(1));
    EXPECT_EQ(one->snapshot().session_id, "s-1");
}

TEST_F(SessionTest, SaysWhereItStands) {
    fake->on("POST", config_path).always({.status = 503, .body = "busy"});
    config.max_retries = 0;
    auto const one = session();
    one->start();
    EXPECT_THAT(one->standing(), HasSubstr("client config: waiting for an answer"));
    clock->advance(1s);
    EXPECT_THAT(one->standing(),
                HasSubstr("client config: attempt 3, next attempt in 2 s; last: POST"));
    EXPECT_THAT(one->standing(), HasSubstr("busy"));
}

TEST_F(SessionTest, ClosesInOrder) {  // R-SESS-24, R-SESS-22
    auto const one = ready();
    Part part;
    one->add(part);
    part.at_once = false;
    fake->on("POST", "/late").hold();
    Closed closed;
    one->close(Finish{.reason = CloseReason::errored, .detail = "out of data"}, closed.done());
    EXPECT_FALSE(one->ready());
    EXPECT_THAT(part.seen, IsEmpty()) << "first the server is told";
    clock->run_ready();
    auto const sent = fake->sent(finish_path);
    ASSERT_THAT(sent, SizeIs(1));
    EXPECT_EQ(sent[0].body, R"({"reason":{"type":"errored"},"detail":"out of data"})");
    EXPECT_EQ(sent[0].purpose, Purpose::train);
    EXPECT_THAT(part.seen, ElementsAre("closing, finished", "drain"));
    EXPECT_EQ(part.deadline, clock->now() + 5s);
    EXPECT_EQ(closed.told, 0);
    EXPECT_TRUE(one->http().usable()) << "what is drained must be sent";
    part.drained();
    EXPECT_EQ(closed.told, 1);
    EXPECT_TRUE(*closed.outcome);
    EXPECT_FALSE(one->http().usable());
    one->remove(part);
}

TEST_F(SessionTest, PlainClosesTellTheServerNothing) {  // R-SESS-23, R-SESS-20
    auto const one = ready();
    auto const before = fake->sent_count();
    Closed closed;
    one->close({}, closed.done());
    clock->advance(10min);
    EXPECT_EQ(closed.told, 1);
    EXPECT_TRUE(*closed.outcome);
    EXPECT_EQ(fake->sent_count(), before) << "neither finish nor heartbeat nor refresh";
    EXPECT_EQ(clock->pending_timers(), 0U);
}

TEST_F(SessionTest, NothingIsRenewedAfterAClose) {  // R-AUTH-16, R-SESS-20
    auto const one = ready(R"({"pjwt_auth_enabled":true})");
    auto const before = fake->sent_count();
    one->close({}, {});
    clock->advance(1h);
    EXPECT_EQ(fake->sent_count(), before);
    EXPECT_EQ(clock->pending_timers(), 0U);
}

TEST_F(SessionTest, AHeartbeatUnderWayEndsWithTheClose) {  // R-SESS-20
    fake->on("POST", heartbeat_path).hold();
    auto const one = ready();
    clock->advance(10s);
    one->close({}, {});
    EXPECT_EQ(fake->open_count(), 0U);
}

TEST_F(SessionTest, AFinishThatFailsIsReportedAfterTheCleanUp) {  // R-SESS-22
    fake->on("POST", finish_path).always({.status = 403, .body = "not yours"});
    auto const one = ready();
    Part part;
    one->add(part);
    Closed closed;
    one->close(Finish{}, closed.done());
    clock->run_ready();
    ASSERT_EQ(closed.told, 1);
    EXPECT_EQ(closed.outcome->error().http_status(), 403);
    EXPECT_THAT(part.seen, ElementsAre("closing", "drain"));
    one->remove(part);
}

TEST_F(SessionTest, AServerThatCannotFinishIsNoFailure) {  // R-SESS-22
    for (int const status : {404, 405}) {
        fake->on("POST", finish_path).reply({.status = status, .body = "x"});
        auto const one = ready();
        Closed closed;
        one->close(Finish{}, closed.done());
        clock->run_ready();
        ASSERT_EQ(closed.told, 1);
        EXPECT_TRUE(*closed.outcome) << status;
        EXPECT_THAT(logged(LogLevel::debug), Contains(HasSubstr("cannot finish sessions")));
    }
}

TEST_F(SessionTest, FinishesAreInTheSubmitLoop) {  // R-SESS-22
    fake->on("POST", finish_path).reply({.status = 503}, 11);
    auto const one = ready();
    Closed closed;
    one->close(Finish{}, closed.done());
    clock->advance(2min);
    EXPECT_EQ(closed.told, 1);
    EXPECT_TRUE(*closed.outcome);
    EXPECT_THAT(fake->sent(finish_path), SizeIs(12));
}

TEST_F(SessionTest, WithoutASessionThereIsNothingToFinish) {  // R-SESS-22
    serve();
    auto const never_started = session();
    Closed closed;
    never_started->close(Finish{}, closed.done());
    clock->run_ready();
    EXPECT_EQ(closed.told, 1);
    auto const lookups = session(SessionKind::sessionless);
    lookups->start();
    clock->run_ready();
    lookups->close(Finish{}, closed.done());
    clock->run_ready();
    EXPECT_EQ(closed.told, 2);
    EXPECT_THAT(fake->sent(finish_path), IsEmpty());
}

TEST_F(SessionTest, ASecondCloseDoesNothing) {  // R-SESS-20, R-SESS-22
    fake->on("POST", finish_path).reply({.status = 403, .body = "x"}).hold();
    auto const one = ready();
    Closed first;
    Closed second;
    Closed third;
    one->close(Finish{}, first.done());
    one->close(Finish{}, second.done());
    clock->run_ready();
    EXPECT_EQ(first.told, 1);
    EXPECT_FALSE(*first.outcome);
    EXPECT_EQ(second.told, 1);
    EXPECT_TRUE(*second.outcome);
    one->close(Finish{}, third.done());
    clock->run_ready();
    EXPECT_EQ(third.told, 1);
    EXPECT_THAT(fake->sent(finish_path), SizeIs(1));
}

TEST_F(SessionTest, ADrainThatDoesNotEndIsLeftBehind) {  // R-SESS-24, R-TEL-41
    auto const one = ready();
    Part part;
    part.at_once = false;
    one->add(part);
    Closed closed;
    one->close({}, closed.done());
    clock->advance(5s - 1ns);
    EXPECT_EQ(closed.told, 0);
    clock->advance(1ns);
    EXPECT_EQ(closed.told, 1);
    part.drained();
    EXPECT_EQ(closed.told, 1);
    one->remove(part);
}

TEST_F(SessionTest, PartsMayGoAwayWhileTheyAreTold) {
    auto const one = ready();
    Part first;
    auto second = std::make_unique<Part>();
    one->add(first);
    one->add(*second);
    first.then = [&] {
        one->remove(*second);
        second.reset();
        one->remove(first);
    };
    Closed closed;
    one->close({}, closed.done());
    clock->run_ready();
    EXPECT_EQ(closed.told, 1);
    EXPECT_THAT(first.seen, ElementsAre("closing"));
}

TEST_F(SessionTest, TellsItsPartsThatItIsReady) {  // R-CONF-41
    serve();
    auto const one = session();
    Part part;
    one->add(part);
    one->start();
    EXPECT_THAT(part.seen, IsEmpty());
    clock->run_ready();
    EXPECT_THAT(part.seen, ElementsAre("ready"));
    one->remove(part);
}

TEST_F(SessionTest, ACloseEndsAStartUpUnderWay) {  // R-SESS-21
    fake->on("POST", config_path).hold();
    auto const one = session();
    Waiter waiter;
    one->when_ready(waiter);
    clock->run_ready();
    Closed closed;
    one->close(Finish{}, closed.done());
    clock->run_ready();
    EXPECT_EQ(waiter.told, 1);
    EXPECT_EQ(waiter.error().kind(), ErrorKind::cancelled);
    EXPECT_EQ(closed.told, 1);
    EXPECT_EQ(fake->open_count(), 0U);
}

TEST_F(SessionTest, LaterCallsAreRefused) {  // R-CONF-45
    auto const one = ready();
    EXPECT_FALSE(one->refusal("sample"));
    one->close({}, {});
    auto const refused = one->refusal("sample");
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->kind(), ErrorKind::closed);
    EXPECT_STREQ(refused->what(), "sample: the client was closed");
    Waiter waiter;
    one->when_ready(waiter);
    EXPECT_EQ(waiter.told, 0);
    clock->run_ready();
    EXPECT_EQ(waiter.error().kind(), ErrorKind::closed);
    one->start();
    clock->advance(1h);
    EXPECT_EQ(one->standing(), "closed");
}

TEST_F(SessionTest, SharedLimitsGoByServiceAndAccount) {  // R-CONF-11, R-CONF-10
    auto const one = session();
    config = client_config("HTTP://HOST:8000/");
    auto const same = session();
    config.credentials.api_key = "tml-other";
    auto const other = session();
    EXPECT_EQ(one->endpoint_key(), same->endpoint_key());
    EXPECT_EQ(one->credential_identity(), same->credential_identity());
    EXPECT_NE(one->credential_identity(), other->credential_identity());
}

TEST_F(SessionTest, StaysWhileItsSessionDoes) {
    std::weak_ptr<Session> weak = ready();
    made.clear();
    clock->advance(30s);
    ASSERT_FALSE(weak.expired()) << "who forgets to close it leaks nothing but time";
    weak.lock()->close({}, {});
    EXPECT_TRUE(weak.expired());
}

TEST_F(SessionTest, TheEndOfTheRuntimeEndsAStartUp) {  // R-SESS-21
    fake->on("POST", config_path).hold();
    std::weak_ptr<Session> const weak = session();
    Waiter waiter;
    made.back()->when_ready(waiter);
    made.clear();
    clock->run_ready();
    runtime.shutdown();
    EXPECT_EQ(waiter.told, 1);
    EXPECT_EQ(waiter.error().kind(), ErrorKind::cancelled);
    EXPECT_TRUE(weak.expired());
}

TEST_F(SessionTest, TheEndOfTheRuntimeEndsASubmitLoop) {  // R-SESS-21
    config.max_retries = 0;
    fake->on("POST", config_path).always({.status = 503});
    std::weak_ptr<Session> const weak = session();
    Waiter waiter;
    made.back()->when_ready(waiter);
    made.clear();
    clock->run_ready();
    runtime.shutdown();
    EXPECT_EQ(waiter.error().kind(), ErrorKind::cancelled);
    EXPECT_TRUE(weak.expired());
}

TEST_F(SessionTest, TheEndOfTheRuntimeEndsAReadySessionAndACloseUnderWay) {  // R-SESS-21
    fake->on("POST", finish_path).hold();
    std::weak_ptr<Session> weak = ready();
    made.clear();
    Closed closed;
    weak.lock()->close(Finish{}, closed.done());
    clock->run_ready();
    runtime.shutdown();
    ASSERT_EQ(closed.told, 1);
    EXPECT_EQ(closed.outcome->error().kind(), ErrorKind::cancelled);
    EXPECT_TRUE(weak.expired());
}

}  // namespace
}  // namespace tinkxx::service
