#include "service/auth/token_exchange.hpp"

#include "service/auth/session_credential.hpp"
#include "unit/service/http/scripted_credential.hpp"
#include "unit/service/session/session_fixture.hpp"
#include "wire/json/base64.hpp"

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

struct Waiter final : CredentialWaiter {
    void on_credential(Result<Credential> got) override {
        ++told;
        credential = std::move(got);
        if (then) then();
    }
    int told{0};
    std::optional<Result<Credential>> credential{};
    std::function<void()> then{};
};

struct TokenExchangeTest : SessionFixture {
    TokenExchangeTest() {
        raw->now = Result<Credential>{std::make_shared<std::string const>(test_key)};
        exchange.emplace(*http, raw);
    }
    ~TokenExchangeTest() override {
        exchange->stop();
        http->close();
    }
    /// A token that ends so long after now.
    [[nodiscard]] std::string jwt(std::chrono::seconds left) const {
        auto const end = std::chrono::duration_cast<std::chrono::seconds>(
            (clock->wall() + left).time_since_epoch());
        return "eyJhIjoxfQ." + wire::base64url("{\"exp\":" + std::to_string(end.count()) + "}") +
               ".c2ln";
    }
    [[nodiscard]] Reply answer(std::string const& token) const {
        return {.body = R"({"jwt":")" + token + R"("})"};
    }
    std::string fetch() {
        Waiter waiter;
        auto now = exchange->get(waiter);
        if (!now) {
            clock->run_ready();
            now = waiter.credential;
        }
        if (!now || !*now) return "none";
        return ***now;
    }

    std::shared_ptr<ScriptedCredential> raw{std::make_shared<ScriptedCredential>("raw")};
    std::shared_ptr<HttpContext> http{std::make_shared<HttpContext>(
        std::make_shared<ClientConfig const>(client_config()), runtime.core(), fake,
        std::make_shared<FixedCredential>("unused"))};
    std::optional<TokenExchange> exchange{};
};

TEST_F(TokenExchangeTest, SendsTheCredentialAndKeepsTheToken) {  // R-AUTH-10, R-AUTH-01
    auto const token = jwt(1h);
    fake->push(answer(token));
    EXPECT_EQ(fetch(), token);
    auto const sent = fake->sent().at(0);
    EXPECT_EQ(sent.method, "POST");
    EXPECT_EQ(sent.path, "/api/v1/auth/token");
    EXPECT_EQ(sent.body, "{}");
    EXPECT_EQ(sent.header("x-api-key"), test_key);
    EXPECT_EQ(sent.header("content-type"), "application/json");
    EXPECT_EQ(sent.purpose, Purpose::auth);
    EXPECT_EQ(fetch(), token) << "from the cache";
    EXPECT_EQ(fake->sent_count(), 1U);
    EXPECT_EQ(*exchange->token(), token);
}

TEST_F(TokenExchangeTest, NeverExchangesTwiceAtOnce) {  // R-AUTH-13, R-AUTH-14
    fake->on("POST", "/api/v1/auth/token").hold();
    Waiter first;
    Waiter second;
    EXPECT_FALSE(exchange->get(first));
    EXPECT_FALSE(exchange->get(second));
    clock->run_ready();
    EXPECT_EQ(fake->sent_count(), 1U);
    fake->release_next(answer(jwt(1h)));
    clock->run_ready();
    EXPECT_EQ(first.told, 1);
    EXPECT_EQ(second.told, 1);
    EXPECT_EQ(fake->sent_count(), 1U);
}

TEST_F(TokenExchangeTest, RenewsFiveMinutesBeforeTheEnd) {  // R-AUTH-11, R-AUTH-12
    fake->push(answer(jwt(1000s)));
    (void)fetch();
    clock->advance(700s - 1ns);
    EXPECT_EQ(fake->sent_count(), 1U);
    auto const next = jwt(1h);
    fake->push(answer(next));
    clock->advance(1ns);
    EXPECT_EQ(fake->sent_count(), 2U);
    EXPECT_EQ(*exchange->token(), next);
}

