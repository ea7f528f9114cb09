#include "service/requests/service_request.hpp"

#include "unit/service/session/session_fixture.hpp"

#include <set>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using tinkxx::testing::failing;

struct Waiting final : ServiceRequest::Listener {
    explicit Waiting(ServiceContext& context) : call{context, *this} {}
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
    int ends{0};
    std::optional<HttpResponse> response{};
    std::optional<Error> error{};
    std::function<void()> then{};
    ServiceRequest call;
};

struct ServiceRequestTest : SessionFixture {
    ServiceRequestTest()
        : http{std::make_shared<HttpContext>(std::make_shared<ClientConfig const>(client_config()),
                                             runtime.core(), fake,
                                             std::make_shared<FixedCredential>(test_key))},
          context{http} {
        context.set_telemetry(&telemetry);
    }
    ~ServiceRequestTest() override { context.close(); }

    HttpOrder order(int max_retries = 0) {
        HttpOrder made;
        made.operation = {.method = "POST", .path = "/x"};
        made.url = "http://host:8000/x";
        made.max_retries = max_retries;
        return made;
    }

    RecordedTelemetry telemetry{};
    std::shared_ptr<HttpContext> http;
    ServiceContext context;
};

TEST_F(ServiceRequestTest, DeliversAnAnswer) {
    fake->push({.body = "hello"});
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::submit_loop);
    EXPECT_EQ(waiting.ends, 0);
    clock->run_ready();
    ASSERT_TRUE(waiting.response);
    EXPECT_EQ(waiting.response->body, "hello");
    EXPECT_FALSE(waiting.call.under_way());
}

TEST_F(ServiceRequestTest,
       MakesTheWholeCallAgainWithANewKey) {  // R-RETRY-80, R-RETRY-81, R-RETRY-72
    fake->push({.status = 503});
    fake->push({.status = 503});
    fake->push({.status = 503});
    fake->push({.body = "ok"});
    Waiting waiting{context};
    waiting.call.start(order(1), Repeat::submit_loop);
    clock->advance(500ms);  // the retry of the HTTP call
    EXPECT_EQ(fake->sent_count(), 2U);
    auto const failed = clock->now();
    auto const due = *clock->next_due();
    EXPECT_GT(due, failed);
    clock->advance_to(due - 1ns);
    EXPECT_EQ(fake->sent_count(), 2U);
    clock->advance(1ns);
    EXPECT_EQ(fake->sent_count(), 3U);
    clock->advance(1s);
    ASSERT_TRUE(waiting.response);
    auto const sent = fake->sent();
    EXPECT_EQ(sent[0].header("x-idempotency-key"), sent[1].header("x-idempotency-key"));
    EXPECT_NE(sent[1].header("x-idempotency-key"), sent[2].header("x-idempotency-key"));
    EXPECT_EQ(sent[2].at - sent[1].at, 1s);
    EXPECT_EQ(sent[2].header("x-stainless-retry-count"), "0");
}

TEST_F(ServiceRequestTest, KeepsAKeyThatTheCallerGave) {  // R-RETRY-72
    fake->push({.status = 503});
    fake->push({});
    Waiting waiting{context};
    auto made = order();
    made.idempotency_key = "mine";
    waiting.call.start(made, Repeat::submit_loop);
    clock->advance(1s);
    EXPECT_EQ(fake->sent().at(1).header("x-idempotency-key"), "mine");
}

TEST_F(ServiceRequestTest, GivesUpAfterFiveMinutes) {  // R-RETRY-80, R-RETRY-81
    fake->otherwise([](auto const&) { return Reply{.status = 500, .body = "broken"}; });
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::submit_loop);
    clock->advance(300s - 1ns);
    EXPECT_EQ(waiting.ends, 0);
    clock->advance(1ns);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(fake->sent_count(), 15U);
    EXPECT_EQ(waiting.error->stopped(), RetryEnd::attempts_spent);
    EXPECT_EQ(waiting.error->details().attempts, 15);
    EXPECT_THAT(waiting.error->what(), HasSubstr("15 rounds of attempts in 300 s"));
}

TEST_F(ServiceRequestTest, OnceMeansOnce) {  // R-RETRY-04
    fake->push({.status = 503});
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::once);
    clock->advance(10min);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(fake->sent_count(), 1U);
    EXPECT_THAT(telemetry.events, IsEmpty());
}

