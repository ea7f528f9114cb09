#include <tinkxx/http_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "client/options/resolved_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// Leaves no defaults behind.
struct DefaultOptions : ::testing::Test {
    ~DefaultOptions() override { set_default_options({}); }
};

TEST_F(DefaultOptions, StandBetweenTheCallerAndTheEnvironment) {  // R-CONF-01
    auto const environment = [](char const* name) -> std::optional<std::string> {
        if (std::string_view{name} == "TINKER_BASE_URL") return "http://env";
        if (std::string_view{name} == "TINKER_PROJECT_ID") return "p-env";
        return std::nullopt;
    };
    set_default_options({.base_url = "http://default", .max_retries = 3, .tags = {"d"}});
    auto const all = client::resolve(client::with_defaults({.max_retries = 4}), environment);
    EXPECT_EQ(all.endpoint.base_url(), "http://default") << "above the environment";
    EXPECT_EQ(all.max_retries, 4) << "below the caller";
    EXPECT_THAT(all.tags, ElementsAre("d"));
    EXPECT_EQ(all.project_id, "p-env") << "field by field";
}

TEST_F(DefaultOptions, CanBeReadAndTakenBack) {  // R-CONF-01
    set_default_options({.base_url = "http://default"});
    EXPECT_EQ(default_options().base_url, "http://default");
    set_default_options({});
    EXPECT_EQ(client::with_defaults({}).base_url, "");
}

TEST_F(DefaultOptions, CoverEveryField) {  // R-CONF-01
    auto const observer = console_observer();
    ClientOptions const all{.base_url = "u",
                            .api_key = "k",
                            .timeouts = {.read = 1s},
                            .max_retries = 1,
                            .default_headers = {{"a", "b"}},
                            .default_query = {{"a", "b"}},
                            .proxy = "p",
                            .proxy_headers = {{"a", "b"}},
                            .no_proxy = "n",
                            .dump_headers = true,
                            .otel_propagate = true,
                            .trace_propagator = [] { return Headers{}; },
                            .observers = {observer},
                            .metadata = {{"a", "b"}},
                            .log = silent_log(),
                            .log_level = LogLevel::error,
                            .sdk_version = "1",
                            .net = {.max_connections = 1},
                            .runtime = Runtime{{.threads = 0}},
                            .user_metadata = {{"a", "b"}},
                            .tags = {"t"},
                            .project_id = "p",
                            .display_name = "d",
                            .telemetry = false,
                            .credential_cmd = "c",
                            .credentials_file = "f",
                            .poll_backoff = ExponentialPollBackoff{},
                            .poll_error_limit = 1s,
                            .cloudflare_access_id = "i",
                            .cloudflare_access_secret = "s",
                            .completion_poll = true,
                            .join_sampling_session = true,
                            .dispatch = {.count = 1},
                            .download_bytes = 1,
                            .chunks = {.items = 1},
                            .deadline = 1s,
                            .max_pending = {1, WhenFull::reject},
                            .report_pending = true,
                            .intervals = {.heartbeat = 1s},
                            .submit_encoding = SubmitEncoding::json,
                            .repeat_steps = true,
                            .check_data = false,
                            .warn_of_stalls = false};
    auto const got = client::merged({}, all);
    EXPECT_EQ(got.base_url, "u");
    EXPECT_EQ(got.api_key, "k");
    EXPECT_EQ(got.timeouts, all.timeouts);
    EXPECT_EQ(got.max_retries, 1);
    EXPECT_EQ(got.default_headers, all.default_headers);
    EXPECT_EQ(got.default_query.size(), 1U);
    EXPECT_EQ(got.proxy, "p");
    EXPECT_EQ(got.proxy_headers, all.proxy_headers);
    EXPECT_EQ(got.no_proxy, "n");
    EXPECT_EQ(got.dump_headers, true);
    EXPECT_EQ(got.otel_propagate, true);
    EXPECT_TRUE(got.trace_propagator);
    EXPECT_THAT(got.observers, ElementsAre(observer));
    EXPECT_EQ(got.metadata, all.metadata);
    EXPECT_TRUE(got.log);
    EXPECT_EQ(got.log_level, LogLevel::error);
    EXPECT_EQ(got.sdk_version, "1");
    EXPECT_EQ(got.net, all.net);
    EXPECT_TRUE(got.runtime);
    EXPECT_EQ(got.user_metadata, all.user_metadata);
    EXPECT_EQ(got.tags, all.tags);
    EXPECT_EQ(got.project_id, "p");
    EXPECT_EQ(got.display_name, "d");
    EXPECT_EQ(got.telemetry, false);
    EXPECT_EQ(got.credential_cmd, "c");
    EXPECT_EQ(got.credentials_file, "f");
    EXPECT_TRUE(std::holds_alternative<ExponentialPollBackoff>(got.poll_backoff));
    EXPECT_EQ(got.poll_error_limit, 1s);
    EXPECT_EQ(got.cloudflare_access_id, "i");
    EXPECT_EQ(got.cloudflare_access_secret, "s");
    EXPECT_EQ(got.completion_poll, true);
    EXPECT_EQ(got.join_sampling_session, true);
    EXPECT_EQ(got.dispatch, all.dispatch);
    EXPECT_EQ(got.download_bytes, 1);
    EXPECT_EQ(got.chunks, all.chunks);
    EXPECT_EQ(got.deadline, 1s);
    EXPECT_EQ(got.max_pending, all.max_pending);
    EXPECT_TRUE(got.report_pending);
    EXPECT_EQ(got.intervals, all.intervals);
    EXPECT_EQ(got.submit_encoding, SubmitEncoding::json);
    EXPECT_EQ(got.repeat_steps, true);
    EXPECT_FALSE(got.check_data);
    EXPECT_FALSE(got.warn_of_stalls);
}

TEST_F(DefaultOptions, ReachPlainHttpClientsToo) {  // R-CONF-01
    auto const clock = std::make_shared<tinkxx::testing::ManualClock>();
    auto const fake = std::make_shared<tinkxx::testing::FakeTransport>(*clock);
    fake->push({});
    set_default_options({.base_url = "http://default",
                         .transport = fake,
                         .runtime = Runtime{{.threads = 0, .scheduler = clock}}});
    HttpClient const http;
    auto pending = http.send({.path = "/x"});
    clock->run_ready();
    EXPECT_EQ(fake->sent().at(0).url, "http://default/x");
}

}  // namespace
}  // namespace tinkxx
