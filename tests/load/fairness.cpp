#include "load/fairness.hpp"

#include "load/latencies.hpp"
#include "load/server_process.hpp"
#include "load/users/questions.hpp"

#include <tinkxx/tinkxx.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tinkxx::load {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr double target = 0.25;

ServiceClient connect(ServerProcess const& server) {
    return ServiceClient{{.base_url = server.url(), .api_key = "tml-load"}};
}

/// One token of a short prompt.
Future<SampleResponse> one_token(SamplingClient const& sampler) {
    return sampler.sample(text_input("Q: What is two"),
                          {.max_tokens = 1, .seed = 1, .stop = Stop::nowhere()});
}

std::chrono::nanoseconds time_of_one_token(SamplingClient const& sampler) {
    auto const asked = Clock::now();
    (void)one_token(sampler).get();
    return Clock::now() - asked;
}

Latencies when_alone(SamplingClient const& sampler) {
    (void)one_token(sampler).get();  // sessions and connections are there
    Latencies alone;
    for (int i = 0; i < 20; ++i) alone.add(time_of_one_token(sampler));
    return alone;
}

std::vector<Token> letters(std::size_t count, std::size_t seed) {
    std::vector<Token> tokens(count);
    for (std::size_t j = 0; j < tokens.size(); ++j) {
        tokens[j] = static_cast<Token>(97 + (seed * 5 + j * j + seed * j) % 26);
    }
    return tokens;
}

bool held(Latencies const& times) { return times.count() > 0 && times.longest() <= target; }

char const* verdict(bool held, bool json) {
    if (json) return held ? "true" : "false";
    return held ? "held" : "missed";
}

unsigned long long count_of(Latencies const& times) { return times.count(); }

struct BesideTraining {
    Latencies alone{};
    Latencies beside{};
    Latencies passes{};
};

/// One sample after the other while long batches are computed.
BesideTraining beside_training(Options const& options) {
    constexpr std::size_t batch_size = 64;
    constexpr std::size_t length = 512;
    ServerProcess server{options.server, {}};
    auto const service = connect(server);
    auto const trainer = service.create_lora_training_client(model_name).get();
    auto const sampler = service.create_sampling_client(model_name);

    std::vector<Datum> batch;
    for (std::size_t i = 0; i < batch_size; ++i) {
        auto const tokens = letters(length + 1, i);
        batch.push_back(data::from_tokens(tokens, std::vector<float>(tokens.size(), 1)));
    }
    BesideTraining result{.alone = when_alone(sampler)};
    (void)trainer.forward_backward({batch.front()}, LossFn::cross_entropy).get();
    int sampled = 0;
    for (auto const end = Clock::now() + options.length; Clock::now() < end;) {
        auto const begun = Clock::now();
        auto pass = trainer.forward_backward(batch, LossFn::cross_entropy);
        std::this_thread::sleep_for(50ms);  // it is on its way
        while (!pass.wait_for(0ms)) {
            auto const time = time_of_one_token(sampler);
            // The last one may have found the pass already done.
            if (!pass.wait_for(0ms)) result.beside.add(time);
            // Not always at the begin of a piece.
            (void)pass.wait_for(std::chrono::milliseconds{++sampled % 37});
        }
        (void)pass.get();
        result.passes.add(Clock::now() - begun);
    }
    service.close().get();
    (void)server.end();
    return result;
}

struct BesideSampling {
    Latencies alone{};
    /// Asked for by a session of its own, and by the one with the many samples.
    Latencies other{};
    Latencies own{};
};

