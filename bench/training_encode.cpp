// What it costs to write a forward_backward request, beside a copy of its tensors.
//
//   build/release/bench/training_encode
//
// Prints the best of several runs, and by how much the memory in use grew at its highest; both the
// copy and the requests get fresh memory each time.
#include "wire/training/training.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace tinkxx;

// Keeps the compiler from leaving out what nobody looks at.
std::size_t volatile sink = 0;

template <class Fn>
double best_milliseconds(int runs, Fn fn) {
    using Clock = std::chrono::steady_clock;
    double best = 1e9;
    for (int run = 0; run < runs; ++run) {
        auto const start = Clock::now();
        sink = sink + fn();
        std::chrono::duration<double, std::milli> const took = Clock::now() - start;
        best = std::min(best, took.count());
    }
    return best;
}

// How much more memory a process has in use at its highest while it does `fn`, in bytes. What it
// touches but once, such as its own code, is touched by `warm_up` before.
template <class WarmUp, class Fn>
double peak_bytes(WarmUp warm_up, Fn fn) {
    int ends[2];
    if (pipe(ends) != 0) return 0;
    auto const child = fork();
    if (child == 0) {
        sink = sink + warm_up();
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        auto const before = usage.ru_maxrss;
        sink = sink + fn();
        getrusage(RUSAGE_SELF, &usage);
        auto const grown = static_cast<double>(usage.ru_maxrss - before) * 1024;
        auto const sent = write(ends[1], &grown, sizeof grown);
        _exit(sent == sizeof grown ? 0 : 1);
    }
    double grown = 0;
    close(ends[1]);
    if (read(ends[0], &grown, sizeof grown) != sizeof grown) grown = 0;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return grown;
}

// Data of 2,000 tokens with targets and weights, 16 bytes for each token.
std::vector<Datum> batch(std::size_t bytes) {
    constexpr std::size_t length = 2'000;
    std::mt19937 random{7};
    std::uniform_int_distribution<Token> token{0, 151'935};
    std::vector<Datum> out;
    for (std::size_t made = 0; made < bytes; made += length * 16) {
        std::vector<Token> tokens(length);
        for (auto& one : tokens) one = token(random);
        std::vector<float> weights(length, 1.0F);
        std::fill_n(weights.begin(), length / 4, 0.0F);
        Datum datum;
        datum.loss_fn_inputs.set("target_tokens",
                                 std::vector<std::int64_t>(tokens.begin(), tokens.end()));
        datum.loss_fn_inputs.set("weights", std::move(weights));
        datum.model_input = ModelInput::from_tokens(std::move(tokens));
        out.push_back(std::move(datum));
    }
    return out;
}

std::size_t copy(std::vector<Datum> const& data, std::size_t bytes) {
    auto const room = std::make_unique_for_overwrite<char[]>(bytes);
    auto* to = room.get();
    auto const put = [&to](auto const& numbers) {
        auto const size = numbers.size() * sizeof(numbers[0]);
        std::memcpy(to, numbers.data(), size);
        to += size;
    };
    for (auto const& datum : data) {
        put(std::get<EncodedTextChunk>(datum.model_input.chunks[0]).tokens);
        for (auto const& [name, input] : datum.loss_fn_inputs) std::visit(put, input.view().data);
    }
    return static_cast<std::size_t>(to - room.get()) + static_cast<unsigned char>(room[bytes / 2]);
}

}  // namespace

int main() {
    // Else what one run has freed serves the next, and nothing is seen to grow.
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    for (std::size_t const megabytes : {std::size_t{5}, std::size_t{50}}) {
        auto const data = batch(megabytes * 1'000'000);
        auto const tensors = data.size() * 2'000 * 16;
        Loss const loss{LossFn::cross_entropy};
        auto const runs = megabytes < 10 ? 41 : 9;
        auto const plain = best_milliseconds(runs, [&] { return copy(data, tensors); });
        std::printf("%2zu MB of tensors, copied         %9.3f ms\n", megabytes, plain);
        auto const few = batch(1);
        double encoded = 0;  // before it is compressed
        using enum wire::Encoding;
        using wire::Compression;
        struct Case {
            char const* name;
            wire::Encoding encoding;
            Compression compression;
        };
        for (auto const& [name, encoding, compression] :
             {Case{"protobuf", protobuf, Compression::none},
              Case{"protobuf, zstd", protobuf, Compression::zstd},
              Case{"JSON", json, Compression::none}}) {
            auto const encode_those = [&loss, e = encoding, c = compression](auto const& those) {
                return wire::encode_forward_backward(
                           {.model_id = "m", .seq_id = 1, .data = those, .loss = &loss}, e, c)
                    .value()
                    .bytes.size();
            };
            auto const encode = [&] { return encode_those(data); };
            auto const size = encode();
            if (compression == Compression::none) encoded = static_cast<double>(size);
            auto const best = best_milliseconds(runs, encode);
            auto const peak = peak_bytes([&] { return encode_those(few); }, encode);
            std::printf("   %-14s %9zu bytes   %9.3f ms   %6.2f copies   peak %5.2f of its size",
                        name, size, best, best / plain, peak / static_cast<double>(size));
            if (compression != Compression::none) {
                std::printf(", %4.2f of what was compressed", peak / encoded);
            }
            std::printf("\n");
            std::fflush(stdout);
        }
    }
}
