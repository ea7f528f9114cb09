// A server of this machine under load, with faults: `tinkxx-load --help`.
#include "load/fairness.hpp"
#include "load/hostile/hostile.hpp"
#include "load/memory_watch.hpp"
#include "load/options.hpp"
#include "load/problems.hpp"
#include "load/server_process.hpp"
#include "load/users/crowd.hpp"
#include "load/users/questions.hpp"
#include "load/users/training.hpp"

#include <tinkxx/local/service_client.hpp>
#include <tinkxx/tinkxx.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::load {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Numbers = std::map<std::string, std::uint64_t>;

void allow_many_files() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
}

std::uint64_t mebibytes(std::uint64_t bytes) { return bytes >> 20U; }

/// All series of that name together.
std::uint64_t sum_of(Numbers const& numbers, std::string const& name, std::string const& label) {
    std::uint64_t sum = 0;
    for (auto const& [key, value] : numbers) {
        if (key.starts_with(name) && key.find(label) != std::string::npos) sum += value;
    }
    return sum;
}

/// The two runs that train meanwhile, each on a thread of its own.
class Training {
public:
    Training(Options const& options, std::string const& url, Runtime const& runtime,
             Problems& problems)
        : options_{options}, problems_{problems} {
        for (int i = 0; i < 2; ++i) {
            ClientOptions client;
            client.base_url = url;
            client.api_key = "tml-trainer-" + std::to_string(i);
            client.runtime = runtime;
            client.timeouts.connect = 1min;
            services_.emplace_back(std::move(client));
            runs_.push_back(std::make_unique<UserTraining>(options.seed, i));
        }
    }
    ~Training() { stop(); }
    Training(Training const&) = delete;
    Training& operator=(Training const&) = delete;

    void start() {
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            threads_.emplace_back([this, i] {
                try {
                    // A call that begins just before the end has the patience of all the others.
                    runs_[i]->train(services_[i], open_, std::numeric_limits<std::size_t>::max(),
                                    options_.patience);
                } catch (Error const& error) {
                    // Chaos alone is no reason: the client goes on for five minutes.
                    problems_.add("training run " + std::to_string(i) + ": " + error.what());
                }
            });
        }
    }
    void close() { open_ = false; }
    /// Waits until both have ended.
    void stop() {
        open_ = false;
        for (auto& thread : threads_) {
            if (thread.joinable()) thread.join();
        }
    }
    /// The same calls, on a server without faults and without others.
    void repeat() {
        auto const server = quiet_server();
        auto const service = local::service_client(server, ClientOptions{});
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            UserTraining quiet{options_.seed, static_cast<int>(i)};
            std::atomic<bool> const open{true};
            auto const& rounds = runs_[i]->rounds();
            quiet.train(service, open, rounds.size(), 10min);
            for (std::size_t r = 0; r < rounds.size(); ++r) {
                if (quiet.rounds()[r] == rounds[r]) continue;
                problems_.add("training run " + std::to_string(i) + ": from round " +
                              std::to_string(r) + " on other values than on a quiet server");
                break;
            }
        }
        service.close().get();
        server.stop();
    }
    [[nodiscard]] std::uint64_t sum(std::uint64_t (UserTraining::*of)() const noexcept) const {
        std::uint64_t all = 0;
        for (auto const& run : runs_) all += ((*run).*of)();
        return all;
    }

private:
    Options const& options_;
    Problems& problems_;
    std::vector<ServiceClient> services_{};
    std::vector<std::unique_ptr<UserTraining>> runs_{};
    std::vector<std::thread> threads_{};
    std::atomic<bool> open_{true};
};

struct Outcome {
    Tally samples{};
    std::uint64_t numbers{0};
    std::uint64_t steps{0};
    std::uint64_t saves{0};
    std::uint64_t trained_tokens{0};
    std::uint64_t drawn_from_checkpoints{0};
    double drain_seconds{0};
    Numbers server{};
    MemoryWatch server_memory{0};
    MemoryWatch own_memory{0};
    std::uint64_t server_peak{0};
    std::uint64_t own_peak{0};
};

void progress(Outcome const& outcome, Crowd const& crowd, Training const& training,
              std::chrono::seconds since, char const* stage) {
    static bool const watched = ::isatty(STDERR_FILENO) == 1;
    if (!watched) return;
    auto const tally = crowd.tally();
    std::ostringstream line;
    line << '\r' << stage << ' ' << since.count() << " s: " << tally.ended << " samples, "
         << tally.begun - tally.ended << " under way, p50 " << std::fixed << std::setprecision(1)
         << tally.p50 << " s, " << training.sum(&UserTraining::steps) << " steps, server "
         << mebibytes(outcome.server_peak) << " MiB, client " << mebibytes(outcome.own_peak)
         << " MiB   ";
    std::cerr << line.str() << std::flush;
}

