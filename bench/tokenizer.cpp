// How fast texts become tokens, on one thread and on all. `tokenizer` beside this file runs it, and
// others on the same texts.
//
//     bench_tokenizer TOKENIZER_JSON SECONDS TEXT_FILE...
//
// Prints one JSON object. Each file is cut at 4,000 characters and encoded again and again for so
// many seconds; megabytes a second of the best round.
#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using WallClock = std::chrono::steady_clock;

/// The CPU time of this process: what one thread takes, whatever else the machine does.
struct CpuClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<CpuClock>;
    static constexpr bool is_steady = true;
    static time_point now() {
        timespec time{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return time_point{std::chrono::seconds{time.tv_sec} +
                          std::chrono::nanoseconds{time.tv_nsec}};
    }
};

using tinkxx::text::TextTokenizer;

constexpr tinkxx::text::EncodeOptions plain{.add_special = false};

template <class Clock>
double seconds_since(std::chrono::time_point<Clock> start) {
    return std::chrono::duration<double>{Clock::now() - start}.count();
}

std::string read_file(char const* path) {
    std::ifstream file{path, std::ios::binary};
    if (!file) {
        std::cerr << "bench_tokenizer: " << path << " cannot be read\n";
        std::exit(1);
    }
    return {std::istreambuf_iterator<char>{file}, {}};
}

std::vector<std::string_view> cut(std::string_view text, std::size_t characters) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
        if (count++ < characters) continue;
        parts.push_back(text.substr(begin, i - begin));
        begin = i;
        count = 1;
    }
    if (begin < text.size()) parts.push_back(text.substr(begin));
    return parts;
}

/// The best of the rounds that fit into so many seconds.
template <class Clock, class Round>
double best_seconds(double seconds, Round round) {
    double best = 1e9;
    auto const start = Clock::now();
    do {
        auto const begin = Clock::now();
        round();
        best = std::min(best, seconds_since(begin));
    } while (seconds_since(start) < seconds);
    return best;
}

/// What this process has in memory, in megabytes.
double resident_megabytes() {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) * 1024 / 1e6;
    }
    return 0;
}

/// FNV-1a of the ids, each as four bytes: equal for equal tokens.
std::string checksum_of(std::span<tinkxx::Token const> tokens) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (auto const token : tokens) {
        for (unsigned shift = 0; shift < 32; shift += 8) {
            hash ^= static_cast<std::uint64_t>(token) >> shift & 0xffU;
            hash *= 0x100000001b3U;
        }
    }
    return std::to_string(hash);
}

void print_load(char const* path, double seconds) {
    auto const before = resident_megabytes();
    auto const tokenizer = TextTokenizer::from_file(path);
    auto const memory = resident_megabytes() - before;
    auto const load =
        best_seconds<CpuClock>(seconds, [&] { (void)TextTokenizer::from_file(path); });
    std::cout << "\"load_ms\":" << load * 1e3 << ",\"memory_mb\":" << memory
              << ",\"entries\":" << tokenizer.vocabulary_size();
}

void print_text(TextTokenizer const& tokenizer, char const* path, double seconds) {
    auto const text = read_file(path);
    auto const megabytes = static_cast<double>(text.size()) / 1e6;
    auto const parts = cut(text, 4000);
    std::vector<tinkxx::Token> tokens;
    auto const all = [&] {
        tokens.clear();
        for (auto const part : parts) tokenizer.encode_to(tokens, part, plain);
    };
    all();  // the peers had a first round, too
    auto const encode = best_seconds<CpuClock>(seconds, all);
    auto const count = best_seconds<CpuClock>(seconds, [&] {
        for (auto const part : parts) (void)tokenizer.count(part, plain);
    });
    auto const batch =
        best_seconds<WallClock>(seconds, [&] { (void)tokenizer.encode_batch(parts, plain); });
    auto const decode = best_seconds<CpuClock>(seconds, [&] { (void)tokenizer.decode(tokens); });
    std::cout << "{\"text\":\"" << path << "\",\"megabytes\":" << megabytes
              << ",\"tokens\":" << tokens.size() << ",\"ids\":\"" << checksum_of(tokens)
              << "\",\"encode\":" << megabytes / encode << ",\"count\":" << megabytes / count
              << ",\"batch\":" << megabytes / batch << ",\"decode\":" << megabytes / decode << '}';
}

/// Milliseconds for one word.
double word_ms(TextTokenizer const& tokenizer, std::size_t size) {
    std::string const word(size, 'a');
    return best_seconds<CpuClock>(0, [&] { (void)tokenizer.encode(word, plain); }) * 1e3;
}

/// Seconds for one word of so many megabytes; the word has no place where it could be cut. Before
/// that, a short one, and one for which tables are made that later ones find there.
void print_words(TextTokenizer const& tokenizer) {
    std::cout << ",\"first_ms\":" << word_ms(tokenizer, 1000)
              << ",\"tables_ms\":" << word_ms(tokenizer, 200'000) << ",\"words\":{";
    for (auto const megabytes : {1, 10}) {
        auto const ms = word_ms(tokenizer, static_cast<std::size_t>(megabytes) * 1'000'000);
        std::cout << (megabytes == 1 ? "" : ",") << '"' << megabytes << "\":" << ms / 1e3;
    }
    std::cout << '}';
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 4) {
        std::cerr << "usage: bench_tokenizer TOKENIZER_JSON SECONDS TEXT_FILE...\n";
        return 2;
    }
    auto const seconds = std::strtod(argv[2], nullptr);
    std::cout << '{';
    print_load(argv[1], seconds);
    auto const tokenizer = TextTokenizer::from_file(argv[1]);
    print_words(tokenizer);
    std::cout << ",\"cores\":" << std::thread::hardware_concurrency() << ",\"texts\":[";
    for (int i = 3; i < argc; ++i) {
        if (i > 3) std::cout << ',';
        print_text(tokenizer, argv[i], seconds);
    }
    std::cout << "]}\n";
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