/// One sample after the other while two sessions ask for more than the server can ever have under
/// way: one for many long texts, one for texts behind many long prompts.
BesideSampling beside_sampling(Options const& options) {
    constexpr std::int64_t hog_samples = 1000;
    constexpr std::int64_t hog_tokens = 2046;
    constexpr std::size_t prompts = 300;
    constexpr std::size_t prompt_tokens = 2000;
    ServerProcess server{options.server, {}};
    auto const service = connect(server);
    auto const writer = connect(server);
    auto const reader = connect(server);
    auto const sampler = service.create_sampling_client(model_name);
    auto const many = writer.create_sampling_client(model_name);
    auto const beside_many = writer.create_sampling_client(model_name);
    auto const long_ones = reader.create_sampling_client(model_name);

    BesideSampling result{.alone = when_alone(sampler)};
    (void)one_token(beside_many).get();
    auto texts =
        many.sample(text_input("Q:"),
                    {.max_tokens = hog_tokens, .seed = 1, .stop = Stop::nowhere()}, hog_samples);
    std::size_t asked = 0;
    std::vector<Future<SampleResponse>> reading;
    auto const read_more = [&] {
        std::erase_if(reading, [](auto& one) { return one.wait_for(0ms); });
        for (; reading.size() < prompts; ++asked) {
            reading.push_back(
                long_ones.sample(ModelInput::from_tokens(letters(prompt_tokens, asked)),
                                 {.max_tokens = 16, .seed = 1, .stop = Stop::nowhere()}));
        }
    };
    read_more();
    std::this_thread::sleep_for(2s);  // all of it is on its way
    int sampled = 0;
    for (auto const end = Clock::now() + options.length;
         Clock::now() < end && !texts.wait_for(0ms);) {
        read_more();
        bool const from_other = ++sampled % 4 != 0;
        (from_other ? result.other : result.own)
            .add(time_of_one_token(from_other ? sampler : beside_many));
        std::this_thread::sleep_for(std::chrono::milliseconds{sampled % 37});
    }
    texts.cancel();
    for (auto& one : reading) one.cancel();
    for (auto const* client : {&service, &writer, &reader}) client->close().get();
    (void)server.end();
    return result;
}

}  // namespace

ExitCode measure_fairness(Options const& options) {
    auto const training = beside_training(options);
    auto const sampling = beside_sampling(options);
    bool const fair_training = held(training.beside);
    bool const fair_sampling = held(sampling.other) && held(sampling.own);
    bool const json = options.json;
    std::printf(json ? "{\"samples\":%llu,\"p50_ms\":%.1f,\"p99_ms\":%.1f,\"longest_ms\":%.1f,"
                       "\"alone_p50_ms\":%.1f,\"passes\":%llu,\"pass_p50_ms\":%.0f,"
                     : "%llu samples of one token beside forward and backward passes: p50 %.1f ms, "
                       "p99 %.1f ms, longest %.1f ms\nalone: p50 %.1f ms; %llu passes of 64 x 512 "
                       "tokens, p50 %.0f ms\n",
                count_of(training.beside), 1e3 * training.beside.quantile(0.5),
                1e3 * training.beside.quantile(0.99), 1e3 * training.beside.longest(),
                1e3 * training.alone.quantile(0.5), count_of(training.passes),
                1e3 * training.passes.quantile(0.5));
    if (!json) std::printf("at most %.0f ms: %s\n", 1e3 * target, verdict(fair_training, json));
    std::printf(
        json ? "\"sampling\":{\"samples\":%llu,\"p50_ms\":%.1f,\"p99_ms\":%.1f,"
               "\"longest_ms\":%.1f,\"own_samples\":%llu,\"own_p50_ms\":%.1f,"
               "\"own_longest_ms\":%.1f,\"alone_p50_ms\":%.1f,\"fair\":%s},"
             : "%llu samples of one token beside sessions with 1000 x 2046 tokens and with 300 "
               "prompts of 2000: p50 %.1f ms, p99 %.1f ms, longest %.1f ms\n%llu of the session "
               "with 1000 x 2046 itself: p50 %.1f ms, longest %.1f ms; alone: p50 %.1f ms\nat "
               "most 250 ms: %s\n",
        count_of(sampling.other), 1e3 * sampling.other.quantile(0.5),
        1e3 * sampling.other.quantile(0.99), 1e3 * sampling.other.longest(), count_of(sampling.own),
        1e3 * sampling.own.quantile(0.5), 1e3 * sampling.own.longest(),
        1e3 * sampling.alone.quantile(0.5), verdict(fair_sampling, json));
    bool const fair = fair_training && fair_sampling;
    if (json) std::printf("\"target_ms\":%.0f,\"fair\":%s}\n", 1e3 * target, verdict(fair, json));
    return fair ? ExitCode::success : ExitCode::broken;
}

}  // namespace tinkxx::load
