// One measurement of the network transport: keeps a number of requests in flight until enough
// have been answered, and prints what it took as JSON. `transport` runs it beside wrk and h2load.
//
// The full path of a request is taken: another thread makes it and hands it to the loop, it has
// deadlines, and its end is recorded for that thread under a lock.
#include <tinkxx/net_transport.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/transport.hpp>

#include "process_usage.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

using tinkxx::bench::cpu_seconds;
using tinkxx::bench::memory_kib;

using Clock = std::chrono::steady_clock;

struct Options {
    std::string url{};
    std::string ca{};
    int http{1};
    std::size_t in_flight{1};
    std::size_t body{1024};
    std::size_t answer{512};
    std::size_t requests{10'000};  ///< how many to send, or
    double seconds{0};             ///< for how long, after
    double settle{0};              ///< this long at the beginning, which is not counted
    std::vector<std::pair<std::string, std::string>> headers{};
};

[[noreturn]] void usage(std::string const& problem) {
    std::cerr << "bench_transport: " << problem << "\n"
              << "usage: bench_transport --url URL [--ca FILE] [--http 1|2] [--in-flight N]\n"
                 "       [--body BYTES] [--answer BYTES] [--header NAME:VALUE]...\n"
                 "       (--requests N | --settle SECONDS --seconds SECONDS)\n";
    std::exit(2);
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; i += 2) {
        std::string_view const name = argv[i];
        if (i + 1 == argc) usage("no value for " + std::string{name});
        std::string const value = argv[i + 1];
        if (name == "--url") {
            options.url = value;
        } else if (name == "--ca") {
            options.ca = value;
        } else if (name == "--http") {
            options.http = std::stoi(value);
        } else if (name == "--in-flight") {
            options.in_flight = std::stoul(value);
        } else if (name == "--body") {
            options.body = std::stoul(value);
        } else if (name == "--answer") {
            options.answer = std::stoul(value);
        } else if (name == "--requests") {
            options.requests = std::stoul(value);
        } else if (name == "--seconds") {
            options.seconds = std::stod(value);
        } else if (name == "--settle") {
            options.settle = std::stod(value);
        } else if (name == "--header") {
            auto const colon = value.find(':');
            if (colon == std::string::npos) usage("a header is NAME:VALUE");
            options.headers.emplace_back(value.substr(0, colon), value.substr(colon + 1));
        } else {
            usage("unknown option " + std::string{name});
        }
    }
    if (options.url.empty()) usage("no --url");
    return options;
}

class Bench {
public:
    explicit Bench(Options options)
        : options_{std::move(options)},
          transport_{tinkxx::net_transport(runtime_, net_options(options_))},
          body_{std::make_shared<std::string const>(options_.body, 'b')} {
        auto common = std::make_shared<tinkxx::Headers>();
        for (auto const& [name, value] : options_.headers) common->add(name, value);
        common_ = std::move(common);
        for (std::size_t i = 0; i < options_.in_flight; ++i) {
            slots_.push_back(std::make_unique<Slot>(*this));
            ended_.push_back(slots_.back().get());
        }
    }