/// What the clients were told against what the server has counted.
void compare(Outcome const& outcome, Problems& problems) {
    auto const expect = [&](std::string const& name, std::uint64_t told) {
        auto const found = outcome.server.find(name);
        auto const counted = found == outcome.server.end() ? 0 : found->second;
        if (counted == told) return;
        problems.add("the server has " + name + " " + std::to_string(counted) +
                     ", and its clients know of " + std::to_string(told));
    };
    // Each number that a sampler has used is carried out once, however often it was sent.
    auto const samples = outcome.numbers + outcome.drawn_from_checkpoints;
    expect("tinkxx_sample_requests_total", samples);
    expect("tinkxx_sampled_tokens_total", samples * static_cast<std::uint64_t>(tokens_of_a_sample));
    expect("tinkxx_steps_total", outcome.steps);
    expect("tinkxx_trained_tokens_total", outcome.trained_tokens);
    expect("tinkxx_checkpoints_saved_total", outcome.saves);
    expect("tinkxx_requests_pending", 0);
    if (outcome.numbers < outcome.samples.right) {
        problems.add("samplers have used " + std::to_string(outcome.numbers) + " numbers for " +
                     std::to_string(outcome.samples.right) + " samples");
    }
}

void watch(Outcome& outcome, ServerProcess const& server) {
    auto const theirs = memory_of(server.id(), "VmRSS");
    auto const own = memory_of(::getpid(), "VmRSS");
    outcome.server_memory.add(theirs);
    outcome.own_memory.add(own);
    outcome.server_peak = std::max(outcome.server_peak, memory_of(server.id(), "VmHWM"));
    outcome.own_peak = std::max(outcome.own_peak, own);
}

Outcome run(Options const& options, Problems& problems) {
    auto const questions = make_questions(options.seed);
    std::vector<std::string> arguments{"--seed", std::to_string(options.seed)};
    if (!options.chaos.empty()) {
        arguments.insert(arguments.end(), {"--chaos", options.chaos});
    }
    ServerProcess server{options.server, arguments};
    Outcome outcome;
    {
        // Faults are many, and each would be told.
        Runtime const runtime{{.seed = options.seed, .log_level = LogLevel::error}};
        Crowd crowd{options, server.url(), runtime, questions, problems};
        Training training{options, server.url(), runtime, problems};
        auto const begin = Clock::now();
        auto const end = begin + options.length;
        crowd.start();
        training.start();
        for (auto next = begin + 1s; next <= end; next += 1s) {
            std::this_thread::sleep_until(next);
            watch(outcome, server);
            progress(outcome, crowd, training,
                     std::chrono::duration_cast<std::chrono::seconds>(next - begin), "load");
        }
        crowd.stop();
        training.close();
        auto const limit = end + options.patience;
        while (!crowd.wait_until(std::min(limit, Clock::now() + 1s)) && Clock::now() < limit) {
            progress(outcome, crowd, training,
                     std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - end), "end");
        }
        outcome.samples = crowd.tally();
        if (auto const left = outcome.samples.begun - outcome.samples.ended; left > 0) {
            problems.add(std::to_string(left) + " samples have not ended " +
                         std::to_string(options.patience.count()) +
                         " s after the end:" + crowd.pending());
        }
        training.stop();
        outcome.drain_seconds = std::chrono::duration<double>(Clock::now() - end).count();
        if (::isatty(STDERR_FILENO) == 1) std::cerr << '\n';
        outcome.numbers = crowd.numbers_used();
        outcome.steps = training.sum(&UserTraining::steps);
        outcome.saves = training.sum(&UserTraining::saves);
        outcome.trained_tokens = training.sum(&UserTraining::tokens);
        outcome.drawn_from_checkpoints = training.sum(&UserTraining::samples);
        outcome.server = server.metrics();
        compare(outcome, problems);
        if (!crowd.close(Clock::now() + 1min)) {
            problems.add("sessions have not ended a minute after they were asked to");
        }
        training.repeat();
    }
    if (auto const code = server.end(); code != 0) {
        problems.add("the server ended with " + std::to_string(code) + ":\n" + server.said());
    }
    auto const grew = [&](char const* who, MemoryWatch const& memory) {
        if (memory.flat()) return;
        auto const [first, second] = memory.halves();
        problems.add(std::string{"memory of the "} + who + " grew from " +
                     std::to_string(mebibytes(first)) + " to " + std::to_string(mebibytes(second)) +
                     " MiB");
    };
    grew("server", outcome.server_memory);
    grew("client", outcome.own_memory);
    return outcome;
}

