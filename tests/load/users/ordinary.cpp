#include "load/users/ordinary.hpp"

#include <tinkxx/local/service_client.hpp>

#include <algorithm>
#include <limits>

namespace tinkxx::load {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {
constexpr std::size_t users = 3;
constexpr auto pause = 20ms;
/// Rounds of training that are repeated; more show nothing new.
constexpr std::size_t most_repeated = 10;
}  // namespace

Ordinary::Ordinary(std::string const& url, std::string const& key, std::uint64_t seed,
                   std::chrono::seconds patience, Problems& problems)
    : url_{url},
      key_{key},
      seed_{seed},
      patience_{patience},
      problems_{problems},
      questions_{make_questions(seed)},
      runtime_{{.seed = seed, .log_level = LogLevel::error}},
      run_{seed, 0} {
    for (std::size_t i = 0; i < users; ++i) threads_.emplace_back([this, i] { sample(i); });
    threads_.emplace_back([this] { train(); });
}

void Ordinary::stop() {
    open_ = false;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
}

ServiceClient Ordinary::client() const {
    ClientOptions options;
    options.base_url = url_;
    options.api_key = key_;
    options.runtime = runtime_;
    return ServiceClient{std::move(options)};
}

void Ordinary::sample(std::size_t user) try {
    auto const service = client();
    auto const sampler = service.create_sampling_client(model_name);
    for (std::size_t i = user; open_; i += users) {
        auto const& question = questions_[i % questions_.size()];
        auto params = question.params;
        params.max_tokens = 1;
        auto const begin = Clock::now();
        auto pending = sampler.sample(question.prompt, params);
        auto const response = pending.get(patience_);
        {
            std::scoped_lock const lock{mutex_};
            latencies_.add(Clock::now() - begin);
        }
        ++samples_;
        // The first token of the answer that is known.
        bool const right = response.sequences.size() == 1 &&
                           response.sequences[0].tokens.size() == 1 &&
                           response.sequences[0].tokens[0] == question.answer.tokens.at(0);
        if (!right) {
            problems_.add("user " + std::to_string(user) +
                          " got another token than a quiet server gives");
        }
        std::this_thread::sleep_for(pause);
    }
    service.close(CloseReason::success).get();
} catch (Error const& error) {
    problems_.add("user " + std::to_string(user) + " failed: " + error.what());
}

void Ordinary::train() try {
    auto const service = client();
    run_.train(service, open_, std::numeric_limits<std::size_t>::max(), patience_);
    service.close(CloseReason::success).get();
} catch (Error const& error) {
    problems_.add(std::string{"the training run failed: "} + error.what());
}

void Ordinary::repeat() try {
    auto const server = quiet_server();
    auto const service = local::service_client(server, ClientOptions{});
    UserTraining quiet{seed_, 0};
    std::atomic<bool> const open{true};
    auto const count = std::min(run_.rounds().size(), most_repeated);
    quiet.train(service, open, count, 10min);
    for (std::size_t i = 0; i < count; ++i) {
        if (quiet.rounds()[i] == run_.rounds()[i]) continue;
        problems_.add("the training run got other values than on a quiet server, from round " +
                      std::to_string(i) + " on");
        break;
    }
    service.close().get();
    server.stop();
} catch (Error const& error) {
    problems_.add(std::string{"the training run cannot be repeated: "} + error.what());
}

}  // namespace tinkxx::load