TEST_F(ServiceRequestTest, WaitsOutABillingBlock) {  // R-RETRY-82, R-SAMP-52
    fake->on("POST", "/x").reply({.status = 402, .body = R"({"detail":"unpaid"})"}, 100);
    fake->push({.body = "ok"});
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::submit_loop);
    clock->advance(5s - 1ns);
    EXPECT_EQ(fake->sent_count(), 1U);
    clock->advance(1ns);
    EXPECT_EQ(fake->sent_count(), 2U);
    clock->advance(495s);  // longer than the loop itself would go on
    ASSERT_TRUE(waiting.response);
    EXPECT_EQ(fake->sent_count(), 101U);
    EXPECT_THAT(telemetry.events, IsEmpty());
    auto const warnings = logged(LogLevel::warning);
    EXPECT_THAT(warnings, SizeIs(9)) << "one a minute";
    EXPECT_THAT(warnings.at(0), HasSubstr("unpaid"));
}

TEST_F(ServiceRequestTest, ABillingBlockThatLastsIsAnError) {  // R-SAMP-51, R-SAMP-52
    fake->otherwise([](auto const&) { return Reply{.status = 402, .body = "unpaid"}; });
    context.billing().set_limit(60s);
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::submit_loop);
    clock->advance(60s);
    EXPECT_EQ(waiting.ends, 0);
    clock->advance(5s);
    ASSERT_TRUE(waiting.error);
    EXPECT_THROW(waiting.error->raise(), BillingError);
    EXPECT_EQ(fake->sent_count(), 14U);  // as the official SDK does
    EXPECT_THAT(logged(LogLevel::error), ElementsAre(HasSubstr("for 65 s")));
}

TEST_F(ServiceRequestTest, CallsShareOneBillingIncident) {  // R-SAMP-50
    fake->otherwise([](auto const&) { return Reply{.status = 402, .body = "unpaid"}; });
    context.billing().set_limit(60s);
    Waiting first{context};
    first.call.start(order(), Repeat::submit_loop);
    clock->advance(58s);
    Waiting second{context};
    second.call.start(order(), Repeat::submit_loop);
    clock->advance(7s);
    EXPECT_TRUE(first.error);
    EXPECT_TRUE(second.error) << "not an hour of its own";
}

TEST_F(ServiceRequestTest, LeavesBackpressureToTheSamplingLoop) {  // R-RETRY-04, R-SAMP-30
    for (int const status : {402, 429}) {
        fake->push({.status = status, .body = "x"});
        Waiting waiting{context};
        waiting.call.start(order(), Repeat::sample_submit);
        clock->run_ready();
        ASSERT_TRUE(waiting.error) << status;
        EXPECT_EQ(waiting.error->http_status(), status);
    }
    EXPECT_THAT(telemetry.events, IsEmpty());
    EXPECT_FALSE(context.billing().since());
    fake->push({.status = 503});
    fake->push({});
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::sample_submit);
    clock->advance(1s);
    EXPECT_TRUE(waiting.response) << "the rest is the submit loop's";
}

TEST_F(ServiceRequestTest, TellsTheServiceOfItsTroubles) {  // R-RETRY-83, R-TEL-10
    fake->push({.status = 503, .body = "busy"});
    fake->push({.status = 404, .body = "gone"});
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::submit_loop);
    clock->advance(1s);
    ASSERT_THAT(telemetry.events, SizeIs(2));
    auto const& first = telemetry.events[0];
    EXPECT_EQ(first.name, "InternalClientHolder.execute_with_retries.exception");
    EXPECT_EQ(first.severity, Severity::warning);
    EXPECT_EQ(first.data.at("func"), "POST /x");
    EXPECT_EQ(first.data.at("status_code"), 503);
    EXPECT_EQ(first.data.at("is_retryable"), true);
    EXPECT_EQ(first.data.at("is_user_error"), false);
    EXPECT_EQ(first.data.at("attempt_count"), 0);
    EXPECT_EQ(first.data.at("elapsed_time"), 0.0);
    EXPECT_EQ(first.data.at("exception_type"), "InternalServerError");
    EXPECT_THAT(std::string{first.data.at("exception").as_string()}, HasSubstr("busy"));
    auto const& second = telemetry.events[1];
    EXPECT_EQ(second.severity, Severity::warning) << "a user error";
    EXPECT_EQ(second.data.at("is_user_error"), true);
    EXPECT_EQ(second.data.at("is_retryable"), false);
    auto const stack = std::string{second.data.at("exception_stack").as_string()};
    EXPECT_THAT(stack,
                HasSubstr("POST /x, attempt 2\nNotFoundError after 1 HTTP attempt: POST /x"));
    EXPECT_EQ(second.data.at("attempt_count"), 1);
    EXPECT_EQ(second.data.at("elapsed_time"), 1.0);
    EXPECT_EQ(second.data.at("start_time"), first.data.at("start_time"));
}

