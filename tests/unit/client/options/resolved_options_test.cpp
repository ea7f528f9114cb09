#include "client/options/resolved_options.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <variant>

namespace tinkxx::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Environment environment(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](char const* name) -> std::optional<std::string> {
        auto const found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    };
}

service::ClientConfig resolved(ClientOptions const& options,
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
    EXPECT_EQ(all.endpoint.base_url(), "https://tinker.thinkingmachines.dev/services/tinker-prod");
    EXPECT_EQ(all.credentials.api_key, "");
    EXPECT_EQ(all.timeouts.connect, 5s);
    EXPECT_EQ(all.timeouts.read, 60s);
    EXPECT_EQ(all.max_retries, 10);
    EXPECT_EQ(all.dump_headers, false);
    EXPECT_EQ(*all.headers.find("x-stainless-package-version"), "0.36.0");
    EXPECT_EQ(all.net.proxy, ProxyOptions{});
}

TEST(ResolvedOptions, PreferTheOptionToTheEnvironment) {  // R-CONF-01
    std::map<std::string, std::string> const variables{{"TINKER_BASE_URL", "http://env"},
                                                       {"TINKER_API_KEY", "tml-env"},
                                                       {"TINKXX_PROXY", "http://envproxy"},
                                                       {"NO_PROXY", "env.local"},
                                                       {"TINKXX_DUMP_HEADERS", "yes"}};
    auto const from_env = resolved({}, variables);
    EXPECT_EQ(from_env.endpoint.base_url(), "http://env");
    EXPECT_EQ(from_env.credentials.api_key, "tml-env");
    EXPECT_EQ(from_env.net.proxy.url, "http://envproxy");
    EXPECT_EQ(from_env.net.proxy.no_proxy, "env.local");
    EXPECT_EQ(from_env.dump_headers, true);

    auto const given = resolved({.base_url = "http://given",
                                 .api_key = "tml-given",
                                 .proxy = "http://givenproxy",
                                 .no_proxy = "given.local",
                                 .dump_headers = false},
                                variables);
    EXPECT_EQ(given.endpoint.base_url(), "http://given");
    EXPECT_EQ(given.credentials.api_key, "tml-given");
    EXPECT_EQ(given.net.proxy.url, "http://givenproxy");
    EXPECT_EQ(given.net.proxy.no_proxy, "given.local");
    EXPECT_EQ(given.dump_headers, false);
}

TEST(ResolvedOptions, TakeEmptyVariablesForUnset) {  // R-CONF-01
    auto const all = resolved({}, {{"TINKER_BASE_URL", ""}, {"TINKXX_PROXY", ""}});
    EXPECT_THAT(all.endpoint.base_url(), HasSubstr("thinkingmachines"));
    EXPECT_EQ(all.net.proxy.url, "");
}

TEST(ResolvedOptions, KnowTheWordsForYesAndNo) {  // R-CONF-04
    for (auto const* yes : {"1", "true", " YES ", "On"}) EXPECT_EQ(parse_bool(yes), true) << yes;
    for (auto const* no : {"0", "False", "no", "OFF"}) EXPECT_EQ(parse_bool(no), false) << no;
    for (auto const* other : {"", "2", "maybe"}) EXPECT_EQ(parse_bool(other), std::nullopt);
    EXPECT_EQ(resolved({}, {{"TINKXX_DUMP_HEADERS", "maybe"}}).dump_headers, false);
}

