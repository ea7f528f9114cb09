// The sampling client over real connections, against a service with canned answers.
#include "socket/modes.hpp"
#include "support/servers/canned_tinker.hpp"

#include <tinkxx/service_client.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <string>
#include <vector>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;

class SamplingModes : public testing::TestWithParam<Mode> {
protected:
    ClientOptions options(HttpServer const& server) const {
        ClientOptions all;
        all.base_url = server.url("");
        all.api_key = "tml-test";
        all.telemetry = false;
        all.net = net_options(GetParam());
        all.runtime = Runtime{};
        return all;
    }
    static ModelInput prompt() { return ModelInput::from_tokens(std::vector<Token>(100, 1)); }
};
INSTANTIATE_TEST_SUITE_P(, SamplingModes, all_modes(), mode_name);

TEST_P(SamplingModes, DrawsASample) {
    CannedTinker tinker{{}};
    HttpServer const server{std::ref(tinker), server_options(GetParam())};
    ServiceClient const service{options(server)};
    auto const sampler = service.create_sampling_client("org/tiny");
    auto pending = sampler.sample(prompt(), {.max_tokens = 256});
    auto const response = pending.get();
    ASSERT_EQ(response.sequences.size(), 1U);
    EXPECT_EQ(response.sequences[0].tokens.size(), 256U);
    EXPECT_EQ(response.sequences[0].tokens.at(255), 1255);
    EXPECT_EQ(response.sequences[0].logprobs->at(255), -0.25F);
    service.close().get();
}

TEST_P(SamplingModes, TwoThousandInFlightSurviveARestartOfTheServer) {
    constexpr int samples = 2000;
    CannedTinker tinker{{.tokens = 16, .result_delay = 300ms}};
    HttpServer server{std::ref(tinker), server_options(GetParam())};
    auto all = options(server);
    all.dispatch.count = samples;
    ServiceClient const service{std::move(all)};
    auto const sampler = service.create_sampling_client("org/tiny");
    std::vector<Future<SampleResponse>> pending;
    std::atomic<int> ended{0};
    std::vector<Future<void>> watched;
    for (int i = 0; i < samples; ++i) {
        auto sample = sampler.sample(prompt(), {.max_tokens = 16});
        watched.push_back(sample.then_result([&](Result<SampleResponse> const& result) {
            EXPECT_TRUE(result) << result.error().what();
            ++ended;
        }));
    }
    // In the middle: some are accepted, some are being polled for, some wait.
    ASSERT_TRUE(server.wait_for([](HttpServerCounts const& seen) { return seen.requests > 700; }));
    server.kill();
    server.restart();

    for (auto& each : watched) each.get();
    EXPECT_EQ(ended, samples);
    // Every number was submitted, none was left out, and repeats are repeats of lost submits.
    auto const submits = tinker.submits();
    EXPECT_EQ(submits.size(), static_cast<std::size_t>(samples));
    EXPECT_EQ(submits.rbegin()->first, samples - 1);
    auto const status = service.status().get();
    EXPECT_TRUE(status.pending.empty());
    EXPECT_EQ(status.count.free, samples);
    service.close().get();
}

TEST_P(SamplingModes, TheCompletionPollServesThousands) {
    constexpr int samples = 2000;
    CannedTinker tinker{
        {.tokens = 16, .flags = R"({"sample_use_retrieve_futures":true})", .result_delay = 5ms}};
    HttpServer const server{std::ref(tinker), server_options(GetParam())};
    ServiceClient const service{options(server)};
    auto const sampler = service.create_sampling_client("org/tiny");
    std::vector<Future<SampleResponse>> pending;
    pending.reserve(samples);
    for (int i = 0; i < samples; ++i) {
        pending.push_back(sampler.sample(prompt(), {.max_tokens = 16}));
    }
    for (auto& each : pending) EXPECT_EQ(each.get().sequences.at(0).tokens.size(), 16U);
    EXPECT_EQ(tinker.polls(), static_cast<std::size_t>(samples));  // one fetch each
    service.close().get();
}

}  // namespace
}  // namespace tinkxx::test