void print(Options const& options, Outcome const& outcome, Problems const& problems) {
    auto const& samples = outcome.samples;
    auto const seconds = static_cast<double>(options.length.count()) + outcome.drain_seconds;
    auto const faults = [&](std::string const& kind) {
        return sum_of(outcome.server, "tinkxx_chaos_total", "\"" + kind + "\"");
    };
    auto const requests = sum_of(outcome.server, "tinkxx_requests_total", "");
    auto const refused = sum_of(outcome.server, "tinkxx_requests_total", "status=\"429\"");
    auto const [server_first, server_second] = outcome.server_memory.halves();
    auto const [own_first, own_second] = outcome.own_memory.halves();
    std::ostringstream out;
    out << std::fixed << std::setprecision(2);
    if (options.json) {
        out << "{\"good\":" << (problems.count() == 0 ? "true" : "false")
            << ",\"problems\":" << problems.count() << ",\"seconds\":" << options.length.count()
            << ",\"drain_seconds\":" << outcome.drain_seconds << ",\"users\":" << options.users
            << ",\"in_flight\":" << options.users * options.samples
            << ",\"samples\":" << samples.ended << ",\"right\":" << samples.right
            << ",\"failed_by_chaos\":" << samples.explained
            << ",\"repeated_samples\":" << outcome.numbers - samples.begun
            << ",\"p50_seconds\":" << samples.p50 << ",\"p99_seconds\":" << samples.p99
            << ",\"longest_seconds\":" << samples.longest << ",\"steps\":" << outcome.steps
            << ",\"saves\":" << outcome.saves << ",\"http_requests\":" << requests
            << ",\"status_429\":" << refused << ",\"chaos_429\":" << faults("429")
            << ",\"chaos_500\":" << faults("500") << ",\"chaos_drop\":" << faults("drop")
            << ",\"server_peak_bytes\":" << outcome.server_peak << ",\"server_halves_bytes\":["
            << server_first << "," << server_second
            << "],\"client_peak_bytes\":" << outcome.own_peak << ",\"client_halves_bytes\":["
            << own_first << "," << own_second << "]}\n";
        std::cout << out.str() << std::flush;
        return;
    }
    out << options.users << " users x " << options.samples << " samples for "
        << options.length.count() << " s, the last calls ended " << outcome.drain_seconds
        << " s later\n"
        << "  samples   " << samples.ended << " ended, " << samples.right << " right, "
        << samples.explained << " failed by chaos, " << outcome.numbers - samples.begun
        << " repeated; " << static_cast<double>(samples.ended) / seconds << " a second\n"
        << "  latency   p50 " << samples.p50 << " s, p99 " << samples.p99 << " s, longest "
        << samples.longest << " s\n"
        << "  training  " << outcome.steps << " steps and " << outcome.saves
        << " checkpoints of two runs\n"
        << "  requests  " << requests << ", of which 429: " << refused
        << "; by chaos 429: " << faults("429") << ", 500: " << faults("500")
        << ", dropped: " << faults("drop") << '\n'
        << "  memory    server " << mebibytes(server_first) << " then " << mebibytes(server_second)
        << " MiB, at most " << mebibytes(outcome.server_peak) << "; client " << mebibytes(own_first)
        << " then " << mebibytes(own_second) << " MiB, at most " << mebibytes(outcome.own_peak)
        << '\n';
    std::cout << out.str() << std::flush;
}

ExitCode measure_load(Options const& options) {
    Problems problems;
    auto const outcome = run(options, problems);
    print(options, outcome, problems);
    for (auto const& text : problems.texts()) std::cerr << "broken: " << text << '\n';
    if (problems.count() > problems.texts().size()) {
        std::cerr << "and " << problems.count() - problems.texts().size() << " more\n";
    }
    return problems.count() == 0 ? ExitCode::success : ExitCode::broken;
}

}  // namespace
}  // namespace tinkxx::load

int main(int argc, char** argv) {
    using namespace tinkxx::load;
    auto code = ExitCode::success;
    auto const options = parse(argc, argv, code);
    if (!options) return static_cast<int>(code);
    try {
        allow_many_files();
        code = options->hostile    ? measure_hostile(*options)
               : options->fairness ? measure_fairness(*options)
                                   : measure_load(*options);
    } catch (std::exception const& error) {
        std::cerr << "tinkxx-load: " << error.what() << '\n';
        code = ExitCode::failure;
    }
    return static_cast<int>(code);
}