TEST_F(ServiceRequestTest, TroublesThatNobodyCanMendAreErrors) {  // R-RETRY-83
    fake->push({.status = 302});
    Waiting waiting{context};
    auto made = order();
    made.redirects = Redirects::none;
    waiting.call.start(made, Repeat::submit_loop);
    clock->run_ready();
    ASSERT_THAT(telemetry.events, SizeIs(1));
    EXPECT_EQ(telemetry.events[0].severity, Severity::error);
    EXPECT_EQ(telemetry.events[0].data.at("is_user_error"), false);
}

TEST_F(ServiceRequestTest, NeedsNoTelemetry) {  // R-TEL-42
    context.set_telemetry(nullptr);
    fake->push({.status = 404});
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::submit_loop);
    clock->run_ready();
    EXPECT_TRUE(waiting.error);
}

TEST_F(ServiceRequestTest, SaysWhereItStands) {
    fake->push({.status = 503, .body = "busy"});
    fake->push({.status = 503, .body = "busy"});
    fake->push({.status = 402, .body = "unpaid"});
    Waiting waiting{context};
    using Doing = Standing::Doing;
    EXPECT_EQ(waiting.call.standing().doing, Doing::nothing);
    waiting.call.start(order(1), Repeat::submit_loop);
    EXPECT_EQ(waiting.call.standing().doing, Doing::sending);
    clock->run_ready();
    auto standing = waiting.call.standing();
    EXPECT_EQ(standing.doing, Doing::http_wait);
    EXPECT_EQ(standing.http_retries, 1);
    EXPECT_EQ(standing.until, clock->next_due());
    EXPECT_THAT(standing.why, HasSubstr("busy"));
    clock->advance_to(*clock->next_due());
    standing = waiting.call.standing();
    EXPECT_EQ(standing.doing, Doing::submit_wait);
    EXPECT_EQ(standing.until, clock->now() + 1s);
    EXPECT_EQ(standing.attempt, 2);
    EXPECT_THAT(describe(standing, clock->now()),
                HasSubstr("attempt 2, next attempt in 1 s; last: POST /x: 503"));
    clock->advance(1s);
    standing = waiting.call.standing();
    EXPECT_EQ(standing.doing, Doing::billing_pause);
    EXPECT_EQ(standing.until, clock->now() + 5s);
    EXPECT_THAT(describe(standing, clock->now()), HasSubstr("paused for billing reasons"));
    waiting.call.cancel();
    EXPECT_EQ(waiting.call.standing().doing, Doing::nothing);
}

TEST(StageOf, TellsTheCallerWhatARequestDoes) {
    using Doing = Standing::Doing;
    EXPECT_EQ(stage_of(Doing::sending), Stage::submitting);
    EXPECT_EQ(stage_of(Doing::credential), Stage::waiting_for_credential);
    EXPECT_EQ(stage_of(Doing::http_wait), Stage::waiting_to_submit);
    EXPECT_EQ(stage_of(Doing::submit_wait), Stage::waiting_to_submit);
    EXPECT_EQ(stage_of(Doing::billing_pause), Stage::billing_pause);
}

TEST_F(ServiceRequestTest, CancelIsSilentInEveryState) {
    fake->on("POST", "/x").hold();
    fake->push({.status = 503});
    fake->push({.status = 402, .body = "x"});
    Waiting waiting{context};
    waiting.call.cancel();
    for (int i = 0; i < 3; ++i) {
        waiting.call.start(order(), Repeat::submit_loop);
        clock->run_ready();
        waiting.call.cancel();
        EXPECT_FALSE(waiting.call.under_way());
        EXPECT_EQ(context.waiting_calls(), 0U);
    }
    clock->advance(10min);
    EXPECT_EQ(waiting.ends, 0);
    EXPECT_EQ(fake->sent_count(), 3U);
}

TEST_F(ServiceRequestTest, CanBeStartedAgainFromItsEnd) {
    fake->push({.status = 404});
    fake->push({.body = "ok"});
    Waiting waiting{context};
    waiting.then = [&] {
        if (waiting.ends == 1) waiting.call.start(order(), Repeat::submit_loop);
    };
    waiting.call.start(order(), Repeat::submit_loop);
    clock->run_ready();
    EXPECT_TRUE(waiting.response);
}

