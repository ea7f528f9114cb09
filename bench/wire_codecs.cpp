// How long the codecs of a sample take: its request, telling its answer from an error, its result.
//
//   build/release/bench/wire_codecs
//
// Prints the best of several runs, since everything else is the machine's other work.
#include "wire/json/json.hpp"
#include "wire/sampling/sample.hpp"
#include "wire/session/result_answer.hpp"

#include <chrono>
#include <cstdio>
#include <random>
#include <string>

namespace {

using namespace tinkxx;

// Keeps the compiler from leaving out what nobody looks at.
std::size_t volatile sink = 0;

template <class Fn>
void measure(char const* name, std::size_t bytes, Fn fn) {
    using Clock = std::chrono::steady_clock;
    constexpr int runs = 9;
    double best = 1e9;
    auto const rounds = static_cast<int>(20'000'000 / (bytes + 2'000)) + 1;
    for (int run = 0; run < runs; ++run) {
        auto const start = Clock::now();
        for (int i = 0; i < rounds; ++i) sink = sink + fn();
        std::chrono::duration<double, std::micro> const took = Clock::now() - start;
        best = std::min(best, took.count() / rounds);
    }
    std::printf("%-44s %9zu bytes %9.2f us %8.0f MB/s\n", name, bytes, best,
                static_cast<double>(bytes) / best);
}

std::vector<Token> random_tokens(std::size_t count, std::mt19937& random) {
    std::uniform_int_distribution<Token> token{0, 151'935};
    std::vector<Token> out(count);
    for (auto& one : out) one = token(random);
    return out;
}

// A result of that many tokens with their log-probabilities, as a server writes it.
std::string json_result(std::size_t tokens, std::mt19937& random) {
    std::uniform_real_distribution<float> logprob{-5, 0};
    std::string out;
    wire::JsonOut json{out};
    json.open_object();
    json.key("sequences");
    json.open_array();
    json.open_object();
    json.member("stop_reason", "length");
    json.key("tokens");
    json.list(random_tokens(tokens, random));
    json.key("logprobs");
    std::vector<float> logprobs(tokens);
    for (auto& one : logprobs) one = logprob(random);
    json.list(logprobs);
    json.close_object();
    json.close_array();
    json.member("type", "sample");
    json.close_object();
    return out;
}

// The same as protobuf, with its lengths in two bytes each.
std::string proto_result(std::size_t tokens, std::mt19937& random) {
    auto const ids = random_tokens(tokens, random);
    auto const field = [](char tag, std::string const& bytes) {
        std::string out{tag};
        auto size = bytes.size();
        for (; size >= 0x80; size >>= 7U) out += static_cast<char>(size | 0x80U);
        out += static_cast<char>(size);
        return out + bytes;
    };
    std::string const packed{reinterpret_cast<char const*>(ids.data()), ids.size() * sizeof(Token)};
    return field('\x0a', "\x08\x01" + field('\x12', packed) + field('\x1a', packed));
}

}  // namespace

int main() {
    std::mt19937 random{7};
    for (std::size_t const tokens : {std::size_t{1'000}, std::size_t{100'000}}) {
        auto const list = random_tokens(tokens, random);
        std::string out;
        wire::JsonOut json{out};
        json.list(list);
        auto const name = "list of " + std::to_string(tokens) + " tokens, written";
        measure(name.c_str(), out.size(), [&] {
            out.clear();
            json.list(list);
            return out.size();
        });
    }
    for (std::size_t const tokens : {std::size_t{256}, std::size_t{8'192}}) {
        auto const prompt = ModelInput::from_tokens(random_tokens(tokens, random));
        auto const encode = [&] {
            return wire::encode_sample_tail(prompt.chunks, {.max_tokens = 64}, {}, false,
                                            wire::Members::newest)
                .size();
        };
        auto const name = "asample of " + std::to_string(tokens) + " tokens, encoded";
        measure(name.c_str(), encode(), encode);
    }
    for (std::size_t const tokens : {std::size_t{256}, std::size_t{2'048}}) {
        auto const count = std::to_string(tokens);
        auto const body = json_result(tokens, random);
        measure(("JSON result of " + count + " tokens, told apart").c_str(), body.size(),
                [&] { return wire::classify_result_answer("application/json", body).index(); });
        measure(("JSON result of " + count + " tokens, decoded").c_str(), body.size(),
                [&] { return wire::decode_sample_json(body).value().sequences.size(); });
        auto const proto = proto_result(tokens, random);
        measure(("protobuf result of " + count + " tokens, decoded").c_str(), proto.size(),
                [&] { return wire::decode_sample_proto(proto).value().sequences.size(); });
    }
}
