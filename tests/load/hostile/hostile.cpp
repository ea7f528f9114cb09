#include "load/hostile/hostile.hpp"

#include "load/hostile/attacks.hpp"
#include "load/hostile/probe.hpp"
#include "load/memory_watch.hpp"
#include "load/problems.hpp"
#include "load/server_process.hpp"
#include "load/users/ordinary.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tinkxx::load {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr char const* good_key = "tml-hostile";
constexpr auto time_to_end = 10s;
/// Attacks of different kinds at the same time.
constexpr std::size_t at_once = 4;
/// Part of a round in which they come one by one.
constexpr double one_by_one = 0.7;
/// For the server to do away with what an attack left, before its memory is looked at.
constexpr auto rest = 1s;
/// Rounds and time without which growth cannot be told from caches that fill: the server keeps
/// weights that nobody uses for five minutes.
constexpr std::size_t rounds_for_growth = 4;
constexpr auto time_for_growth = 5min;

double milliseconds(Clock::duration time) {
    return std::chrono::duration<double, std::milli>{time}.count();
}

std::string in_words(Clock::duration time) {
    std::ostringstream out;
    auto const ms = milliseconds(time);
    out << std::fixed << std::setprecision(ms < 1000 ? 0 : 1) << (ms < 1000 ? ms : ms / 1000)
        << (ms < 1000 ? " ms" : " s");
    return out.str();
}

/// Kinds that ran at the same time.
struct Turn {
    std::vector<std::size_t> which{};
    Clock::time_point begin{};
    Clock::time_point end{};
};

/// What is known of one kind.
struct Record {
    Attack attack{};
    Outcomes outcomes{};
    Clock::duration alone{0};    ///< the longest healthz beside this kind
    Clock::duration company{0};  ///< and beside this kind and others
    Clock::duration time{0};     ///< that its turns took
    std::uint64_t peak{0};       ///< of the server's memory beside this kind
};

struct Report {
    std::vector<Record> records{};
    std::size_t probes{0};
    Clock::duration longest{0};
    Clock::duration stall{0};
    std::uint64_t samples{0};
    std::uint64_t steps{0};
    double longest_sample{0};
    MemoryWatch at_rest{0};
    std::uint64_t peak{0};
    Clock::duration end{0};
    std::size_t rounds{0};
};

/// Looks at the server's memory as long as it lives. Any thread.
class MemoryMeter {
public:
    explicit MemoryMeter(ServerProcess const& server)
        : thread_{[this, &server] {
              while (open_) {
                  auto const now = memory_of(server.id(), "VmRSS");
                  for (auto seen = peak_.load();
                       now > seen && !peak_.compare_exchange_weak(seen, now);) {
                  }
                  std::this_thread::sleep_for(20ms);
              }
          }} {}
    ~MemoryMeter() {
        open_ = false;
        thread_.join();
    }
    MemoryMeter(MemoryMeter const&) = delete;
    MemoryMeter& operator=(MemoryMeter const&) = delete;
    /// Since the last time.
    [[nodiscard]] std::uint64_t peak() { return peak_.exchange(0); }

private:
    std::atomic<bool> open_{true};
    std::atomic<std::uint64_t> peak_{0};
    std::thread thread_;
};

class Hostile {
public:
    Hostile(Options const& options, ServerProcess const& server, Problems& problems)
        : options_{options}, server_{server}, problems_{problems} {
        for (auto const& attack : attacks()) {
            if (attack.name.find(options.only) == std::string_view::npos) continue;
            report_.records.push_back({.attack = attack});
        }
        if (report_.records.empty()) {
            throw std::runtime_error{"no kind of attack has '" + options.only + "' in its name"};
        }
        target_.port = static_cast<std::uint16_t>(
            std::strtoul(server.url().c_str() + server.url().rfind(':') + 1, nullptr, 10));
        target_.key = std::string{"X-API-Key: "} + good_key + "\r\n";
        target_.size = options.size;
    }

