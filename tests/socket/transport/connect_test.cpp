// Names, addresses, and the race between them; requests that cannot be sent at all.
#include "socket/modes.hpp"

#include <tinkxx/error.hpp>

#include <gmock/gmock.h>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(Connect, BothFamiliesAreReached) {
    for (auto const family : {Family::ipv4, Family::ipv6}) {
        HttpServerOptions options;
        options.family = family;
        HttpServer server{echo, options};
        HttpDriver driver;
        EXPECT_EQ(driver.post(server.url(), "x").body, "x");
    }
}

TEST(Connect, AnAddressThatRefusesIsFollowedByTheNextAtOnce) {
    HttpServer server{echo};
    NetOptions options;
    options.resolve["two.example"] = {"::1", "127.0.0.1"};  // nobody listens on the first
    options.connection_attempt_delay = 1h;
    HttpDriver driver{options};
    auto const outcome = driver.post("http://two.example:" + std::to_string(server.port()), "x");
    EXPECT_EQ(outcome.body, "x") << outcome.text();
}

TEST(Connect, AnAddressThatDoesNotAnswerIsOvertakenByTheNext) {
    HttpServer server{echo};
    DeadEnd dead{Family::ipv6, server.port()};
    NetOptions options;
    options.resolve["two.example"] = {"::1", "127.0.0.1"};
    options.connection_attempt_delay = 20ms;
    HttpDriver driver{options};
    auto const outcome = driver.post("http://two.example:" + std::to_string(server.port()), "x");
    EXPECT_EQ(outcome.body, "x") << outcome.text();
    EXPECT_LT(outcome.timing.finished - outcome.timing.started, 4s);
}

TEST(Connect, WhenAllAddressesRefuseTheFailureNamesTheHost) {
    NetOptions options;
    options.resolve["two.example"] = {"::1", "127.0.0.1"};
    HttpDriver driver{options};
    auto const outcome = driver.post("http://two.example:" + std::to_string(free_port()), "x");
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::connect) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
    EXPECT_THAT(outcome.failure->message, HasSubstr("two.example"));
    EXPECT_THAT(outcome.failure->message, HasSubstr("refused"));
}

TEST(Connect, ANameThatDoesNotExistIsNamed) {
    HttpDriver driver;
    auto request = get_request("http://no-such-host.invalid/");
    request.timeouts.connect = 20s;
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::resolve) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
    EXPECT_THAT(outcome.failure->message, HasSubstr("no-such-host.invalid"));
}

TEST(Connect, LocalhostIsLookedUp) {
    HttpServer server{echo};
    HttpDriver driver;
    auto const outcome = driver.post("http://localhost:" + std::to_string(server.port()), "x");
    EXPECT_EQ(outcome.body, "x") << outcome.text();
}

TEST(Connect, CancelWhileTheNameIsLookedUpEndsQuietly) {
    HttpDriver driver;
    auto& exchange = driver.start(get_request("http://no-such-host.invalid/"));
    exchange.cancel();
}

// --- requests that cannot be sent
// -----------------------------------------------------------------

TEST(BadRequest, UrlsThatAreNoneAreRefusedByName) {
    HttpDriver driver;
    for (std::string const url :
         {"", "/path", "example.com", "ftp://example.com/", "http://", "http:///path",
          "http://exa mple.com/", "http://example.com:port/", "http://example.com:0/",
          "http://example.com:65536/", "http://[::1/", "http://example.com/a b",
          "http://example.com/\r\nX-Injected: 1", "file:///etc/passwd", "http://[zz]/"}) {
        auto const outcome = driver.get(url);
        ASSERT_TRUE(outcome.failure) << url;
        EXPECT_EQ(outcome.failure->kind, FailureKind::invalid_request) << url << outcome.text();
        EXPECT_EQ(outcome.failure->seen, Seen::no);
    }
}

TEST(BadRequest, ACredentialInAUrlIsRefusedAndNotRepeated) {  // R-ERR-04
    HttpDriver driver;
    auto const outcome = driver.get("http://user:hunter2@example.com/");
    ASSERT_TRUE(outcome.failure);
    EXPECT_EQ(outcome.failure->kind, FailureKind::invalid_request);
    EXPECT_THAT(outcome.failure->message, Not(HasSubstr("hunter2")));
}

