#include "wire/sampling/sample.hpp"
#include "wire/values/proto_in.hpp"
#include "wire/values/tensor.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace tinkxx::wire {

namespace {

using proto::bytes;
using proto::bytes_field;
using proto::packed;
using proto::varint_field;
using proto::Wrong;
using protozero::pbf_reader;

// Where in the answer; made to text only for an error.
struct SamplePlace {
    std::string_view member{};
    std::optional<std::size_t> index{};
    std::string_view part{};

    [[nodiscard]] std::string text() const {
        std::string out{'/'};
        out += member;
        if (index) out += '/' + std::to_string(*index);
        if (!part.empty()) (out += '/') += part;
        return out;
    }
};

StopReason stop_reason(std::int32_t number, SamplePlace const& place) {
    if (number == 0) return StopReason::stop;
    if (number == 1) return StopReason::length;
    throw Wrong{place, "stop reason " + std::to_string(number) + ", which is neither 0 nor 1"};
}

// An empty cell is token 0 with a logprob that no model gives (R-SAMP-71).
bool is_pad(TokenLogprob const& cell) { return cell.token == 0 && cell.logprob == -99999.0F; }

// A number of 32 bits.
std::uint64_t cells_of(pbf_reader& in, SamplePlace const& place, std::string_view name) {
    return static_cast<std::uint64_t>(
        proto::number_within(in, 0, std::numeric_limits<std::uint32_t>::max(), place, name));
}

std::optional<TopkLogprobs> topk(pbf_reader in, SamplePlace const& place) {
    std::string_view ids;
    std::string_view logprobs;
    std::uint64_t k = 0;
    std::uint64_t length = 0;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                ids = bytes(in);
                break;
            case bytes_field(2):
                logprobs = bytes(in);
                break;
            case varint_field(3):
                k = cells_of(in, place, "k");
                break;
            case varint_field(4):
                length = cells_of(in, place, "length");
                break;
            default:
                in.skip();
        }
    }
    if (k == 0 || length == 0) return std::nullopt;
    auto const cells = k * length;  // both have 32 bits
    for (auto const have : {ids.size(), logprobs.size()}) {
        if (have / 4 < cells) {
            throw Wrong{place, std::to_string(have) + " bytes for " + std::to_string(length) +
                                   " rows of " + std::to_string(k)};
        }
    }
    TopkLogprobs rows(length);
    for (std::size_t row = 0; row < length; ++row) {
        std::vector<TokenLogprob> out(k);
        for (std::size_t i = 0; i < k; ++i) {
            auto const at = (row * k + i) * 4;
            std::memcpy(&out[i].token, ids.data() + at, 4);
            std::memcpy(&out[i].logprob, logprobs.data() + at, 4);
        }
        if (is_pad(out.front())) continue;
        while (is_pad(out.back())) out.pop_back();
        rows[row] = std::move(out);
    }
    return rows;
}

TensorData tensor_of(DType wanted, pbf_reader in, SamplePlace const& place) {
    auto out = proto::tensor(in, place);
    if (out.dtype() != wanted) {
        throw Wrong{place, "a tensor of " + std::string{to_string(out.dtype())} + " instead of " +
                               std::string{to_string(wanted)}};
    }
    return out;
}

PromptAltTokens alt_tokens(pbf_reader in) {
    PromptAltTokens out;
    out.tokens.data = std::vector<std::int64_t>{};
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.tokens =
                    tensor_of(DType::int64, in.get_message(),
                              SamplePlace{.member = "prompt_alt_tokens", .part = "tokens"});
                break;
            case bytes_field(2):
                out.logprobs =
                    tensor_of(DType::float32, in.get_message(),
                              SamplePlace{.member = "prompt_alt_tokens", .part = "logprobs"});
                break;
            default:
                in.skip();
        }
    }
    return out;
}

SampledSequence sequence(pbf_reader in, std::size_t index) {
    SampledSequence out;
    auto const place = [index](std::string_view part) {
        return SamplePlace{.member = "sequences", .index = index, .part = part};
    };
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint_field(1):
                out.stop_reason = stop_reason(proto::enumerator(in, place({}), "stop_reason"),
                                              place("stop_reason"));
                break;
            case bytes_field(2):
                out.tokens = packed<Token>(bytes(in), place("tokens"));
                break;
            case bytes_field(3): {
                auto logprobs = packed<float>(bytes(in), place("logprobs"));
                if (!logprobs.empty()) out.logprobs = std::move(logprobs);
                break;
            }
            case bytes_field(4):
                out.topk_logprobs = topk(in.get_message(), place("topk_sampled_logprobs"));
                break;
            default:
                in.skip();
        }
    }
    return out;
}

SampleResponse response(std::string_view body) {
    SampleResponse out;
    pbf_reader in{body.data(), body.size()};
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.sequences.push_back(sequence(in.get_message(), out.sequences.size()));
                break;
            case bytes_field(2): {
                auto const logprobs =
                    packed<float>(bytes(in), SamplePlace{.member = "prompt_logprobs"});
                if (logprobs.empty()) break;
                auto& list = out.prompt_logprobs.emplace();
                list.reserve(logprobs.size());
                for (auto const one : logprobs) {
                    list.push_back(std::isnan(one) ? std::nullopt : std::optional{one});
                }
                break;
            }
            case bytes_field(3):
                out.topk_prompt_logprobs =
                    topk(in.get_message(), SamplePlace{.member = "topk_prompt_logprobs"});
                break;
            case varint_field(4):
                out.prompt_cache_hit_tokens = in.get_int32();
                break;
            case bytes_field(5):
                out.target_prompt_logprobs =
                    tensor_of(DType::float32, in.get_message(),
                              SamplePlace{.member = "target_prompt_logprobs"});
                break;
            case bytes_field(6):
                out.prompt_alt_tokens = alt_tokens(in.get_message());
                break;
            default:
                in.skip();
        }
    }
    return out;
}

}  // namespace

Result<SampleResponse> decode_sample_proto(std::string_view body) {
    return proto::read("sample", [body] { return response(body); });
}

}  // namespace tinkxx::wire