    /// Rounds of all kinds, until the time is over; the first one is always complete.
    void run() {
        std::mt19937_64 chance{options_.seed};
        auto const length = std::clamp<Clock::duration>(options_.length / 6, 8s, 100s);
        auto const kinds = report_.records.size();
        auto const groups = (kinds + at_once - 1) / at_once;
        auto const alone = std::chrono::duration_cast<Clock::duration>(length * one_by_one /
                                                                       static_cast<double>(kinds));
        auto const together = std::chrono::duration_cast<Clock::duration>(
            (length * (1 - one_by_one) - rest) / static_cast<double>(groups));
        Probe probe{target_.port, problems_};
        MemoryMeter meter{server_};
        auto const end = Clock::now() + options_.length;
        bool alive = true;
        while (alive && (report_.rounds == 0 || Clock::now() < end)) {
            for (std::size_t i = 0; alive && i < kinds && more_time(end); ++i) {
                alive = attack({i}, alone, probe, meter);
            }
            std::vector<std::size_t> order(kinds);
            for (std::size_t i = 0; i < kinds; ++i) order[i] = i;
            std::ranges::shuffle(order, chance);
            for (std::size_t at = 0; alive && at < kinds && more_time(end); at += at_once) {
                auto const last = std::min(at + at_once, kinds);
                alive = attack({order.begin() + static_cast<std::ptrdiff_t>(at),
                                order.begin() + static_cast<std::ptrdiff_t>(last)},
                               together, probe, meter);
            }
            std::this_thread::sleep_for(rest);
            report_.at_rest.add(memory_of(server_.id(), "VmRSS"));
            ++report_.rounds;
        }
        probe.stop();
        judge(probe);
    }
    void leave_work() {
        target_.end = Clock::now();
        load::leave_work(target_);
    }
    [[nodiscard]] Report& report() { return report_; }

private:
    [[nodiscard]] bool more_time(Clock::time_point end) const {
        return report_.rounds == 0 || Clock::now() < end;
    }

    /// Several at once; false if the server is gone.
    bool attack(std::vector<std::size_t> const& which, Clock::duration length, Probe const& probe,
                MemoryMeter& meter) {
        progress(which);
        (void)meter.peak();
        auto const begin = Clock::now();
        std::vector<std::thread> threads;
        for (auto const i : which) {
            threads.emplace_back([this, i, length] {
                // The server and those who measure it come first: this is no test of who is faster.
                ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 10);
                auto& record = report_.records[i];
                auto target = target_;
                target.end = Clock::now() + length;
                target.seed = options_.seed + report_.rounds * 100 + i;
                record.attack.run(target, record.outcomes);
            });
        }
        for (auto& thread : threads) thread.join();
        if (!server_.ended()) probe.settle();
        turns_.push_back({which, begin, Clock::now()});
        auto const peak = meter.peak();
        report_.peak = std::max(report_.peak, peak);
        for (auto const i : which) {
            if (which.size() == 1) {
                report_.records[i].peak = std::max(report_.records[i].peak, peak);
            }
        }
        if (!server_.ended()) return true;
        problems_.add("the server has died while: " + names(which));
        return false;
    }

    [[nodiscard]] std::string names(std::vector<std::size_t> const& which) const {
        std::string text;
        for (auto const i : which) {
            text += (text.empty() ? "" : ", ") + std::string{report_.records[i].attack.name};
        }
        return text;
    }

    void progress(std::vector<std::size_t> const& which) const {
        if (::isatty(STDERR_FILENO) != 1) return;
        std::cerr << "\r\x1b[Kround " << report_.rounds + 1 << ":";
        for (auto const i : which) std::cerr << " [" << report_.records[i].attack.name << "]";
        std::cerr << std::flush;
    }

    void judge(Probe const& probe) {
        using Edge = Clock::time_point;
        report_.probes = probe.count();
        report_.stall = probe.longest_stall();
        report_.longest = probe.longest(Edge::min(), Edge::max());
        std::chrono::milliseconds const limit{options_.probe_limit};
        auto const slow = [&](Clock::duration longest, std::string const& when) {
            if (longest <= limit) return;
            problems_.add("healthz took " + in_words(longest) + " (limit " + in_words(limit) +
                          ") " + when);
        };
        Turn const* worst = nullptr;  // of those that were several
        Clock::duration worst_time{0};
        Clock::duration within{0};
        for (auto const& turn : turns_) {
            auto const longest = probe.longest(turn.begin, turn.end);
            within = std::max(within, longest);
            for (auto const i : turn.which) {
                auto& record = report_.records[i];
                auto& known = turn.which.size() == 1 ? record.alone : record.company;
                known = std::max(known, longest);
                record.time += turn.end - turn.begin;
            }
            if (turn.which.size() > 1 && longest > worst_time) {
                worst = &turn;
                worst_time = longest;
            }
        }
        for (auto const& record : report_.records) {
            std::string const name{record.attack.name};
            slow(record.alone, "while: " + name);
            if (record.outcomes.contains("500")) {
                problems_.add(std::to_string(record.outcomes.at("500")) +
                              " answers of status 500 to: " + name);
            }
            if (record.attack.waits && record.outcomes.contains("silent")) {
                problems_.add(std::to_string(record.outcomes.at("silent")) +
                              " requests without an answer of: " + name);
            }
        }
        if (worst != nullptr) slow(worst_time, "while, at once: " + names(worst->which));
        if (report_.longest > within) slow(report_.longest, "between attacks");
    }

    Options const& options_;
    ServerProcess const& server_;
    Problems& problems_;
    Target target_{};
    std::vector<Turn> turns_{};
    Report report_{};
};