TEST_F(TokenExchangeTest, TriesAgainAMinuteAfterAFailedRenewal) {  // R-AUTH-12
    fake->push(answer(jwt(1000s)));
    (void)fetch();
    fake->push({.status = 401, .body = "no"});
    clock->advance(700s);
    EXPECT_EQ(fake->sent_count(), 2U);
    clock->advance(60s - 1ns);
    EXPECT_EQ(fake->sent_count(), 2U);
    fake->push(answer(jwt(1h)));
    clock->advance(1ns);
    EXPECT_EQ(fake->sent_count(), 3U);
    EXPECT_THAT(logged(LogLevel::warning), IsEmpty()) << "nobody missed it";
}

TEST_F(TokenExchangeTest, RenewsATokenOfUnknownEndEveryMinute) {  // R-AUTH-12
    fake->push(answer("eyJub3BlIjoxfQ"));
    EXPECT_EQ(fetch(), "eyJub3BlIjoxfQ");
    fake->push(answer(jwt(1h)));
    clock->advance(60s);
    EXPECT_EQ(fake->sent_count(), 2U);
}

TEST_F(TokenExchangeTest, RenewsBeforeUseWithAMinuteLeft) {  // R-AUTH-13
    fake->push(answer(jwt(1000s)));
    (void)fetch();
    fake->on("POST", "/api/v1/auth/token").reply({.status = 401, .body = "no"}, 4);
    clock->advance(939s);
    auto const tries = fake->sent_count();
    (void)fetch();
    EXPECT_EQ(fake->sent_count(), tries) << "61 s are enough";
    clock->advance(1s);
    auto const next = jwt(1h);
    fake->on("POST", "/api/v1/auth/token").reply(answer(next));
    auto const before = fake->sent_count();
    std::string got;
    while (got != next && fake->sent_count() < before + 3) got = fetch();
    EXPECT_EQ(got, next);
}

TEST_F(TokenExchangeTest, FallsBackToTheTokenItHas) {  // R-AUTH-13
    auto const token = jwt(50s);
    fake->push(answer(token));
    fake->otherwise([](auto const&) { return Reply{.status = 401, .body = "no"}; });
    EXPECT_EQ(fetch(), token);
    EXPECT_EQ(fetch(), token);
    EXPECT_THAT(logged(LogLevel::warning), Not(IsEmpty()));
    EXPECT_THAT(logged(LogLevel::warning).back(), HasSubstr("401"));
    clock->advance(50s);
    EXPECT_EQ(fetch(), token) << "even when it is over";
}

TEST_F(TokenExchangeTest, WithoutATokenTheFailureIsTheAnswer) {  // R-AUTH-17, R-RETRY-77
    fake->push({.status = 401, .body = "bad key " + std::string{test_key}});
    Waiter waiter;
    EXPECT_FALSE(exchange->get(waiter));
    EXPECT_EQ(waiter.told, 0);
    clock->run_ready();
    ASSERT_EQ(waiter.told, 1);
    auto const& error = waiter.credential->error();
    EXPECT_EQ(error.http_status(), 401);
    EXPECT_EQ(error.kind(), ErrorKind::status);
    EXPECT_THAT(error.what(), Not(HasSubstr(test_key)));
    fake->push(answer(jwt(1h)));
    EXPECT_NE(fetch(), "none") << "the next request tries again";
}

TEST_F(TokenExchangeTest, KeepsItsOwnHttpRetries) {  // R-AUTH-17
    fake->push({.status = 503});
    fake->push(answer(jwt(1h)));
    Waiter waiter;
    (void)exchange->get(waiter);
    clock->advance(1s);
    ASSERT_EQ(waiter.told, 1);
    EXPECT_TRUE(*waiter.credential);
    EXPECT_EQ(fake->sent().at(1).header("x-stainless-retry-count"), "1");
}

TEST_F(TokenExchangeTest, SaysWhatItWaitsFor) {
    fake->push({.status = 503, .body = "busy"});
    Waiter waiter;
    (void)exchange->get(waiter);
    EXPECT_EQ(exchange->standing().why, "a token is being asked for");
    clock->run_ready();
    EXPECT_THAT(exchange->standing().why, HasSubstr("a token will be asked for again in "));
    EXPECT_THAT(exchange->standing().why, HasSubstr("busy"));
    EXPECT_THAT(exchange->standing().why, Not(HasSubstr(test_key)));
    exchange->forget(waiter);
}

