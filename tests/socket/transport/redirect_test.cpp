// Redirects: which are followed, and what does not travel along.
#include "socket/modes.hpp"

#include <mutex>

namespace tinkxx::test {
namespace {

/// Answers `/from/<status>` with a redirect to `target`, and anything else with 200, and keeps
/// what it was asked.
class Redirector {
public:
    explicit Redirector(Mode mode)
        : server_{[this](ReceivedRequest const& request) { return handle(request); },
                  server_options(mode)} {}

    void send_to(std::string target) {
        std::lock_guard const lock{mutex_};
        target_ = std::move(target);
    }
    [[nodiscard]] std::string url(std::string_view path) const { return server_.url(path); }
    [[nodiscard]] std::vector<ReceivedRequest> requests() const {
        std::lock_guard const lock{mutex_};
        return requests_;
    }

private:
    Reaction handle(ReceivedRequest const& request) {
        std::lock_guard const lock{mutex_};
        requests_.push_back(request);
        if (!request.target.starts_with("/from/3")) {
            return {.answer = {.body = request.method + " " + request.body}};
        }
        return {.answer = {.status = std::stoi(request.target.substr(6)),
                           .headers = {{"location", target_}},
                           .body = "moved"}};
    }

    mutable std::mutex mutex_;
    std::string target_{"/there"};
    std::vector<ReceivedRequest> requests_;
    HttpServer server_;
};

class RedirectTest : public testing::TestWithParam<Mode> {
protected:
    HttpDriver driver{net_options(GetParam())};
    Redirector origin{GetParam()};
    Redirector elsewhere{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(, RedirectTest, all_modes(), mode_name);

TEST_P(RedirectTest, AGetFollowsEveryKindOfRedirect) {
    for (int const status : {301, 302, 303, 307, 308}) {
        auto const outcome = driver.get(origin.url("/from/" + std::to_string(status)));
        EXPECT_EQ(outcome.status(), 200) << status << ": " << outcome.text();
        EXPECT_EQ(outcome.body, "GET ");
        EXPECT_EQ(outcome.head->redirected_url, origin.url("/there"));
    }
}

TEST_P(RedirectTest, APostIsRepeatedWithItsBodyFor307And308) {
    for (int const status : {307, 308}) {
        auto const outcome = driver.post(origin.url("/from/" + std::to_string(status)), "payload");
        EXPECT_EQ(outcome.status(), 200) << outcome.text();
        EXPECT_EQ(outcome.body, "POST payload");
    }
}

TEST_P(RedirectTest, APostIsNeverTurnedIntoAGet) {
    for (int const status : {301, 302, 303}) {
        auto const outcome = driver.post(origin.url("/from/" + std::to_string(status)), "payload");
        EXPECT_EQ(outcome.status(), status) << outcome.text();
        EXPECT_EQ(outcome.body, "moved");
    }
    EXPECT_EQ(origin.requests().size(), 3U);
}

TEST_P(RedirectTest, RedirectsAreAnswersWhenTheCallerSaysSo) {
    auto request = get_request(origin.url("/from/302"));
    request.redirects = Redirects::none;

    auto const outcome = driver.run(request);

    EXPECT_EQ(outcome.status(), 302) << outcome.text();
    EXPECT_EQ(outcome.header("location"), "/there");
    EXPECT_EQ(outcome.body, "moved");
    EXPECT_EQ(outcome.head->redirected_url, "");
}

TEST_P(RedirectTest, CredentialsStayWithTheOriginTheyWereMeantFor) {  // R-ERR-04
    origin.send_to(elsewhere.url("/there"));
    auto request = get_request(origin.url("/from/307"));
    request.common_headers =
        std::make_shared<Headers>(Headers{{"X-API-Key", "tml-secret"}, {"x-harmless", "travels"}});
    request.headers.add("Authorization", "Bearer secret");
    request.headers.add("Cookie", "session=secret");
    request.headers.add("Proxy-Authorization", "Basic secret");
    request.headers.add("cf-access-client-secret", "secret");
    request.headers.add("x-tinker-weights-access-token", "secret");
    request.headers.add("x-plain", "travels");

    auto const outcome = driver.run(request);

    ASSERT_EQ(outcome.status(), 200) << outcome.text();
    ASSERT_EQ(origin.requests().size(), 1U);
    EXPECT_EQ(origin.requests()[0].header("x-api-key"), "tml-secret");
    EXPECT_EQ(origin.requests()[0].header("authorization"), "Bearer secret");
    auto const others = elsewhere.requests();
    ASSERT_EQ(others.size(), 1U);
    for (auto const& [name, value] : others[0].headers) {
        EXPECT_EQ(value.find("secret"), std::string::npos) << name << " went to another origin";
    }
    EXPECT_EQ(others[0].header("x-plain"), "travels");
    EXPECT_EQ(others[0].header("x-harmless"), "travels");
}

TEST_P(RedirectTest, CredentialsDoNotComeBackAfterADetour) {  // R-ERR-04
    // origin -> elsewhere -> origin: whoever sits elsewhere chose where the last request goes.
    origin.send_to(elsewhere.url("/from/307"));
    elsewhere.send_to(origin.url("/end"));
    auto request = get_request(origin.url("/from/307"));
    request.headers.add("Authorization", "Bearer secret");

    auto const outcome = driver.run(request);

    ASSERT_EQ(outcome.status(), 200) << outcome.text();
    ASSERT_EQ(origin.requests().size(), 2U);
    EXPECT_FALSE(origin.requests()[1].headers.contains("authorization"));
}

TEST_P(RedirectTest, CredentialsStayOnTheSameOrigin) {
    auto request = get_request(origin.url("/from/308"));
    request.headers.add("Authorization", "Bearer secret");

    ASSERT_EQ(driver.run(request).status(), 200);

    EXPECT_EQ(origin.requests().back().header("authorization"), "Bearer secret");
}

TEST_P(RedirectTest, RelativeLocationsAreSeenFromTheRedirectingPage) {
    origin.send_to("other?x=1#part");
    auto const outcome = driver.get(origin.url("/from/302"));
    EXPECT_EQ(outcome.status(), 200) << outcome.text();
    EXPECT_EQ(origin.requests().back().target, "/from/other?x=1");
}

TEST_P(RedirectTest, ARedirectInACircleEnds) {
    origin.send_to("/from/302");
    auto const outcome = driver.get(origin.url("/from/302"));
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::redirect);
    EXPECT_NE(outcome.failure->message.find("20"), std::string::npos) << outcome.text();
    EXPECT_EQ(origin.requests().size(), 21U);
}

TEST_P(RedirectTest, ARedirectToNowhereOrToAnotherSchemeIsRefused) {
    for (std::string const target : {"ftp://127.0.0.1/", "http://", "file:///etc/passwd",
                                     "http://user:password@127.0.0.1:1/"}) {
        origin.send_to(target);
        auto const outcome = driver.get(origin.url("/from/302"));
        ASSERT_TRUE(outcome.failure) << target << ": " << outcome.text();
        EXPECT_EQ(outcome.failure->kind, FailureKind::redirect);
        EXPECT_EQ(outcome.text().find("password@"), std::string::npos) << outcome.text();
    }
}

TEST(Redirect, FromHttpsToHttpIsRefused) {
    Redirector secure{http2_tls};
    Redirector plain{http1_cleartext};
    secure.send_to(plain.url("/there"));
    auto options = net_options(http2_tls);
    options.http_version = HttpVersion::automatic;
    HttpDriver driver{options};

    auto const outcome = driver.get(secure.url("/from/302"));

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::redirect);
    EXPECT_TRUE(plain.requests().empty());
}

TEST(Redirect, WithoutALocationIsAnAnswer) {
    ScriptServer server{always_answer(http1_answer({.status = 302, .body = "lost"}))};
    HttpDriver driver;
    auto const outcome = driver.get(server.url());
    EXPECT_EQ(outcome.status(), 302) << outcome.text();
    EXPECT_EQ(outcome.body, "lost");
}

}  // namespace
}  // namespace tinkxx::test
