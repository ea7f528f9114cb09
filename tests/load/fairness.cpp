#include "load/fairness.hpp"

#include "load/latencies.hpp"
#include "load/questions.hpp"
#include "load/server_process.hpp"

#include <tinkxx/tinkxx.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace tinkxx::load {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Exit measure_fairness(Options const& options) {
    constexpr double target = 0.25;
    constexpr std::size_t batch_size = 64;
    constexpr std::size_t length = 512;
    ServerProcess server{options.server, {}};
    ServiceClient const service{{.base_url = server.url(), .api_key = "tml-load"}};
    auto const trainer = service.create_lora_training_client(model_name).get();
    auto const sampler = service.create_sampling_client(model_name);
    auto const prompt = text_input("Q: What is two");

    std::vector<Datum> batch;
    for (std::size_t i = 0; i < batch_size; ++i) {
        std::vector<Token> tokens(length + 1);
        for (std::size_t j = 0; j < tokens.size(); ++j) {
            tokens[j] = static_cast<Token>(97 + (i * 5 + j * j) % 26);
        }
        batch.push_back(data::from_tokens(tokens, std::vector<float>(tokens.size(), 1)));
    }
    auto const sample = [&] {
        return sampler.sample(prompt, {.max_tokens = 1, .seed = 1, .stop = Stop::nowhere()});
    };
    (void)sample().get();  // sessions and connections are there
    (void)trainer.forward_backward({batch.front()}, LossFn::cross_entropy).get();

    Latencies alone;
    for (int i = 0; i < 20; ++i) {
        auto const asked = Clock::now();
        (void)sample().get();
        alone.add(Clock::now() - asked);
    }
    Latencies beside;
    Latencies passes;
    int drawn = 0;
    for (auto const end = Clock::now() + options.length; Clock::now() < end;) {
        auto const begun = Clock::now();
        auto pass = trainer.forward_backward(batch, LossFn::cross_entropy);
        std::this_thread::sleep_for(50ms);  // it is on its way
        while (!pass.wait_for(0ms)) {
            auto const asked = Clock::now();
            (void)sample().get();
            // The last one may have found the pass already done.
            if (!pass.wait_for(0ms)) beside.add(Clock::now() - asked);
            // Not always at the begin of a piece.
            (void)pass.wait_for(std::chrono::milliseconds{++drawn % 37});
        }
        (void)pass.get();
        passes.add(Clock::now() - begun);
    }
    service.close().get();
    (void)server.end();

    bool const fair = beside.count() > 0 && beside.longest() <= target;
    std::printf(
        options.json ? "{\"samples\":%llu,\"p50_ms\":%.1f,\"p99_ms\":%.1f,\"longest_ms\":%.1f,"
                       "\"alone_p50_ms\":%.1f,\"passes\":%llu,\"pass_p50_ms\":%.0f,"
                       "\"target_ms\":%.0f,\"fair\":%s}\n"
                     : "%llu samples of one token beside forward and backward passes: p50 %.1f ms, "
                       "p99 %.1f ms, longest %.1f ms\nalone: p50 %.1f ms; %llu passes of 64 x 512 "
                       "tokens, p50 %.0f ms\nat most %.0f ms: %s\n",
        static_cast<unsigned long long>(beside.count()), 1e3 * beside.quantile(0.5),
        1e3 * beside.quantile(0.99), 1e3 * beside.longest(), 1e3 * alone.quantile(0.5),
        static_cast<unsigned long long>(passes.count()), 1e3 * passes.quantile(0.5), 1e3 * target,
        fair ? (options.json ? "true" : "held") : (options.json ? "false" : "missed"));
    return fair ? Exit::success : Exit::broken;
}

}  // namespace tinkxx::load
