#include "service/text/endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string url(std::string_view base, std::string_view path) {
    return Endpoint::parse(base).value().url(path, {}, {});
}

TEST(Endpoint, AppendsPathsToTheBasePath) {  // R-CONF-03
    EXPECT_EQ(url("http://h:8000", "api/v1/x"), "http://h:8000/api/v1/x");
    EXPECT_EQ(url("http://h:8000/", "/api/v1/x"), "http://h:8000/api/v1/x");
    EXPECT_EQ(url("https://h/services/prod", "/api"), "https://h/services/prod/api");
    EXPECT_EQ(url("https://h/services/prod/", "api"), "https://h/services/prod/api");
}

TEST(Endpoint, KeepsPathParametersRaw) {
    EXPECT_EQ(url("http://h", "/training_runs/S:train:0/weights/a"),
              "http://h/training_runs/S:train:0/weights/a");
    EXPECT_EQ(url("http://h", "/a b"), "http://h/a%20b");
    EXPECT_EQ(url("http://h", "/50%"), "http://h/50%");
    EXPECT_EQ(url("http://h", "/\xc3\xa9#x"), "http://h/%C3%A9%23x");
    EXPECT_EQ(url("http://h", "/x\r\ny"), "http://h/x%0D%0Ay");
}

TEST(Endpoint, JoinsTheQueries) {  // R-EXT-90
    auto const endpoint = Endpoint::parse("http://h").value();
    EXPECT_EQ(endpoint.url("/x?limit=5&keep=a%20b", {{"limit", 1}, {"site", "s"}}, {{"offset", 2}}),
              "http://h/x?site=s&limit=5&keep=a%20b&offset=2");
}

TEST(Endpoint, TakesAbsoluteUrlsAsTheyAre) {
    EXPECT_EQ(url("http://h/base", "https://store/a?sig=x%2Fy"), "https://store/a?sig=x%2Fy");
}

TEST(Endpoint, KnowsWhichUrlsAreItsOwn) {
    auto const endpoint = Endpoint::parse("https://Host/base").value();
    EXPECT_TRUE(endpoint.owns("https://host:443/else"));
    EXPECT_FALSE(endpoint.owns("http://host/base"));
    EXPECT_FALSE(endpoint.owns("https://host:444/base"));
    EXPECT_FALSE(endpoint.owns("https://host.evil/base"));
    EXPECT_FALSE(endpoint.owns("https://host@evil/base"));
}

TEST(Endpoint, KeyIsTheSameForTheSameService) {  // R-CONF-11
    auto const key = [](std::string_view base) {
        return std::string{Endpoint::parse(base).value().key()};
    };
    EXPECT_EQ(key("HTTPS://Example.COM:443/a/"), "https://example.com/a");
    EXPECT_EQ(key("https://example.com/a"), key("https://EXAMPLE.com:443/a//"));
    EXPECT_NE(key("https://example.com/a"), key("https://example.com/b"));
    EXPECT_NE(key("https://example.com"), key("http://example.com"));
    EXPECT_EQ(key("http://h:8000"), "http://h:8000");
    EXPECT_EQ(key("http://[::1]:80/"), "http://[::1]");
}

TEST(Endpoint, RefusesWhatIsNoBaseUrl) {  // R-CONF-06
    for (auto const* bad :
         {"", "h", "h:8000", "/path", "ftp://h", "http://", "http:///x", "http://h:0",
          "http://h:65536", "http://h:x", "http://h?q=1", "http://h#f", "http://h h", "http:h"}) {
        auto const parsed = Endpoint::parse(bad);
        ASSERT_FALSE(parsed) << bad;
        EXPECT_EQ(parsed.error().kind(), ErrorKind::validation);
        EXPECT_EQ(parsed.error().field(), "base_url");
        EXPECT_EQ(parsed.error().value(), bad);
        EXPECT_EQ(parsed.error().category(), ErrorCategory::user);
        EXPECT_THAT(parsed.error().what(), HasSubstr(bad));
    }
}

TEST(Endpoint, RefusesCredentialsWithoutTellingThem) {  // R-ERR-04
    auto const parsed = Endpoint::parse("http://user:hunter2@h/");
    ASSERT_FALSE(parsed);
    EXPECT_THAT(parsed.error().what(), Not(HasSubstr("hunter2")));
    EXPECT_THAT(std::string{parsed.error().value()}, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace tinkxx::service
