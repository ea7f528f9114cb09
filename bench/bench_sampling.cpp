// One measurement of the sampling client: keeps a number of samples in flight until enough have
// been drawn, and prints what it took as JSON. `sampling` runs it beside wrk and h2load.
#include <tinkxx/tinkxx.hpp>

#include "process_usage.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace {

using tinkxx::bench::cpu_seconds;
using tinkxx::bench::memory_kib;

using Clock = std::chrono::steady_clock;

std::map<std::string, std::string> parse(int argc, char** argv) {
    std::map<std::string, std::string> options{
        {"url", ""},       {"ca", ""},          {"http", "1"},    {"in-flight", "1"},
        {"prompt", "100"}, {"samples", "1000"}, {"poll", "each"}, {"flood", "0"}};
    for (int i = 1; i < argc; i += 2) {
        std::string const name = argv[i];
        if (i + 1 == argc || !name.starts_with("--") || !options.contains(name.substr(2))) {
            std::cerr << "usage: bench_sampling --url URL [--ca FILE] [--http 1|2] [--in-flight N] "
                         "[--prompt TOKENS]\n       [--samples N] [--poll each|completion] "
                         "[--flood 1]\n";
            std::exit(2);
        }
        options[name.substr(2)] = argv[i + 1];
    }
    return options;
}

/// Looks how long the I/O thread is busy with anything else: a timer that is due every millisecond
/// tells the longest time, in CPU of that thread, between two of its calls.
class Stall final : public tinkxx::Timer {
public:
    explicit Stall(tinkxx::Scheduler& scheduler) : scheduler_{scheduler} {
        scheduler_.post([this] { on_time(); });
    }
    void on_time() override {
        auto const now = cpu_now();
        if (last_ > 0) longest_ = std::max(longest_, now - last_);
        last_ = now;
        scheduler_.arm(*this, scheduler_.now() + std::chrono::milliseconds{1},
                       tinkxx::Precision::exact);
    }
    /// Ends it, and tells.
    [[nodiscard]] double longest_us() {
        std::promise<double> found;
        scheduler_.post([&] {
            scheduler_.disarm(*this);
            found.set_value(longest_ * 1e6);
        });
        return found.get_future().get();
    }

private:
    static double cpu_now() {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    }
    tinkxx::Scheduler& scheduler_;
    double last_{0};
    double longest_{0};
};

/// Keeps samples in flight: each that ends begins another.
class Bench {
public:
    Bench(tinkxx::SamplingClient sampler, tinkxx::ModelInput prompt, std::size_t samples)
        : sampler_{std::move(sampler)}, prompt_{std::move(prompt)}, left_{samples}, open_{samples} {
        latencies_.reserve(samples);
    }

    void begin_one() {
        {
            std::scoped_lock const lock{mutex_};
            if (left_ == 0) return;
            --left_;
        }
        auto const start = Clock::now();
        sampler_.sample_async(
            prompt_, {.max_tokens = 256}, {},
            [this, start](tinkxx::Result<tinkxx::SampleResponse> result) { end(start, result); });
    }

    void wait() {
        std::unique_lock lock{mutex_};
        done_.wait(lock, [this] { return open_ == 0; });
    }
    [[nodiscard]] double latency(double part) {
        std::ranges::sort(latencies_);
        auto const at = static_cast<std::size_t>(part * static_cast<double>(latencies_.size() - 1));
        return latencies_.empty() ? 0 : latencies_[at];
    }
    [[nodiscard]] std::size_t failed() const { return failed_; }
    /// Resident memory when the first sample came back, so that all others were waited for.
    [[nodiscard]] long waiting_kib() const { return waiting_kib_; }

private:
    void end(Clock::time_point start, tinkxx::Result<tinkxx::SampleResponse> const& result) {
        auto const took = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
        bool over = false;
        {
            std::scoped_lock const lock{mutex_};
            if (latencies_.empty()) waiting_kib_ = memory_kib("VmRSS:");
            latencies_.push_back(took);
            if (!result && failed_++ == 0) std::cerr << result.error().what() << '\n';
            over = --open_ == 0;
        }
        if (over) {
            done_.notify_all();
        } else {
            begin_one();
        }
    }

    tinkxx::SamplingClient sampler_;
    tinkxx::ModelInput const prompt_;
    std::mutex mutex_{};
    std::condition_variable done_{};
    std::size_t left_;
    std::size_t open_;
    std::size_t failed_{0};
    long waiting_kib_{0};
    std::vector<double> latencies_{};
};

}  // namespace

int main(int argc, char** argv) try {
    auto const options = parse(argc, argv);
    auto const number = [&](char const* name) { return std::stoul(options.at(name)); };
    auto const in_flight = number("in-flight");
    auto const samples = number("samples");
    tinkxx::ClientOptions client;
    client.base_url = options.at("url");
    client.api_key = "tml-0123456789abcdef0123456789abcdef";
    client.telemetry = false;
    client.completion_poll = options.at("poll") == "completion";
    bool const flood = number("flood") != 0;
    if (!flood) {  // else as everybody has them
        client.dispatch = {.count = 100'000, .throttled = 100'000, .bytes = std::int64_t{1} << 40};
        client.download_bytes = std::int64_t{1} << 40;
    }
    client.net.tls.ca_file = options.at("ca");
    tinkxx::ServiceClient const service{client};
    auto sampler = service.create_sampling_client(
        "org/tiny", tinkxx::RetryConfig{.max_connections = 1'000'000});
    (void)sampler.sampling_session_id().get();
    auto const prompt =
        tinkxx::ModelInput::from_tokens(std::vector<tinkxx::Token>(number("prompt"), 12345));

    Bench bench{sampler, prompt, samples};
    auto const runtime = tinkxx::Runtime::shared();  // that of the client
    std::optional<Stall> stall;
    if (flood) stall.emplace(runtime.scheduler());
    auto const idle_kib = memory_kib("VmRSS:");
    auto const cpu = cpu_seconds();
    auto const start = Clock::now();
    auto const width = flood ? samples : std::min(in_flight, samples);
    for (std::size_t i = 0; i < width; ++i) bench.begin_one();
    bench.wait();
    auto const seconds = std::chrono::duration<double>(Clock::now() - start).count();
    auto const used = cpu_seconds() - cpu;
    auto const longest_stall_us = stall ? stall->longest_us() : 0.0;
    std::printf(
        "{\"samples\": %zu, \"failed\": %zu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, "
        "\"p50_us\": %.1f, \"p99_us\": %.1f, \"idle_kib\": %ld, \"waiting_kib\": %ld, "
        "\"peak_rss_kib\": %ld, "
        "\"longest_stall_us\": %.1f}\n",
        samples, bench.failed(), seconds, used, bench.latency(0.5), bench.latency(0.99), idle_kib,
        bench.waiting_kib(), memory_kib("VmHWM:"), longest_stall_us);
    return bench.failed() == 0 ? 0 : 1;
} catch (tinkxx::Error const& error) {
    std::cerr << "bench_sampling: " << error.what() << '\n';
    return 1;
}