    int run() {
        bool const timed = options_.seconds > 0;
        auto const begin = Clock::now();
        auto const window_begin = begin + to_duration(options_.settle);
        auto const window_end = window_begin + to_duration(options_.seconds);
        bool in_window = false;
        double cpu_before = 0;
        auto counted_from = begin;
        std::size_t started = 0;
        std::size_t ended = 0;
        std::size_t ended_before = 0;
        std::vector<Slot*> free;
        for (;;) {
            {
                std::unique_lock lock{mutex_};
                wake_.wait(lock, [this] { return !ended_.empty(); });
                free.swap(ended_);
            }
            if (started > 0) ended += free.size();
            auto const now = Clock::now();
            if (timed) {
                if (!in_window && now >= window_begin) {
                    in_window = true;
                    counted_from = now;
                    cpu_before = cpu_seconds();
                    ended_before = ended;
                }
                if (now >= window_end) break;
            } else if (ended >= options_.requests) {
                break;
            }
            for (auto* const slot : free) {
                if (!timed && started >= options_.requests) break;
                submit(*slot, started++);
            }
            free.clear();
        }
        auto const wall = std::chrono::duration<double>(Clock::now() - counted_from).count();
        auto const cpu = cpu_seconds() - cpu_before;
        auto const rss = memory_kib("VmRSS:");
        std::size_t failed = 0;
        std::string why;
        {
            std::lock_guard const lock{mutex_};
            failed = failed_;
            why = why_;
        }
        std::printf(
            "{\"requests\": %zu, \"failed\": %zu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, "
            "\"rss_kib\": %ld, \"peak_rss_kib\": %ld}\n",
            ended - ended_before, failed, wall, cpu, rss, memory_kib("VmHWM:"));
        std::fflush(stdout);
        if (failed > 0) std::cerr << "bench_transport: " << why << "\n";
        // What is still in flight would only be waited for.
        ::_exit(failed == 0 ? 0 : 1);
    }

private:
    struct Slot final : tinkxx::ReplySink {
        explicit Slot(Bench& owner) noexcept : bench{owner} {}
        void on_head(tinkxx::Head head) override { status = head.status; }
        void on_data(std::span<char const> data) override { received += data.size(); }
        void on_done(tinkxx::Timing const&) override {
            bool const right = status == 200 && received == bench.options_.answer;
            bench.end(*this, right ? std::string{}
                                   : "status " + std::to_string(status) + ", " +
                                         std::to_string(received) + " bytes");
        }
        void on_failure(tinkxx::Failure failure) override { bench.end(*this, failure.message); }

        Bench& bench;
        int status{0};
        std::size_t received{0};
    };

    static Clock::duration to_duration(double seconds) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

    static tinkxx::NetOptions net_options(Options const& options) {
        tinkxx::NetOptions net;
        net.http_version =
            options.http == 2 ? tinkxx::HttpVersion::http2 : tinkxx::HttpVersion::http1;
        net.tls.ca_file = options.ca;
        net.max_http1_connections = static_cast<int>(std::max<std::size_t>(options.in_flight, 256));
        net.max_connections = std::max(net.max_http1_connections, net.max_connections);
        return net;
    }

    /// The submitting thread.
    void submit(Slot& slot, std::size_t number) {
        slot.status = 0;
        slot.received = 0;
        tinkxx::Request request;
        request.method = "POST";
        request.url = options_.url;
        request.common_headers = common_;
        char id[32];
        auto const size = std::snprintf(id, sizeof id, "%020zu", number);
        request.headers.add("x-request-id", std::string(id, static_cast<std::size_t>(size)));
        request.body.tail = body_;
        request.purpose = tinkxx::Purpose::sample;
        request.timeouts.total = std::chrono::seconds{120};
        request.timeouts.read = std::chrono::seconds{60};
        runtime_.scheduler().post([this, &slot, moved = std::move(request)]() mutable {
            transport_->start(std::move(moved), slot);
        });
    }

    /// The loop. Ends of one turn are handed over together: to wake the other thread for each
    /// would measure the scheduler of the operating system.
    void end(Slot& slot, std::string problem) {
        if (batch_.empty()) runtime_.scheduler().post([this] { hand_over(); });
        batch_.push_back(&slot);
        if (problem.empty()) return;
        std::lock_guard const lock{mutex_};
        ++failed_;
        why_ = std::move(problem);
    }

    void hand_over() {
        {
            std::lock_guard const lock{mutex_};
            ended_.insert(ended_.end(), batch_.begin(), batch_.end());
        }
        batch_.clear();
        wake_.notify_one();
    }

    Options options_;
    tinkxx::Runtime runtime_;
    std::shared_ptr<tinkxx::Transport> transport_;
    std::shared_ptr<std::string const> body_;
    std::shared_ptr<tinkxx::Headers const> common_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<Slot*> batch_;  ///< loop only: ended in this turn

    std::mutex mutex_;  ///< guards the members below
    std::condition_variable wake_;
    std::vector<Slot*> ended_;
    std::size_t failed_{0};
    std::string why_;
};

}  // namespace

int main(int argc, char** argv) try {
    return Bench{parse(argc, argv)}.run();
} catch (std::exception const& error) {
    std::cerr << "bench_transport: " << error.what() << "\n";
    return 1;
}