std::uint64_t mebibytes(std::uint64_t bytes) { return bytes >> 20U; }

bool tells_growth(Options const& options, Report const& report) {
    return report.rounds >= rounds_for_growth && options.length >= time_for_growth;
}

void judge_memory(Options const& options, Report const& report, Problems& problems) {
    if (mebibytes(report.peak) > options.memory_limit) {
        std::string who;
        for (auto const& record : report.records) {
            if (mebibytes(record.peak) <= options.memory_limit) continue;
            who += (who.empty() ? " while: " : ", ") + std::string{record.attack.name};
        }
        problems.add("the server took " + std::to_string(mebibytes(report.peak)) +
                     " MiB of memory (limit " + std::to_string(options.memory_limit) + " MiB)" +
                     who);
    }
    if (!tells_growth(options, report) || report.at_rest.flat()) return;
    auto const [first, second] = report.at_rest.halves();
    problems.add("memory of the server between rounds grew from " +
                 std::to_string(mebibytes(first)) + " to " + std::to_string(mebibytes(second)) +
                 " MiB");
}

void judge_log(std::string const& log, Problems& problems) {
    std::istringstream lines{log};
    std::size_t errors = 0;
    std::string first;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(" error ") == std::string::npos) continue;
        if (errors++ == 0) first = line;
    }
    if (errors > 0) {
        problems.add("the server has logged " + std::to_string(errors) +
                     " errors, of which the first: " + first);
    }
}

std::uint64_t sum_of(Outcomes const& outcomes) {
    std::uint64_t sum = 0;
    for (auto const& [outcome, count] : outcomes) sum += count;
    return sum;
}

void print_json(Options const& options, Report const& report, Problems const& problems) {
    auto const [first, second] = report.at_rest.halves();
    std::ostringstream out;
    out << std::fixed << std::setprecision(1)
        << "{\"good\":" << (problems.count() == 0 ? "true" : "false")
        << ",\"problems\":" << problems.count() << ",\"seconds\":" << options.length.count()
        << ",\"rounds\":" << report.rounds << ",\"probes\":" << report.probes
        << ",\"longest_ms\":" << milliseconds(report.longest)
        << ",\"probe_limit_ms\":" << options.probe_limit
        << ",\"machine_stall_ms\":" << milliseconds(report.stall)
        << ",\"samples\":" << report.samples
        << ",\"longest_sample_ms\":" << 1e3 * report.longest_sample << ",\"steps\":" << report.steps
        << ",\"peak_bytes\":" << report.peak << ",\"rest_halves_bytes\":[" << first << "," << second
        << "],\"end_ms\":" << milliseconds(report.end) << ",\"attacks\":[";
    bool more = false;
    for (auto const& record : report.records) {
        out << (more ? "," : "") << "{\"name\":\"" << record.attack.name
            << "\",\"requests\":" << sum_of(record.outcomes)
            << ",\"longest_ms\":" << milliseconds(record.alone)
            << ",\"longest_in_company_ms\":" << milliseconds(record.company)
            << ",\"seconds\":" << milliseconds(record.time) / 1000
            << ",\"peak_bytes\":" << record.peak << ",\"outcomes\":{";
        more = false;
        for (auto const& [outcome, count] : record.outcomes) {
            out << (more ? "," : "") << "\"" << outcome << "\":" << count;
            more = true;
        }
        out << "}}";
        more = true;
    }
    std::cout << out.str() << "]}\n" << std::flush;
}