TEST(BadRequest, HeadersThatWouldSplitTheRequestAreRefused) {
    HttpServer server{echo};
    HttpDriver driver;
    for (auto const& bad :
         {Header{"X-A", "a\r\nX-Injected: 1"}, Header{"X-A", "a\nb"}, Header{"X A", "1"},
          Header{"", "1"}, Header{"X-A:", "1"}, Header{"X-A\r\nX-B", "1"},
          Header{"X-A", std::string("nul\0byte", 8)}}) {
        auto request = post_request(server.url(), "x");
        request.headers.add(bad.name, bad.value);
        auto const own = driver.run(request);
        ASSERT_TRUE(own.failure) << bad.name << ": " << bad.value;
        EXPECT_EQ(own.failure->kind, FailureKind::invalid_request) << own.text();

        auto shared = post_request(server.url(), "x");
        shared.common_headers = std::make_shared<Headers>(Headers{bad});
        auto const common = driver.run(shared);
        ASSERT_TRUE(common.failure) << bad.name << ": " << bad.value;
        EXPECT_EQ(common.failure->kind, FailureKind::invalid_request) << common.text();
    }
    EXPECT_EQ(server.counts().connections, 0);
}

TEST(BadRequest, ASecretInABadHeaderIsNotRepeated) {  // R-ERR-04
    HttpDriver driver;
    auto request = get_request("http://127.0.0.1:1/");
    request.headers.add("X-API-Key", "tml-hunter2\n");
    EXPECT_THAT(driver.run(request).failure->message, Not(HasSubstr("hunter2")));
}

TEST(BadRequest, AMethodThatIsNoTokenIsRefused) {
    HttpDriver driver;
    for (std::string const method : {"", "GET /x", "PO\r\nST", "G\tT"}) {
        auto request = get_request("http://127.0.0.1:1/");
        request.method = method;
        EXPECT_EQ(driver.run(request).failure->kind, FailureKind::invalid_request) << method;
    }
}

TEST(BadRequest, NegativeTimeoutsAreRefused) {  // R-CONF-06
    HttpDriver driver;
    for (auto const member : {&Timeouts::connect, &Timeouts::read, &Timeouts::write,
                              &Timeouts::pool, &Timeouts::total}) {
        auto request = get_request("http://127.0.0.1:1/");
        request.timeouts.*member = -1ms;
        auto const outcome = driver.run(request);
        ASSERT_TRUE(outcome.failure);
        EXPECT_EQ(outcome.failure->kind, FailureKind::invalid_request) << outcome.text();
    }
}

TEST(BadRequest, OptionsThatCannotWorkAreRefusedByName) {  // R-CONF-06
    Runtime runtime;
    auto const refuses = [&](auto change, char const* name) {
        NetOptions options;
        change(options);
        try {
            (void)net_transport(runtime, options);
            ADD_FAILURE() << name << " was accepted";
        } catch (ValidationError const& error) {
            EXPECT_THAT(error.what(), HasSubstr(name));
        }
    };
    refuses([](auto& o) { o.max_streams_per_connection = 0; }, "max_streams_per_connection");
    refuses([](auto& o) { o.max_http1_connections = -1; }, "max_http1_connections");
    refuses([](auto& o) { o.max_connections = 0; }, "max_connections");
    refuses([](auto& o) { o.idle_timeout = -1ms; }, "idle_timeout");
    refuses([](auto& o) { o.ping_interval = -1ms; }, "ping_interval");
    refuses([](auto& o) { o.ping_timeout = 0ms; }, "ping_timeout");
    refuses([](auto& o) { o.connection_attempt_delay = -1ms; }, "connection_attempt_delay");
    refuses([](auto& o) { o.max_header_bytes = 10; }, "max_header_bytes");
    refuses([](auto& o) { o.max_redirects = -1; }, "max_redirects");
    refuses([](auto& o) { o.resolve["a.example"] = {"not an address"}; }, "resolve");
}

}  // namespace
}  // namespace tinkxx::test