TEST_F(ServiceRequestTest, CanBeDestroyedFromItsEnd) {
    fake->push({.status = 404});
    auto waiting = std::make_unique<Waiting>(context);
    waiting->then = [&] { waiting.reset(); };
    waiting->call.start(order(), Repeat::submit_loop);
    clock->run_ready();
    EXPECT_EQ(waiting, nullptr);
}

TEST_F(ServiceRequestTest, ClosingEndsCallsThatWaitAndThoseUnderWay) {  // R-SESS-21
    fake->on("POST", "/x").reply({.status = 503}).hold();
    Waiting sleeping{context};
    sleeping.call.start(order(), Repeat::submit_loop);
    clock->run_ready();
    Waiting sending{context};
    sending.call.start(order(), Repeat::submit_loop);
    context.close();
    ASSERT_TRUE(sleeping.error);
    EXPECT_EQ(sleeping.error->kind(), ErrorKind::cancelled);
    EXPECT_EQ(sleeping.error->cause()->http_status(), 503);
    ASSERT_TRUE(sending.error);
    EXPECT_EQ(sending.error->kind(), ErrorKind::cancelled);
    EXPECT_THAT(telemetry.events, SizeIs(1)) << "an end is no trouble";

    Waiting late{context};
    late.call.start(order(), Repeat::submit_loop);
    clock->run_ready();
    ASSERT_TRUE(late.error);
    EXPECT_EQ(late.error->kind(), ErrorKind::cancelled);
}

TEST_F(ServiceRequestTest, TheEndOfTheRuntimeEndsCallsThatWait) {  // R-SESS-21
    fake->push({.status = 503});
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::submit_loop);
    clock->run_ready();
    runtime.shutdown();
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::cancelled);
}

TEST_F(ServiceRequestTest, AConnectionThatIsLostIsRepeated) {  // R-RETRY-80
    fake->push(failing(FailureKind::reset));
    fake->push({.body = "ok"});
    Waiting waiting{context};
    waiting.call.start(order(), Repeat::submit_loop);
    clock->advance(1s);
    EXPECT_TRUE(waiting.response);
}

TEST_F(ServiceRequestTest, RepeatsWhatAProxyRejectedWithANewKey) {  // R-RETRY-75
    fake->push({.status = 400});
    fake->push({.status = 400});
    fake->push({.body = "ok"});
    Waiting waiting{context};
    waiting.call.start(order(10), Repeat::submit_loop);
    clock->advance(3s);
    ASSERT_TRUE(waiting.response);
    auto const sent = fake->sent();
    ASSERT_EQ(sent.size(), 3U);
    EXPECT_EQ(sent[1].at - sent[0].at, 1s);
    EXPECT_EQ(sent[2].at - sent[1].at, 2s);
    EXPECT_NE(sent[0].header("x-idempotency-key"), sent[1].header("x-idempotency-key"));
}

TEST_F(ServiceRequestTest, WhatIsMadeOnceFailsWhenAProxyRejectsIt) {  // R-RETRY-75
    fake->push({.status = 400});
    Waiting waiting{context};
    waiting.call.start(order(10), Repeat::once);
    clock->advance(1min);
    ASSERT_TRUE(waiting.error);
    EXPECT_EQ(waiting.error->kind(), ErrorKind::connection);
    EXPECT_EQ(fake->sent_count(), 1U);
}

TEST_F(ServiceRequestTest, ACallThatIsEndedMayLetGoOfWhatHoldsTheContext) {
    struct Owner {
        explicit Owner(std::shared_ptr<HttpContext> shared) : context{std::move(shared)} {}
        ServiceContext context;
    };
    fake->otherwise([](auto const&) { return Reply{.status = 503}; });
    auto owner = std::make_shared<Owner>(http);
    owner->context.set_owner(owner);
    std::weak_ptr<Owner> const seen{owner};
    Waiting first{owner->context};
    Waiting second{owner->context};
    first.call.start(order(), Repeat::submit_loop);
    second.call.start(order(), Repeat::submit_loop);
    clock->run_ready();  // both wait for their next attempts
    bool there = false;
    second.then = [&] {
        owner.reset();
        there = !seen.expired();
    };
    owner->context.close();
    EXPECT_TRUE(there);
    EXPECT_EQ(first.ends, 1);
    EXPECT_EQ(second.ends, 1);
    EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace tinkxx::service
