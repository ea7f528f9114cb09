#include "net/address/proxy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace tinkxx::net {
namespace {

using Step = ProxyReply::Step;

TEST(ParseProxyUrl, TakesHostPortAndCredentialsApart) {  // R-EXT-70
    auto const proxy = parse_proxy_url("http://us%65r:p%40ss%3Aw@Proxy.local:3128/").value();
    EXPECT_FALSE(proxy.tls);
    EXPECT_EQ(proxy.host, "proxy.local");
    EXPECT_EQ(proxy.port, 3128);
    EXPECT_EQ(proxy.user, "user");
    EXPECT_EQ(proxy.password, "p@ss:w");
    EXPECT_EQ(proxy.authorization(), "Basic dXNlcjpwQHNzOnc=");
    EXPECT_EQ(proxy.display(), "http://proxy.local:3128");
}

TEST(ParseProxyUrl, FillsInThePortOfTheScheme) {  // R-EXT-70
    EXPECT_EQ(parse_proxy_url("http://p").value().port, 80);
    auto const secure = parse_proxy_url("HTTPS://[::1]").value();
    EXPECT_TRUE(secure.tls);
    EXPECT_EQ(secure.port, 443);
    EXPECT_EQ(secure.host, "::1");
    EXPECT_EQ(secure.display(), "https://[::1]:443");
    EXPECT_EQ(secure.authorization(), "");
}

TEST(ParseProxyUrl, RefusesWhatIsNoProxyUrl) {  // R-CONF-07
    for (std::string const text : {"", "proxy:3128", "socks5://p:1080", "http://", "http://:3128",
                                   "http://p:0", "http://p:65536", "http://p:x", "http://p/path",
                                   "http://p?q", "http://u:%zz@p", "http://u:%4@p", "http://p q"}) {
        auto const proxy = parse_proxy_url(text);
        ASSERT_FALSE(proxy.has_value()) << text;
        EXPECT_EQ(proxy.error().kind(), ErrorKind::validation) << text;
        EXPECT_EQ(proxy.error().field(), "proxy.url") << text;
    }
}

TEST(ParseProxyUrl, NeverShowsCredentials) {  // R-CONF-12, R-ERR-04
    for (std::string const text :
         {"http://alice:hunter2@p:0", "socks5://alice:hunter2@p", "alice:hunter2@p",
          "http://alice:hunter2/@p:x", "http://alice:hunter2%zz@p"}) {
        auto const proxy = parse_proxy_url(text);
        ASSERT_FALSE(proxy.has_value()) << text;
        std::string const message = proxy.error().what();
        EXPECT_EQ(message.find("hunter2"), std::string::npos) << message;
        EXPECT_EQ(message.find("alice"), std::string::npos) << message;
        EXPECT_EQ(proxy.error().value().find("hunter2"), std::string_view::npos);
    }
}

TEST(ConnectHead, CarriesBasicCredentialsOfTheUrl) {  // R-EXT-70
    auto const proxy = parse_proxy_url("http://user:pass@p").value();
    EXPECT_EQ(connect_head(proxy, {}, "api.example.com", 443),
              "CONNECT api.example.com:443 HTTP/1.1\r\n"
              "Host: api.example.com:443\r\n"
              "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n");
}

TEST(ConnectHead, CarriesGivenHeadersInTheirPlace) {  // R-EXT-70
    auto const proxy = parse_proxy_url("http://user:pass@p").value();
    EXPECT_EQ(
        connect_head(proxy, {{"Proxy-Authorization", "Bearer t"}, {"X-Team", "a b"}}, "::1", 80),
        "CONNECT [::1]:80 HTTP/1.1\r\n"
        "Host: [::1]:80\r\n"
        "Proxy-Authorization: Bearer t\r\n"
        "X-Team: a b\r\n\r\n");
}

TEST(ConnectHead, NeedsNoCredentials) {
    EXPECT_EQ(connect_head(parse_proxy_url("http://p").value(), {}, "h", 1),
              "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n");
}

TEST(CheckProxyHeaders, RefusesLinesThatWouldSmuggleOthersIn) {
    EXPECT_TRUE(check_proxy_headers({{"X-A", "b\tc \xc3\xa9"}}).has_value());
    for (Header const& line : {Header{"X-A", "b\r\nX-B: c"}, Header{"X-A", std::string{"b\0", 2}},
                               Header{"X A", "b"}, Header{"", "b"}, Header{"X:", "b"}}) {
        auto const checked = check_proxy_headers({{"Good", "1"}, line});
        ASSERT_FALSE(checked.has_value()) << line.name;
        EXPECT_EQ(checked.error().field(), "proxy.headers");
    }
    auto const secret = check_proxy_headers({{"Proxy-Authorization", "hunter2\n"}});
    EXPECT_EQ(std::string{secret.error().what()}.find("hunter2"), std::string::npos);
}

TEST(NoProxy, CoversNamesAndTheirSubdomains) {
    NoProxy const rules{" example.com , .internal,*.corp ,UPPER.case, host:8080"};
    EXPECT_TRUE(rules.matches("example.com", 443));
    EXPECT_TRUE(rules.matches("api.example.com", 443));
    EXPECT_TRUE(rules.matches("api.example.com.", 443));
    EXPECT_FALSE(rules.matches("badexample.com", 443));
    EXPECT_FALSE(rules.matches("example.com.evil", 443));
    EXPECT_TRUE(rules.matches("a.internal", 1));
    EXPECT_TRUE(rules.matches("internal", 1));
    EXPECT_TRUE(rules.matches("x.corp", 1));
    EXPECT_TRUE(rules.matches("upper.case", 1));
    EXPECT_TRUE(rules.matches("host", 8080));
    EXPECT_FALSE(rules.matches("host", 8081));
    EXPECT_FALSE(rules.matches("other", 443));
}

// Line by line like the test above: a failure then names the rule that does not hold.
TEST(NoProxy, CoversAddressesAndRanges) {
    NoProxy const rules{"127.0.0.1,10.0.0.0/8,192.168.1.0/25,::1,[fe80::1]:81,2001:db8::/33"};
    EXPECT_TRUE(rules.matches("127.0.0.1", 1));
    EXPECT_FALSE(rules.matches("127.0.0.2", 1));
    EXPECT_TRUE(rules.matches("10.255.0.1", 1));
    EXPECT_FALSE(rules.matches("11.0.0.1", 1));
    EXPECT_TRUE(rules.matches("192.168.1.127", 1));
    EXPECT_FALSE(rules.matches("192.168.1.128", 1));
    EXPECT_TRUE(rules.matches("::1", 1));
    EXPECT_TRUE(rules.matches("0:0:0:0:0:0:0:1", 1));
    EXPECT_TRUE(rules.matches("fe80::1", 81));
    EXPECT_FALSE(rules.matches("fe80::1", 82));
    EXPECT_TRUE(rules.matches("2001:db8:7fff::1", 1));
    EXPECT_FALSE(rules.matches("2001:db8:8000::1", 1));
    // A name is no address, even where the text would end alike.
    EXPECT_FALSE(rules.matches("x.127.0.0.1", 1));
    EXPECT_FALSE(NoProxy{"0.0.1"}.matches("10.0.0.1", 1));
}

TEST(NoProxy, KeepsTheFamiliesApart) {
    EXPECT_FALSE(NoProxy{"::/0"}.matches("10.0.0.1", 1));
    EXPECT_TRUE(NoProxy{"::/0"}.matches("2001::1", 1));
    EXPECT_FALSE(NoProxy{"0.0.0.0/0"}.matches("2001::1", 1));
    EXPECT_TRUE(NoProxy{"0.0.0.0/0"}.matches("10.0.0.1", 1));
}

TEST(NoProxy, CoversAllWithAStar) {
    EXPECT_TRUE(NoProxy{"x, *"}.matches("anything", 1));
    EXPECT_FALSE(NoProxy{""}.matches("anything", 1));
    EXPECT_FALSE(NoProxy{}.matches("anything", 1));
}

TEST(NoProxy, LeavesOutWhatMeansNothing) {
    NoProxy const rules{",,10.0.0.0/33,10.0.0.0/x,/8,a b,h:99999,::1/129,good"};
    EXPECT_TRUE(rules.matches("good", 1));
    EXPECT_FALSE(rules.matches("10.0.0.1", 1));
    EXPECT_FALSE(rules.matches("h", 1));
    EXPECT_FALSE(rules.matches("::1", 1));
}

struct Fed {
    Step step{Step::more};
    std::size_t used{0};
};

Fed feed(ProxyReply& reply, std::string_view text, std::size_t chunk) {
    Fed fed;
    while (fed.used < text.size() && fed.step == Step::more) {
        auto const part = text.substr(fed.used, chunk);
        std::size_t used = 0;
        fed.step = reply.feed(part, used);
        fed.used += used;
    }
    return fed;
}

TEST(ProxyReply, EndsWithTheHeadHoweverItArrives) {
    std::string const head = "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n";
    EXPECT_TRUE(rc::check([&head](std::string const& tunnel) {
        ProxyReply reply;
        auto const chunk = *rc::gen::inRange<std::size_t>(1, head.size() + 20);
        auto const fed = feed(reply, head + tunnel, chunk);
        RC_ASSERT(fed.step == Step::done);
        RC_ASSERT(fed.used == head.size());  // what follows belongs to the tunnel
        RC_ASSERT(reply.status() == 200);
        RC_ASSERT(reply.reason() == "Connection established");
    }));
}

TEST(ProxyReply, SkipsInterimAnswers) {
    ProxyReply reply;
    std::string const text = "HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.0 407\r\n\r\n";
    EXPECT_EQ(feed(reply, text, 7).step, Step::done);
    EXPECT_EQ(reply.status(), 407);
    EXPECT_EQ(reply.reason(), "");
}

TEST(ProxyReply, ToleratesBareNewlines) {
    ProxyReply reply;
    EXPECT_EQ(feed(reply, "HTTP/1.1 200 OK\nA: b\n\n", 100).step, Step::done);
}

TEST(ProxyReply, RefusesWhatIsNotHttp) {
    for (std::string const text :
         {"SSH-2.0-OpenSSH\r\n", "HTTP/2 200 OK\r\n", "HTTP/1.1 20 OK\r\n", "HTTP/1.1 2000 OK\r\n",
          "HTTP/1.1  200\r\n", "HTTP/1.1 -10 x\r\n", "\r\n", "HTTP/1.1 099 x\r\n"}) {
        ProxyReply reply;
        EXPECT_EQ(feed(reply, text, 100).step, Step::error) << text;
        EXPECT_EQ(reply.error_text(), "its answer is not HTTP") << text;
    }
    ProxyReply reply;
    EXPECT_EQ(feed(reply, "HTTP/1.1 101 Switching\r\n\r\n", 100).step, Step::error);
}

TEST(ProxyReply, BoundsTheHead) {
    ProxyReply long_line;
    EXPECT_EQ(feed(long_line, std::string(20000, 'x'), 999).step, Step::error);
    ProxyReply many_interims;
    std::string interims;
    while (interims.size() < 20000) interims += "HTTP/1.1 102 Processing\r\n\r\n";
    EXPECT_EQ(feed(many_interims, interims, 999).step, Step::error);
    EXPECT_EQ(many_interims.error_text(), "its answer has too long a head");
}

TEST(ProxyReply, MakesTheReasonPrintableAndShort) {
    ProxyReply reply;
    feed(reply, "HTTP/1.1 503 \x1b[31m" + std::string(500, 'x') + "\r\n\r\n", 100);
    EXPECT_EQ(reply.reason().substr(0, 6), "?[31mx");
    EXPECT_EQ(reply.reason().size(), 100U);
}

}  // namespace
}  // namespace tinkxx::net
