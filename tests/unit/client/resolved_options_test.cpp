#include "client/resolved_options.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tinkxx::client {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

Environment environment(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](char const* name) -> std::optional<std::string> {
        auto const found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    };
}

ResolvedOptions resolved(ClientOptions const& options,
                         std::map<std::string, std::string> variables = {}) {
    return resolve(options, environment(std::move(variables)));
}

Error refusal(ClientOptions const& options, std::map<std::string, std::string> variables = {}) {
    try {
        (void)resolved(options, std::move(variables));
    } catch (ValidationError const& e) {
        return e;
    }
    return Error{{.message = "nothing was refused"}};
}

TEST(ResolvedOptions, HaveWorkingDefaults) {  // R-CONF-03
    auto const all = resolved({});
    EXPECT_EQ(all.http.endpoint.base_url(),
              "https://tinker.thinkingmachines.dev/services/tinker-prod");
    EXPECT_EQ(all.api_key, "");
    EXPECT_EQ(all.http.timeouts.connect, 5s);
    EXPECT_EQ(all.http.timeouts.read, 60s);
    EXPECT_EQ(all.http.max_retries, 10);
    EXPECT_FALSE(all.http.dump);
    EXPECT_EQ(*all.http.headers.find("x-stainless-package-version"), "0.36.0");
    EXPECT_EQ(all.net.proxy, ProxyOptions{});
}

TEST(ResolvedOptions, PreferTheOptionToTheEnvironment) {  // R-CONF-01
    std::map<std::string, std::string> const variables{{"TINKER_BASE_URL", "http://env"},
                                                       {"TINKER_API_KEY", "tml-env"},
                                                       {"TINKXX_PROXY", "http://envproxy"},
                                                       {"NO_PROXY", "env.local"},
                                                       {"TINKXX_DUMP_HEADERS", "yes"}};
    auto const from_env = resolved({}, variables);
    EXPECT_EQ(from_env.http.endpoint.base_url(), "http://env");
    EXPECT_EQ(from_env.api_key, "tml-env");
    EXPECT_EQ(from_env.net.proxy.url, "http://envproxy");
    EXPECT_EQ(from_env.net.proxy.no_proxy, "env.local");
    EXPECT_TRUE(from_env.http.dump);

    auto const given = resolved({.base_url = "http://given",
                                 .api_key = "tml-given",
                                 .proxy = "http://givenproxy",
                                 .no_proxy = "given.local",
                                 .dump_headers = false},
                                variables);
    EXPECT_EQ(given.http.endpoint.base_url(), "http://given");
    EXPECT_EQ(given.api_key, "tml-given");
    EXPECT_EQ(given.net.proxy.url, "http://givenproxy");
    EXPECT_EQ(given.net.proxy.no_proxy, "given.local");
    EXPECT_FALSE(given.http.dump);
}

TEST(ResolvedOptions, TakeEmptyVariablesForUnset) {  // R-CONF-01
    auto const all = resolved({}, {{"TINKER_BASE_URL", ""}, {"TINKXX_PROXY", ""}});
    EXPECT_THAT(all.http.endpoint.base_url(), HasSubstr("thinkingmachines"));
    EXPECT_EQ(all.net.proxy.url, "");
}

TEST(ResolvedOptions, KnowTheWordsForYesAndNo) {  // R-CONF-04
    for (auto const* yes : {"1", "true", " YES ", "On"}) EXPECT_EQ(parse_bool(yes), true) << yes;
    for (auto const* no : {"0", "False", "no", "OFF"}) EXPECT_EQ(parse_bool(no), false) << no;
    for (auto const* other : {"", "2", "maybe"}) EXPECT_EQ(parse_bool(other), std::nullopt);
    EXPECT_FALSE(resolved({}, {{"TINKXX_DUMP_HEADERS", "maybe"}}).http.dump);
}

TEST(ResolvedOptions, CallersHeadersWinOverThoseOfTheEnvironment) {  // R-CONF-03
    auto const all =
        resolved({.default_headers = {{"X-A", "given"}, {"user-agent", "mine"}}},
                 {{"TINKXX_DEFAULT_HEADERS", R"({"x-a": "env", "X-B": 7, "X-C": null})"},
                  {"CLOUDFLARE_ACCESS_CLIENT_ID", "cf-id"},
                  {"CLOUDFLARE_ACCESS_CLIENT_SECRET", "cf-secret"}});
    auto const& headers = all.http.headers;
    EXPECT_EQ(*headers.find("x-a"), "given");
    EXPECT_EQ(*headers.find("x-b"), "7");
    EXPECT_FALSE(headers.contains("x-c"));
    EXPECT_EQ(*headers.find("user-agent"), "mine");
    EXPECT_EQ(*headers.find("cf-access-client-id"), "cf-id");
    EXPECT_EQ(*headers.find("cf-access-client-secret"), "cf-secret");
}