TEST(ResolvedOptions, CallersHeadersWinOverThoseOfTheEnvironment) {  // R-CONF-03
    auto const all =
        resolved({.default_headers = {{"X-A", "given"}, {"user-agent", "mine"}}},
                 {{"TINKXX_DEFAULT_HEADERS", R"({"x-a": "env", "X-B": 7, "X-C": null})"},
                  {"CLOUDFLARE_ACCESS_CLIENT_ID", "cf-id"},
                  {"CLOUDFLARE_ACCESS_CLIENT_SECRET", "cf-secret"}});
    auto const& headers = all.headers;
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
    EXPECT_EQ(all.endpoint.url("x", all.default_query, {}).substr(all.endpoint.base_url().size()),
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
    EXPECT_EQ(all.scrubber.scrub("tml-0123456789 token-42 p@ss p%40ss dXNlcjpwQHNz cf-secret"),
              "<redacted> <redacted> <redacted> <redacted> <redacted> <redacted>");
}

TEST(ResolvedOptions, TakeTheLogLevelFromTheEnvironment) {  // R-CONF-03
    EXPECT_EQ(resolved({}, {{"TINKER_LOG", "debug"}}).log_level, LogLevel::debug);
    EXPECT_EQ(resolved({.log_level = LogLevel::error}, {{"TINKER_LOG", "debug"}}).log_level,
              LogLevel::error);
    EXPECT_FALSE(resolved({}, {{"TINKER_LOG", "loud"}}).log) << "as if it were unset";
}

TEST(ResolvedOptions, PropagateTracesOnlyIfAskedTo) {  // R-EXT-20
    auto const propagator = [] { return Headers{}; };
    EXPECT_FALSE(resolved({.trace_propagator = propagator}).trace_propagator);
    EXPECT_TRUE(
        resolved({.otel_propagate = true, .trace_propagator = propagator}).trace_propagator);
    EXPECT_TRUE(resolved({.trace_propagator = propagator}, {{"TINKXX_OTEL_PROPAGATE", "1"}})
                    .trace_propagator);
}

TEST(ResolvedOptions, DescribeTheSession) {  // R-CONF-03, R-CONF-23
    auto const all = resolved({.user_metadata = {{"owner", "ada"}},
                               .tags = {" exp1 ", "exp1", "", "exp2"},
                               .project_id = "p-1",
                               .display_name = "nightly"});
    EXPECT_THAT(all.user_metadata, ElementsAre(std::pair{"owner", "ada"}));
    EXPECT_THAT(all.tags, ElementsAre("exp1", "exp2"));
    EXPECT_EQ(all.project_id, "p-1");
    EXPECT_EQ(all.display_name, "nightly");
    EXPECT_EQ(all.sdk_version, "0.36.0");
    EXPECT_EQ(resolved({.sdk_version = "0.25.0"}).sdk_version, "0.25.0");
    auto const plain = resolved({});
    EXPECT_THAT(plain.user_metadata, IsEmpty());
    EXPECT_THAT(plain.tags, IsEmpty());
    EXPECT_EQ(plain.project_id, "");
    EXPECT_EQ(plain.display_name, "");
    EXPECT_EQ(plain.telemetry, true);
}

TEST(ResolvedOptions, TakeWhatDescribesTheSessionFromTheEnvironment) {  // R-CONF-03, R-CONF-01
    auto const all = resolved({}, {{"TINKER_TAGS", "b, a,,b , c"},
                                   {"TINKER_PROJECT_ID", "p-env"},
                                   {"TINKER_CREDENTIAL_CMD", " print-key "}});
    EXPECT_THAT(all.tags, ElementsAre("b", "a", "c"));
    EXPECT_EQ(all.project_id, "p-env");
    EXPECT_EQ(all.credentials.command, "print-key");
    auto const given = resolved(
        {.tags = {"t"}, .project_id = "p", .credential_cmd = "c"},
        {{"TINKER_TAGS", "a"}, {"TINKER_PROJECT_ID", "p-env"}, {"TINKER_CREDENTIAL_CMD", "y"}});
    EXPECT_THAT(given.tags, ElementsAre("t"));
    EXPECT_EQ(given.project_id, "p");
    EXPECT_EQ(given.credentials.command, "c");
    auto const blank = resolved({}, {{"TINKER_TAGS", " ,"}, {"TINKER_PROJECT_ID", " "}});
    EXPECT_THAT(blank.tags, IsEmpty());
    EXPECT_EQ(blank.project_id, "");
}

TEST(ResolvedOptions, TelemetryIsOnUnlessTheVariableSaysAnythingButYes) {  // R-CONF-03, R-TEL-42
    EXPECT_EQ(resolved({}).telemetry, true);
    for (auto const* yes : {"1", "TRUE", "yes", "on"}) {
        EXPECT_EQ(resolved({}, {{"TINKER_TELEMETRY", yes}}).telemetry, true) << yes;
    }
    for (auto const* no : {"0", "off", "", "maybe"}) {
        EXPECT_EQ(resolved({}, {{"TINKER_TELEMETRY", no}}).telemetry, false) << no;
    }
    EXPECT_EQ(resolved({.telemetry = true}, {{"TINKER_TELEMETRY", "0"}}).telemetry, true);
    EXPECT_EQ(resolved({.telemetry = false}).telemetry, false);
}

TEST(ResolvedOptions, CloudflareAccessMayBeGiven) {  // R-CONF-03
    auto const all = resolved({.cloudflare_access_id = "id", .cloudflare_access_secret = "s3cret"},
                              {{"CLOUDFLARE_ACCESS_CLIENT_ID", "env"}});
    EXPECT_EQ(*all.headers.find("cf-access-client-id"), "id");
    EXPECT_EQ(*all.headers.find("cf-access-client-secret"), "s3cret");
    EXPECT_EQ(all.scrubber.scrub("s3cret"), "<redacted>");
}

TEST(ResolvedOptions, ReadThePollBackoff) {  // R-CONF-03, R-EXT-80
    auto const read = [](char const* text) {
        return resolved({}, {{"TINKXX_POLL_BACKOFF", text}}).poll_backoff;
    };
    EXPECT_TRUE(std::holds_alternative<NoPollBackoff>(resolved({}).poll_backoff));
    EXPECT_TRUE(std::holds_alternative<NoPollBackoff>(read("none")));
    EXPECT_EQ(std::get<ExponentialPollBackoff>(read("Exponential")), ExponentialPollBackoff{});
    EXPECT_EQ(std::get<ExponentialPollBackoff>(read("exponential:200:5000")),
              (ExponentialPollBackoff{.initial = 200ms, .max = 5s}));
    auto const given =
        resolved({.poll_backoff = ExponentialPollBackoff{.initial = 1ms, .max = 2ms}},
                 {{"TINKXX_POLL_BACKOFF", "exponential"}});
    EXPECT_EQ(std::get<ExponentialPollBackoff>(given.poll_backoff).max, 2ms);
    for (auto const* bad :
         {"fast", "exponential:1", "exponential:a:b", "exponential:5:1", "exponential:0:1",
          "exponential:-1:1", "exponentially", "exponential:"}) {
        EXPECT_EQ(refusal({}, {{"TINKXX_POLL_BACKOFF", bad}}).field(), "TINKXX_POLL_BACKOFF")
            << bad;
    }
    EXPECT_EQ(refusal({.poll_backoff = ExponentialPollBackoff{.initial = 0ms}}).field(),
              "poll_backoff");
}

TEST(ResolvedOptions, PassOnWhatTheCallerChoseInPlaceOfTheServer) {  // R-CONF-22, R-CONF-24
    auto const all = resolved({.completion_poll = true,
                               .join_sampling_session = false,
                               .dispatch = {.count = 1, .throttled = 2, .bytes = 3},
                               .download_bytes = 4,
                               .chunks = {.items = 5, .bytes = 6, .bytes_in_flight = 7},
                               .deadline = 8s,
                               .max_pending = {9, WhenFull::reject},
                               .report_pending = true,
                               .warn_of_stalls = false});
    EXPECT_EQ(all.completion_poll, true);
    EXPECT_EQ(all.join_sampling_session, false);
    EXPECT_EQ(all.dispatch, (DispatchLimits{.count = 1, .throttled = 2, .bytes = 3}));
    EXPECT_EQ(all.download_bytes, 4);
    EXPECT_EQ(all.chunks, (ChunkLimits{.items = 5, .bytes = 6, .bytes_in_flight = 7}));
    EXPECT_EQ(all.deadline, 8s);
    EXPECT_EQ(all.max_pending, (PendingLimit{9, WhenFull::reject}));
    EXPECT_TRUE(all.report_pending);
    EXPECT_FALSE(all.warn_of_stalls);
}

TEST(ResolvedOptions, PassOnTheIntervals) {  // R-SESS-13, R-TEST-02
    auto const all = resolved({.intervals = {.heartbeat = 1s,
                                             .heartbeat_warning = 2s,
                                             .heartbeat_max_failures = 3,
                                             .heartbeat_max_silence = 4s,
                                             .dynamic_refresh_minimum = 5s,
                                             .telemetry_flush = 6s,
                                             .telemetry_drain = 7s}});
    EXPECT_EQ(all.intervals, (Intervals{.heartbeat = 1s,
                                        .heartbeat_warning = 2s,
                                        .heartbeat_max_failures = 3,
                                        .heartbeat_max_silence = 4s,
                                        .dynamic_refresh_minimum = 5s,
                                        .telemetry_flush = 6s,
                                        .telemetry_drain = 7s}));
    EXPECT_EQ(resolved({}).intervals, Intervals{});
}

TEST(ResolvedOptions, RefuseLimitsThatCannotWork) {  // R-CONF-06
    EXPECT_EQ(refusal({.project_id = " "}).field(), "project_id");
    EXPECT_EQ(refusal({.dispatch = {.count = 0}}).field(), "dispatch.count");
    EXPECT_EQ(refusal({.dispatch = {.throttled = -1}}).field(), "dispatch.throttled");
    EXPECT_EQ(refusal({.dispatch = {.bytes = 0}}).field(), "dispatch.bytes");
    EXPECT_EQ(refusal({.download_bytes = 0}).field(), "download_bytes");
    EXPECT_EQ(refusal({.chunks = {.items = 0}}).field(), "chunks.items");
    EXPECT_EQ(refusal({.chunks = {.bytes = 0}}).field(), "chunks.bytes");
    EXPECT_EQ(refusal({.chunks = {.bytes_in_flight = 0}}).field(), "chunks.bytes_in_flight");
    EXPECT_EQ(refusal({.deadline = -1ms}).field(), "deadline");
    EXPECT_EQ(refusal({.intervals = {.heartbeat = 0ms}}).field(), "intervals.heartbeat");
    EXPECT_EQ(refusal({.intervals = {.heartbeat_max_failures = -1}}).field(),
              "intervals.heartbeat_max_failures");
    EXPECT_EQ(refusal({.intervals = {.telemetry_drain = -1ms}}).field(),
              "intervals.telemetry_drain");
    EXPECT_EQ(refusal({.intervals = {.telemetry_flush = 0ms}}).value(), "0 ms");
}

TEST(ResolvedOptions, IgnoreVariablesThatMeanNothingHere) {  // R-SESS-34, R-CONF-03
    auto const asked = resolved(
        {}, {{"TINKER_SUBPROCESS_SAMPLING", "1"}, {"TINKER_FEATURE_GATES", "async_sampling"}});
    EXPECT_EQ(asked.intervals, resolved({}).intervals);
    EXPECT_EQ(asked.dispatch, resolved({}).dispatch);
    EXPECT_EQ(asked.download_bytes, resolved({}).download_bytes);
    EXPECT_EQ(asked.chunks, resolved({}).chunks);
    EXPECT_EQ(asked.completion_poll, resolved({}).completion_poll);
    EXPECT_EQ(asked.join_sampling_session, resolved({}).join_sampling_session);
}

TEST(ResolvedOptions, ReadTheEnvironmentOnlyWhileTheyAreResolved) {  // R-CONF-02
    auto asked = std::make_shared<int>(0);
    auto const all = resolve({.api_key = "tml-k"}, [asked](char const*) {
        ++*asked;
        return std::optional<std::string>{};
    });
    auto const before = *asked;
    EXPECT_GT(before, 0);
    (void)with_credential(all);
    EXPECT_EQ(*asked, before);
}

}  // namespace
}  // namespace tinkxx::client
