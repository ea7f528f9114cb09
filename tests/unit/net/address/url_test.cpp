#include "net/address/url.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <tuple>

namespace tinkxx::net {
namespace {

TEST(ParseUrl, TakesSchemeHostPortAndTargetApart) {
    auto const url = parse_url("https://api.example.com:8443/v1/sample?x=1&y=2#part").value();
    EXPECT_TRUE(url.origin.tls);
    EXPECT_EQ(url.origin.host, "api.example.com");
    EXPECT_EQ(url.origin.port, 8443);
    EXPECT_EQ(url.target, "/v1/sample?x=1&y=2");
}

TEST(ParseUrl, FillsInDefaultPortAndPath) {
    auto const plain = parse_url("http://h").value();
    EXPECT_FALSE(plain.origin.tls);
    EXPECT_EQ(plain.origin.port, 80);
    EXPECT_EQ(plain.target, "/");
    EXPECT_EQ(parse_url("https://h").value().origin.port, 443);
    EXPECT_EQ(parse_url("https://h:").value().origin.port, 443);
    EXPECT_EQ(parse_url("http://h?a=b").value().target, "/?a=b");
    EXPECT_EQ(parse_url("http://h#f").value().target, "/");
}

TEST(ParseUrl, LowersSchemeAndHostButNotTheTarget) {
    auto const url = parse_url("HTTPS://API.Example.COM/Path?Q").value();
    EXPECT_TRUE(url.origin.tls);
    EXPECT_EQ(url.origin.host, "api.example.com");
    EXPECT_EQ(url.target, "/Path?Q");
}

TEST(ParseUrl, TakesHostsAsTheyOccur) {
    EXPECT_EQ(parse_url("http://my_service-1:8000/").value().origin.host, "my_service-1");
    EXPECT_EQ(parse_url("http://127.0.0.1:1/").value().origin.host, "127.0.0.1");
    auto const ipv6 = parse_url("http://[2001:DB8::1]:81/x").value();
    EXPECT_EQ(ipv6.origin.host, "2001:db8::1");
    EXPECT_EQ(ipv6.origin.port, 81);
    EXPECT_EQ(parse_url("http://[::1]").value().origin.port, 80);
}

TEST(ParseUrl, PassesTheTargetThroughRaw) {
    EXPECT_EQ(parse_url("http://h/a%2Fb%zz/{x}|\\'?q=[1]&\xc3\xa9").value().target,
              "/a%2Fb%zz/{x}|\\'?q=[1]&\xc3\xa9");
}

TEST(ParseUrl, RefusesWhatCannotBeSent) {
    for (std::string const text : {
             "",
             "h/path",
             "ftp://h/",
             "http:/h/",
             "http:///path",
             "http://:80/",
             "http://h:0/",
             "http://h:65536/",
             "http://h:8o/",
             "http://h:-1/",
             "http://h:80:80/",
             "http://h h/",
             "http://h\\evil/",
             "http://h%41/",
             "http://[::1/",
             "http://[::g]/",
             "http://[::1]80/",
             "http://::1/",
             "http://h/a b",
             "http://h/a\r\nX: y",
             "http://h/\x7f",
         }) {
        auto const url = parse_url(text);
        ASSERT_FALSE(url.has_value()) << text;
        EXPECT_EQ(url.error().kind(), ErrorKind::validation) << text;
        EXPECT_EQ(url.error().field(), "url") << text;
    }
    EXPECT_FALSE(parse_url("http://" + std::string(255, 'a')).has_value());
    EXPECT_FALSE(parse_url(std::string{"http://h/\0x", 11}).has_value());
    EXPECT_FALSE(parse_url(std::string{"http://[::1\0x]/", 15}).has_value());
}

TEST(ParseUrl, NeverShowsACredential) {  // R-ERR-04
    for (std::string const text :
         {"https://user:hunter2@h/", "http://hunter2@h", "https://user:hunter2/x@h/",
          "https://user:hunter2?x@h/", "user:hunter2@h", "ftp://user:hunter2@h/",
          "https://h h/?key=hunter2", "https://h h/#hunter2"}) {
        auto const url = parse_url(text);
        ASSERT_FALSE(url.has_value()) << text;
        EXPECT_EQ(std::string{url.error().what()}.find("hunter2"), std::string::npos)
            << url.error().what();
        EXPECT_EQ(url.error().value().find("hunter2"), std::string_view::npos);
    }
}

TEST(ParseUrl, NamesTheUrlShortlyAndPrintably) {
    auto const url = parse_url("ftp://h/\x1b[31m" + std::string(5000, 'x'));
    std::string const message = url.error().what();
    EXPECT_NE(message.find("ftp://h/?[31mxxx"), std::string::npos) << message;
    EXPECT_LT(message.size(), 400U);
}

TEST(Origin, WritesItsAuthorityAsAHostHeaderHasIt) {
    EXPECT_EQ((Origin{.tls = true, .host = "h", .port = 443}.authority()), "h");
    EXPECT_EQ((Origin{.tls = false, .host = "h", .port = 80}.authority()), "h");
    EXPECT_EQ((Origin{.tls = false, .host = "h", .port = 443}.authority()), "h:443");
    EXPECT_EQ((Origin{.tls = true, .host = "::1", .port = 443}.authority()), "[::1]");
    EXPECT_EQ((Origin{.tls = true, .host = "::1", .port = 8443}.authority()), "[::1]:8443");
}

TEST(Origin, SurvivesARoundTripThroughItsAuthority) {
    EXPECT_TRUE(rc::check([](bool tls, std::uint16_t port) {
        RC_PRE(port != 0);
        auto const host = *rc::gen::oneOf(
            rc::gen::element<std::string>("::1", "fe80::1:2", "127.0.0.1", "10.1.2.3"),
            rc::gen::suchThat(
                rc::gen::container<std::string>(
                    rc::gen::elementOf(std::string{"abcdefghijklmnopqrstuvwxyz0123456789-._"})),
                [](std::string const& name) { return !name.empty() && name.size() <= 254; }));
        Origin const origin{.tls = tls, .host = host, .port = port};
        auto const text = (tls ? "https://" : "http://") + origin.authority() + "/p?q";
        auto const url = parse_url(text);
        RC_ASSERT(url.has_value());
        RC_ASSERT(url->origin == origin);
        RC_ASSERT(url->target == "/p?q");
    }));
}

TEST(ResolveReference, FollowsTheExamplesOfTheStandard) {
    // RFC 3986, 5.4.
    for (auto const& [reference, expected] :
         std::initializer_list<std::pair<char const*, char const*>>{
             {"g", "http://a/b/c/g"},
             {"./g", "http://a/b/c/g"},
             {"g/", "http://a/b/c/g/"},
             {"/g", "http://a/g"},
             {"//g", "http://g/"},
             {"?y", "http://a/b/c/d;p?y"},
             {"g?y", "http://a/b/c/g?y"},
             {"#s", "http://a/b/c/d;p?q"},
             {"g#s", "http://a/b/c/g"},
             {";x", "http://a/b/c/;x"},
             {"", "http://a/b/c/d;p?q"},
             {".", "http://a/b/c/"},
             {"..", "http://a/b/"},
             {"../g", "http://a/b/g"},
             {"../../g", "http://a/g"},
             {"../../../g", "http://a/g"},
             {"../../../..", "http://a/"},
             {"/a//b/./c/..//", "http://a/a//b//"},
             {"//g?y", "http://g/?y"},
             {"../../../../g?../x", "http://a/g?../x"},
             {"g;x=1/../y", "http://a/b/c/y"}}) {
        EXPECT_EQ(resolve_reference("http://a/b/c/d;p?q", reference).value(), expected)
            << reference;
    }
}

TEST(ResolveReference, TakesAbsoluteUrls) {
    EXPECT_EQ(resolve_reference("http://a/b", "https://c:8443/d?e#f").value(),
              "https://c:8443/d?e");
    EXPECT_EQ(resolve_reference("https://a_b:81/x", "/y").value(), "https://a_b:81/y");
    EXPECT_EQ(resolve_reference("https://[::1]:81/x", "y").value(), "https://[::1]:81/y");
}

TEST(ResolveReference, EncodesWhatServersForgetTo) {
    EXPECT_EQ(resolve_reference("http://a/", " /x y/[z]?q={1}|\"\xc3\xa9%zz%41 ").value(),
              "http://a/x%20y/%5Bz%5D?q=%7B1%7D%7C%22%C3%A9%25zz%41");
    EXPECT_EQ(resolve_reference("http://a/{b}/c", "d").value(), "http://a/%7Bb%7D/d");
}

TEST(ResolveReference, RefusesControlCharactersAndNonsense) {
    EXPECT_FALSE(resolve_reference("http://a/", "/x\r\ny").has_value());
    EXPECT_FALSE(resolve_reference("http://a/", "http://[zz]/").has_value());
    EXPECT_FALSE(resolve_reference("http://a/", "mailto:x").has_value());
    EXPECT_FALSE(resolve_reference("not a url", "/x").has_value());
}

}  // namespace
}  // namespace tinkxx::net