void print_table(Options const& options, Report const& report) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(1) << std::left << std::setw(30) << "attack"
        << std::right << std::setw(9) << "requests" << std::setw(10) << "healthz" << std::setw(12)
        << "in company" << std::setw(11) << "memory"
        << "  outcomes\n";
    for (auto const& record : report.records) {
        out << std::left << std::setw(30) << record.attack.name << std::right << std::setw(9)
            << sum_of(record.outcomes) << std::setw(10) << in_words(record.alone) << std::setw(12)
            << in_words(record.company) << std::setw(7) << mebibytes(record.peak) << " MiB ";
        for (auto const& [outcome, count] : record.outcomes) out << ' ' << outcome << ": " << count;
        out << '\n';
    }
    auto const [first, second] = report.at_rest.halves();
    out << report.rounds << " rounds of " << report.records.size() << " kinds in "
        << options.length.count() << " s; size " << options.size << "%\n"
        << "  healthz  " << report.probes << " answers, longest " << in_words(report.longest)
        << " (limit " << options.probe_limit << " ms); the machine itself stalled for "
        << in_words(report.stall) << " at most\n"
        << "  users    " << report.samples << " samples, longest " << report.longest_sample
        << " s; " << report.steps << " training steps\n"
        << "  memory   at most " << mebibytes(report.peak) << " MiB (limit " << options.memory_limit
        << " MiB); between rounds " << mebibytes(first) << " then " << mebibytes(second) << " MiB"
        << (tells_growth(options, report) ? "" : ", too short a time to tell growth") << '\n'
        << "  end      " << in_words(report.end) << " after SIGTERM, with work left\n";
    std::cout << out.str() << std::flush;
}

}  // namespace

ExitCode measure_hostile(Options const& options) {
    Problems problems;
    // The cache of keys and values grows until it is full: a small one is so early on.
    ServerProcess server{options.server, {"--api-key", good_key, "--cache-mib", "128"}};
    Hostile hostile{options, server, problems};
    auto& report = hostile.report();
    {
        Ordinary users{server.url(), good_key, options.seed, options.patience, problems};
        hostile.run();
        if (!server.ended()) users.stop();
        report.samples = users.samples();
        report.steps = users.steps();
        report.longest_sample = users.longest_sample();
        if (!server.ended()) users.repeat();
    }
    if (report.samples == 0) problems.add("no ordinary user has got a sample");
    if (report.steps == 0) problems.add("the training run has made no step");
    if (!server.ended()) {
        hostile.leave_work();
        auto const asked = Clock::now();
        auto const code = server.end();
        report.end = Clock::now() - asked;
        if (code != 0 || report.end > time_to_end) {
            problems.add("the server ended with " + std::to_string(code) + " " +
                         in_words(report.end) + " after SIGTERM (limit " + in_words(time_to_end) +
                         ")");
        }
    }
    judge_memory(options, report, problems);
    judge_log(server.said(), problems);

    if (::isatty(STDERR_FILENO) == 1) std::cerr << '\n';
    if (options.json) {
        print_json(options, report, problems);
    } else {
        print_table(options, report);
    }
    for (auto const& text : problems.texts()) std::cerr << "broken: " << text << '\n';
    if (problems.count() > problems.texts().size()) {
        std::cerr << "and " << problems.count() - problems.texts().size() << " more\n";
    }
    return problems.count() == 0 ? ExitCode::success : ExitCode::broken;
}

}  // namespace tinkxx::load
