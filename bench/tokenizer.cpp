// How fast texts become tokens, on one thread and on all.
//
//     bench_tokenizer TOKENIZER_JSON TEXT_FILE...
//
// Each file is cut at 4,000 characters, encoded again and again for about a second, and reported in
// megabytes a second of the best round. `tokenizer` beside this file runs the peers on the same
// texts.
#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>{Clock::now() - start}.count();
}

std::string read_file(char const* path) {
    std::ifstream file{path, std::ios::binary};
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

/// The best of the rounds that fit into about a second.
template <class Round>
double megabytes_per_second(std::size_t bytes, Round round) {
    double best = 0;
    auto const start = Clock::now();
    do {
        auto const begin = Clock::now();
        round();
        best = std::max(best, static_cast<double>(bytes) / 1e6 / seconds_since(begin));
    } while (seconds_since(start) < 1.0);
    return best;
}

void measure(tinkxx::text::TextTokenizer const& tokenizer, char const* path) {
    using tinkxx::text::EncodeOptions;
    auto const text = read_file(path);
    auto const parts = cut(text, 4000);
    std::vector<tinkxx::Token> tokens;
    auto const encode = megabytes_per_second(text.size(), [&] {
        tokens.clear();
        for (auto const part : parts) tokenizer.encode_to(tokens, part, {.add_special = false});
    });
    std::size_t counted = 0;
    auto const count = megabytes_per_second(text.size(), [&] {
        counted = 0;
        for (auto const part : parts) counted += tokenizer.count(part, {.add_special = false});
    });
    auto const batch = megabytes_per_second(text.size(), [&] {
        (void)tokenizer.encode_batch(parts, EncodeOptions{.add_special = false});
    });
    auto const decode = megabytes_per_second(text.size(), [&] { (void)tokenizer.decode(tokens); });
    std::cout << path << ": " << tokens.size() << " tokens (" << counted << "), encode " << encode
              << " MB/s, count " << count << ", batch " << batch << ", decode " << decode << '\n';
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::cerr << "usage: bench_tokenizer TOKENIZER_JSON TEXT_FILE...\n";
        return 2;
    }
    auto const json = read_file(argv[1]);
    auto load = 1e9;
    for (int i = 0; i < 5; ++i) {
        auto const start = Clock::now();
        (void)tinkxx::text::TextTokenizer::from_json(json);
        load = std::min(load, seconds_since(start));
    }
    std::cout << "load " << load * 1e3 << " ms\n";
    auto const tokenizer = tinkxx::text::TextTokenizer::from_json(json);
    for (int i = 2; i < argc; ++i) measure(tokenizer, argv[i]);
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
