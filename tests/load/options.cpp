#include "load/options.hpp"

#include <charconv>
#include <filesystem>
#include <iostream>
#include <string_view>

namespace tinkxx::load {
namespace {

constexpr std::string_view help =
    "Puts a server of this machine under load, with faults, and checks what it promises.\n"
    "\n"
    "  tinkxx-load [--seconds N] [--users N] [--samples N] [--chaos SPEC] [--seed N] [--json]\n"
    "  tinkxx-load --fairness [--json]\n"
    "  tinkxx-load --hostile [--seconds N] [--probe-limit MS] [--memory-limit MIB] [--size "
    "PERCENT]\n"
    "\n"
    "Starts `tinkxx serve` in a process of its own, on a free port and with a fresh home. Each "
    "user\n"
    "has a key, a session, a sampler and connections of his own and always has as many samples\n"
    "under way; two training runs train, save and draw from what they saved meanwhile. Then:\n"
    "  every call has ended, once, with the value that a quiet server gives\n"
    "  the server has carried out as many samples, passes and steps as it was asked for\n"
    "  both runs repeated without faults give the same bits\n"
    "  memory is flat: after a quarter of the time, at most two minutes, the peak of the last\n"
    "  half of the rest is at most a tenth and 16 MiB above that of the half before\n"
    "\n"
    "  --fairness      one sample of one token after the other, without faults, and none may take\n"
    "                  more than 250 ms: first beside long forward and backward passes, then "
    "beside\n"
    "                  a session that asks for 1000 samples of 2046 tokens and one with 300 "
    "prompts\n"
    "                  of 2000; some of them from the session with the 1000 samples\n"
    "  --hostile       clients that mean ill, one kind after the other and several at once, "
    "beside\n"
    "                  ordinary users, and no faults: huge, nested, compressed and odd requests,\n"
    "                  connections that do not read, do not write or do nothing. All of that goes "
    "to\n"
    "                  the loopback address. healthz has to answer within the limit all the time, "
    "the\n"
    "                  users get what they ask for, memory is flat between rounds (in five minutes "
    "and\n"
    "                  more: caches fill before), and SIGTERM ends the server within ten seconds\n"
    "  --probe-limit MS    for healthz (100), without the time that the machine takes from a "
    "thread\n"
    "                  that sleeps; a debug build needs more\n"
    "  --memory-limit MIB  of the server (3072)\n"
    "  --only TEXT     those kinds of --hostile whose name has this in it\n"
    "  --size PERCENT  of the largest bodies and counts of --hostile (100)\n"
    "  --seconds N     how long (600; with --fairness 20 for each of the two; with --hostile at\n"
    "                  least 10). A round of\n"
    "                  --hostile that has begun is completed if it is the first\n"
    "  --users N       (500)\n"
    "  --samples N     that each has under way (20)\n"
    "  --chaos SPEC    faults, as for tinkxx serve (429:0.05,500:0.01,delay:50ms..2s,drop:0.01)\n"
    "  --seed N        of the faults, the samples and the waits (7)\n"
    "  --patience N    seconds that the last calls may take after the end (180)\n"
    "  --server FILE   the program to start (cli/tinkxx beside this one)\n"
    "  --json          the result as one line of JSON\n"
    "\n"
    "The result goes to stdout; progress to stderr, if that is a terminal.\n"
    "ExitCode codes: 0 all of it held; 1 something did not, and is named; 2 the command line is "
    "wrong;\n"
    "3 it could not be measured.\n";

bool read(std::string_view text, std::uint64_t least, std::uint64_t most, std::uint64_t& value) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && value >= least &&
           value <= most;
}

std::optional<Options> wrong(std::string const& why, ExitCode& code) {
    std::cerr << "tinkxx-load: " << why << "; see tinkxx-load --help\n";
    code = ExitCode::usage;
    return std::nullopt;
}

}  // namespace

std::optional<Options> parse(int argc, char** argv, ExitCode& code) {
    Options options;
    std::uint64_t value = 0;
    bool timed = false;
    for (int i = 1; i < argc; ++i) {
        std::string_view const word = argv[i];
        if (word == "--help" || word == "-h") {
            std::cout << help;
            code = ExitCode::success;
            return std::nullopt;
        }
        if (word == "--fairness") {
            options.fairness = true;
            continue;
        }
        if (word == "--hostile") {
            options.hostile = true;
            continue;
        }
        if (word == "--json") {
            options.json = true;
            continue;
        }
        if (++i == argc) return wrong(std::string{word} + " is unknown, or lacks its value", code);
        std::string_view const text = argv[i];
        bool good = true;
        if (word == "--seconds") {
            good = read(text, 4, 1'000'000, value);
            options.length = std::chrono::seconds{value};
            timed = true;
        } else if (word == "--patience") {
            good = read(text, 1, 1'000'000, value);
            options.patience = std::chrono::seconds{value};
        } else if (word == "--probe-limit") {
            good = read(text, 1, 1'000'000, options.probe_limit);
        } else if (word == "--only") {
            options.only = text;
        } else if (word == "--memory-limit") {
            good = read(text, 1, 1'000'000'000, options.memory_limit);
        } else if (word == "--size") {
            good = read(text, 1, 100, value);
            options.size = static_cast<unsigned>(value);
        } else if (word == "--users") {
            good = read(text, 1, 2000, value);
            options.users = static_cast<int>(value);
        } else if (word == "--samples") {
            good = read(text, 1, 1000, value);
            options.samples = static_cast<int>(value);
        } else if (word == "--seed") {
            good = read(text, 0, UINT64_MAX, options.seed);
        } else if (word == "--chaos") {
            options.chaos = text;
        } else if (word == "--server") {
            options.server = text;
        } else {
            return wrong("there is no option " + std::string{word}, code);
        }
        if (!good) return wrong(std::string{word} + " " + std::string{text} + " cannot work", code);
    }
    if (options.hostile && options.fairness) {
        return wrong("--hostile and --fairness exclude each other", code);
    }
    if (options.hostile && options.length < std::chrono::seconds{10}) {
        return wrong("--hostile needs at least --seconds 10", code);
    }
    if (options.server.empty()) {
        auto const own = std::filesystem::read_symlink("/proc/self/exe");
        options.server = (own.parent_path() / "cli" / "tinkxx").string();
    }
    if (options.fairness && !timed) options.length = std::chrono::seconds{20};
    return options;
}

}  // namespace tinkxx::load