TEST_F(TokenExchangeTest, RefusesAnswersWithoutAToken) {  // R-AUTH-10
    for (auto const* body :
         {"{}", "nonsense", R"({"jwt":5})", R"({"jwt":""})", R"({"jwt":"a\r\nX-Evil: 1"})"}) {
        fake->push({.body = body});
        Waiter waiter;
        (void)exchange->get(waiter);
        clock->run_ready();
        ASSERT_EQ(waiter.told, 1) << body;
        EXPECT_EQ(waiter.credential->error().kind(), ErrorKind::validation);
        EXPECT_THAT(waiter.credential->error().what(), HasSubstr("/api/v1/auth/token"));
    }
}

TEST_F(TokenExchangeTest, PassesOnWhyThereIsNoCredential) {  // R-AUTH-20
    raw->now = Result<Credential>{
        ErrorDetails{.kind = ErrorKind::validation, .message = "printed nothing"}};
    Waiter waiter;
    EXPECT_FALSE(exchange->get(waiter));
    EXPECT_EQ(waiter.told, 0) << "never inside the request for it";
    clock->run_ready();
    ASSERT_EQ(waiter.told, 1);
    EXPECT_STREQ(waiter.credential->error().what(), "printed nothing");
    EXPECT_EQ(fake->sent_count(), 0U);
}

TEST_F(TokenExchangeTest, WaitsForACredentialThatIsBeingMade) {  // R-AUTH-20
    raw->now.reset();
    Waiter waiter;
    (void)exchange->get(waiter);
    clock->run_ready();
    EXPECT_EQ(fake->sent_count(), 0U);
    fake->push(answer(jwt(1h)));
    raw->waiter->on_credential(std::make_shared<std::string const>("tml-from-command"));
    clock->run_ready();
    EXPECT_EQ(fake->sent().at(0).header("x-api-key"), "tml-from-command");
    EXPECT_EQ(waiter.told, 1);
}

TEST_F(TokenExchangeTest, WhoForgoesItIsNotTold) {
    fake->on("POST", "/api/v1/auth/token").hold();
    Waiter gone;
    Waiter stays;
    Waiter dropped;
    (void)exchange->get(gone);
    (void)exchange->get(stays);
    (void)exchange->get(dropped);
    exchange->forget(gone);
    stays.then = [&] { exchange->forget(dropped); };  // while they are being told
    clock->run_ready();
    fake->release_next(answer(jwt(1h)));
    clock->run_ready();
    EXPECT_EQ(gone.told, 0);
    EXPECT_EQ(stays.told, 1);
    EXPECT_EQ(dropped.told, 0);
}

TEST_F(TokenExchangeTest, StoppingEndsTheRenewals) {  // R-AUTH-16
    auto const token = jwt(1000s);
    fake->push(answer(token));
    (void)fetch();
    exchange->stop();
    EXPECT_EQ(clock->pending_timers(), 0U);
    clock->advance(2000s);
    EXPECT_EQ(fake->sent_count(), 1U);
    EXPECT_EQ(fetch(), token) << "for what is still to be sent";
}

TEST_F(TokenExchangeTest, StoppingEndsAnExchangeUnderWay) {  // R-AUTH-16, R-SESS-21
    fake->on("POST", "/api/v1/auth/token").hold();
    Waiter waiter;
    (void)exchange->get(waiter);
    clock->run_ready();
    exchange->stop();
    ASSERT_EQ(waiter.told, 1);
    EXPECT_EQ(waiter.credential->error().kind(), ErrorKind::cancelled);
    EXPECT_EQ(fake->cancelled_count(), 1U);
    Waiter late;
    auto const refused = exchange->get(late);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->error().kind(), ErrorKind::cancelled);
}

TEST_F(TokenExchangeTest, SessionsUseTheConfiguredCredentialUntilTheyExchangeIt) {  // R-CONF-20
    auto const plain = std::make_shared<FixedCredential>("tml-plain");
    SessionCredential credential{plain, "tml-plain"};
    Waiter waiter;
    EXPECT_EQ(**(*credential.get(waiter)), "tml-plain");
    EXPECT_EQ(credential.exchanged(), nullptr);
    credential.exchange(plain, *http);
    auto const token = jwt(1h);
    fake->push(answer(token));
    EXPECT_FALSE(credential.get(waiter));
    clock->run_ready();
    EXPECT_EQ(***waiter.credential, token);
    EXPECT_EQ(credential.identity(), "tml-plain") << "never the token";
    credential.stop();
}

}  // namespace
}  // namespace tinkxx::service
