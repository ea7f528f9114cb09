// Proxies by CONNECT.  R-EXT-70
#include "socket/modes.hpp"
#include "support/servers/connect_proxy.hpp"

#include <tinkxx/error.hpp>

#include <gmock/gmock.h>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class ProxyModes : public testing::TestWithParam<Mode> {
protected:
    HttpServer server{echo, server_options(GetParam())};
    NetOptions options{net_options(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(, ProxyModes, all_modes(), mode_name);

TEST_P(ProxyModes, AllTrafficGoesThroughATunnel) {  // R-EXT-70
    ConnectProxy proxy;
    options.proxy.url = proxy.url();
    HttpDriver driver{options};
    auto const body = pattern(500'000);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(driver.post(server.url(), body).body == body);
    auto const requests = proxy.requests();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].method, "CONNECT");
    EXPECT_EQ(requests[0].target, "127.0.0.1:" + std::to_string(server.port()));
    EXPECT_EQ(requests[0].header("host"), requests[0].target);
    EXPECT_FALSE(requests[0].headers.contains("proxy-authorization"));
}

TEST_P(ProxyModes, NameLookupIsLeftToTheProxy) {
    if (GetParam().tls) GTEST_SKIP() << "the certificate names loopback only";
    ConnectProxy proxy;
    options.proxy.url = proxy.url();
    HttpDriver driver{options};
    auto const outcome =
        driver.post("http://only.the.proxy.knows.invalid:" + std::to_string(server.port()), "x");
    EXPECT_EQ(outcome.body, "x") << outcome.text();
    EXPECT_THAT(proxy.requests().at(0).target, HasSubstr("only.the.proxy.knows.invalid:"));
}

TEST_P(ProxyModes, CredentialsOfTheUrlBecomeBasicAuthorization) {  // R-EXT-70
    // "user" and "pass word/", percent-encoded in the URL.
    ConnectProxy proxy{{.authorization = "Basic dXNlcjpwYXNzIHdvcmQv"}};
    options.proxy.url = proxy.url("user:pass%20word%2F");
    HttpDriver driver{options};
    EXPECT_EQ(driver.post(server.url(), "x").body, "x");
}

TEST_P(ProxyModes, GivenHeadersStandInPlaceOfTheCredentials) {  // R-EXT-70
    ConnectProxy proxy{{.authorization = "Bearer given"}};
    options.proxy.url = proxy.url("user:ignored");
    options.proxy.headers.add("Proxy-Authorization", "Bearer given");
    options.proxy.headers.add("X-Proxy-Hint", "here");
    HttpDriver driver{options};
    EXPECT_EQ(driver.post(server.url(), "x").body, "x");
    auto const requests = proxy.requests();
    EXPECT_EQ(requests.at(0).header("x-proxy-hint"), "here");
}

TEST_P(ProxyModes, HeadersOfTheRequestAreNotForTheProxy) {  // R-ERR-04
    ConnectProxy proxy;
    options.proxy.url = proxy.url();
    HttpDriver driver{options};
    auto request = post_request(server.url(), "x");
    request.headers.add("X-API-Key", "tml-secret");
    EXPECT_EQ(driver.run(request).body, "x");
    EXPECT_FALSE(proxy.requests().at(0).headers.contains("x-api-key"));
}

TEST_P(ProxyModes, WrongCredentialsAreReportedWithoutThem) {  // R-ERR-04
    ConnectProxy proxy{{.authorization = "Basic cmlnaHQ6cmlnaHQ="}};
    options.proxy.url = proxy.url("user:hunter2");
    HttpDriver driver{options};
    auto const outcome = driver.post(server.url(), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::proxy) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
    EXPECT_THAT(outcome.failure->message, HasSubstr("407"));
    EXPECT_THAT(outcome.failure->message, Not(HasSubstr("hunter2")));
    EXPECT_EQ(server.counts().connections, 0);
}

TEST_P(ProxyModes, ARefusalOfTheProxyIsReportedWithItsStatus) {
    for (int const status : {403, 502, 503}) {
        ConnectProxy proxy{{.refuse_with = status}};
        options.proxy.url = proxy.url();
        HttpDriver driver{options};
        auto const outcome = driver.post(server.url(), "x");
        ASSERT_TRUE(outcome.failure) << outcome.text();
        EXPECT_EQ(outcome.failure->kind, FailureKind::proxy) << outcome.text();
        EXPECT_THAT(outcome.failure->message, HasSubstr(std::to_string(status)));
    }
}

TEST_P(ProxyModes, AProxyMayBeReachedByTls) {
    ConnectProxy proxy{{.authorization = "Basic dTpw", .tls = tls_server("")}};
    options.tls.ca_file = certificates().ca_file();
    options.proxy.url = proxy.url("u:p");
    HttpDriver driver{options};
    auto const body = pattern(300'000);
    auto const outcome = driver.post(server.url(), body);
    EXPECT_TRUE(outcome.body == body) << outcome.text();
}

TEST_P(ProxyModes, HostsOfNoProxyAreReachedDirectly) {
    ConnectProxy proxy{{.refuse_with = 403}};
    options.proxy.url = proxy.url();
    for (std::string const& list :
         {std::string{"127.0.0.1"}, std::string{"example.com, 127.0.0.0/8"}, std::string{"*"},
          "127.0.0.1:" + std::to_string(server.port())}) {
        options.proxy.no_proxy = list;
        HttpDriver driver{options};
        EXPECT_EQ(driver.post(server.url(), "x").body, "x") << list;
    }
    options.proxy.no_proxy = "127.0.0.1:1,example.com,10.0.0.0/8";
    HttpDriver driver{options};
    EXPECT_EQ(driver.post(server.url(), "x").failure->kind, FailureKind::proxy);
}

TEST(Proxy, ThatIsNotThereIsNamed) {
    NetOptions options;
    options.proxy.url = "http://user:hunter2@127.0.0.1:" + std::to_string(free_port());
    HttpDriver driver{options};
    auto const outcome = driver.get("http://example.com/");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_TRUE(outcome.failure->kind == FailureKind::proxy ||
                outcome.failure->kind == FailureKind::connect)
        << outcome.text();
    EXPECT_THAT(outcome.failure->message, HasSubstr("proxy"));
    EXPECT_THAT(outcome.failure->message, Not(HasSubstr("hunter2")));
}

TEST(Proxy, ThatMisbehavesFailsOnceWithAReason) {
    std::vector<std::string> const answers{
        "", "nonsense\r\n\r\n", "HTTP/1.1 200", "HTTP/1.1 999 What\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Bomb: " + std::string(1'000'000, 'b')};
    for (auto const& answer : answers) {
        ScriptServer proxy{[&](Wire& wire) {
            (void)wire.receive_until("\r\n\r\n");
            wire.send(answer);
            wire.finish();
            wire.drain();
        }};
        NetOptions options;
        options.proxy.url = proxy.url("");
        HttpDriver driver{options};
        auto const outcome = driver.get("http://example.com/");
        ASSERT_TRUE(outcome.failure) << outcome.text();
        EXPECT_EQ(outcome.failure->kind, FailureKind::proxy) << outcome.text();
        EXPECT_EQ(outcome.failure->seen, Seen::no);
    }
}

TEST(Proxy, ThatStallsIsPartOfConnecting) {
    ScriptServer proxy{[](Wire& wire) { wire.drain(); }};
    NetOptions options;
    options.proxy.url = proxy.url("");
    HttpDriver driver{options};
    auto request = get_request("http://example.com/");
    request.timeouts.connect = 80ms;
    EXPECT_EQ(driver.run(request).failure->kind, FailureKind::connect_timeout);
}

TEST(Proxy, ThatCannotBeReadIsRefusedBeforeAnythingIsSent) {  // R-CONF-07
    Runtime runtime;
    for (std::string const url :
         {"ftp://127.0.0.1", "http://", "127.0.0.1:8080", "http://127.0.0.1:0",
          "http://127.0.0.1:65536", "http://user:hunter2@"}) {
        NetOptions options;
        options.proxy.url = url;
        try {
            (void)net_transport(runtime, options);
            ADD_FAILURE() << url << " was accepted";
        } catch (ValidationError const& error) {
            EXPECT_THAT(error.what(), HasSubstr("proxy"));
            EXPECT_THAT(error.what(), Not(HasSubstr("hunter2")));
        }
    }
}

}  // namespace
}  // namespace tinkxx::test