TEST(ResolvedOptions, CallersQueryWinsOverThatOfTheEnvironment) {  // R-CONF-03
    auto const all = resolved({.default_query = {{"a", "given"}}},
                              {{"TINKXX_DEFAULT_QUERY", R"({"a": "env", "b": [1, true]})"}});
    EXPECT_EQ(
        all.http.endpoint.url("x", all.http.query, {}).substr(all.http.endpoint.base_url().size()),
        "/x?b=1%2Ctrue&a=given");
}

TEST(ResolvedOptions, RefuseWhatCannotWorkAndNameIt) {  // R-CONF-06
    auto const negative = refusal({.timeouts = {.read = -1ms}});
    EXPECT_EQ(negative.field(), "timeouts.read");
    EXPECT_EQ(negative.value(), "-1 ms");
    EXPECT_EQ(negative.category(), ErrorCategory::user);
    EXPECT_EQ(refusal({.max_retries = -1}).field(), "max_retries");
    EXPECT_EQ(refusal({.base_url = "localhost:8000"}).field(), "base_url");
    EXPECT_EQ(refusal({}, {{"TINKER_BASE_URL", "nonsense"}}).value(), "nonsense");
    EXPECT_EQ(refusal({.default_headers = {{"", "x"}}}).field(), "default_headers");
    EXPECT_EQ(refusal({.default_headers = {{"a b", "x"}}}).value(), "a b");
    EXPECT_EQ(refusal({.default_headers = {{"a", "x\r\nb: c"}}}).field(), "default_headers.a");
    EXPECT_EQ(refusal({.default_query = {{"", 1}}}).field(), "default_query");
    EXPECT_EQ(refusal({.api_key = "tml-\n"}).field(), "api_key");
    EXPECT_EQ(refusal({}, {{"TINKXX_DEFAULT_HEADERS", "[1]"}}).field(), "TINKXX_DEFAULT_HEADERS");
}

TEST(ResolvedOptions, RefuseProxiesThatCannotWork) {  // R-CONF-07, R-EXT-70
    for (auto const* bad : {"proxy:3128", "socks5://p", "http://", "http://p:0", "http://p:70000",
                            "http://p/path", "//p"}) {
        EXPECT_EQ(refusal({.proxy = bad}).field(), "proxy") << bad;
    }
    for (auto const* good :
         {"http://p", "https://p:8443", "http://u:pw@p:3128/", "http://[::1]:1"}) {
        EXPECT_EQ(resolved({.proxy = good}).net.proxy.url, good);
    }
    EXPECT_THAT(refusal({.proxy = "ftp://u:hunter2@p"}).what(), Not(HasSubstr("hunter2")));
}

TEST(ResolvedOptions, ReadProxyHeadersFromTheEnvironment) {  // R-EXT-70
    auto const all = resolved(
        {}, {{"TINKXX_PROXY", "http://p"}, {"TINKXX_PROXY_HEADERS", R"({"X-Token": "t"})"}});
    EXPECT_EQ(all.net.proxy.headers, (Headers{{"X-Token", "t"}}));
    auto const bad = refusal({}, {{"TINKXX_PROXY_HEADERS", R"({"X-Token": "hunter2")"}});
    EXPECT_EQ(bad.field(), "TINKXX_PROXY_HEADERS");
    EXPECT_THAT(bad.what(), Not(HasSubstr("hunter2")));
}

TEST(ResolvedOptions, KnowEverySecretThatWasConfigured) {  // R-ERR-04, R-CONF-12
    auto const all = resolved({.api_key = "tml-0123456789",
                               .default_headers = {{"Authorization", "Bearer token-42"}},
                               .proxy = "http://user:p%40ss@proxy"},
                              {{"CLOUDFLARE_ACCESS_CLIENT_SECRET", "cf-secret"}});
    EXPECT_EQ(all.http.scrubber.scrub("tml-0123456789 token-42 p@ss p%40ss dXNlcjpwQHNz cf-secret"),
              "<redacted> <redacted> <redacted> <redacted> <redacted> <redacted>");
}

TEST(ResolvedOptions, TakeTheLogLevelFromTheEnvironment) {  // R-CONF-03
    EXPECT_EQ(resolved({}, {{"TINKER_LOG", "debug"}}).http.log_level, LogLevel::debug);
    EXPECT_EQ(resolved({.log_level = LogLevel::error}, {{"TINKER_LOG", "debug"}}).http.log_level,
              LogLevel::error);
    EXPECT_FALSE(resolved({}, {{"TINKER_LOG", "loud"}}).http.log) << "as if it were unset";
}

TEST(ResolvedOptions, PropagateTracesOnlyIfAskedTo) {  // R-EXT-20
    auto const propagator = [] { return Headers{}; };
    EXPECT_FALSE(resolved({.trace_propagator = propagator}).trace_propagator);
    EXPECT_TRUE(
        resolved({.otel_propagate = true, .trace_propagator = propagator}).trace_propagator);
    EXPECT_TRUE(resolved({.trace_propagator = propagator}, {{"TINKXX_OTEL_PROPAGATE", "1"}})
                    .trace_propagator);
}

}  // namespace
}  // namespace tinkxx::client
