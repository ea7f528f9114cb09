#include "golden/recordings/pass_body.hpp"

#include <gtest/gtest.h>
#include <zstd.h>
#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace tinkxx::golden {

using testing::SentRequest;
using wire::server::ForwardBackward;

std::string unpacked(std::string const& frame) {
    auto const size = ZSTD_getFrameContentSize(frame.data(), frame.size());
    EXPECT_LT(size, 1U << 30U) << "one frame that tells its size";
    if (size >= 1U << 30U) return {};
    std::string plain(size, '\0');
    EXPECT_EQ(ZSTD_decompress(plain.data(), plain.size(), frame.data(), frame.size()), size);
    return plain;
}

std::string plain_body(SentRequest const& request) {
    return request.header("Content-Encoding") == "zstd" ? unpacked(request.body) : request.body;
}

bool is_protobuf(SentRequest const& request) {
    return request.header("Content-Type") == "application/x-protobuf";
}

std::optional<ForwardBackward> pass_of(SentRequest const& request) {
    bool const forward = request.path.ends_with("/forward");
    if (!forward && !request.path.ends_with("/forward_backward")) return std::nullopt;
    auto const body = plain_body(request);
    auto read = is_protobuf(request) ? wire::server::decode_forward_backward_proto(body)
                                     : wire::server::decode_forward_backward(
                                           forward ? "forward" : "forward_backward", body);
    EXPECT_TRUE(read) << read.error().what();
    if (!read) return std::nullopt;
    return *std::move(read);
}

namespace {

/// One number for each target; one in all without targets.
std::vector<std::int64_t> shape_of_answer(Datum const& datum) {
    auto const targets = datum.loss_fn_inputs.find("target_tokens");
    if (!targets) return {1};
    if (targets->shape) return {targets->shape->begin(), targets->shape->end()};
    return {static_cast<std::int64_t>(targets->size())};
}

}  // namespace

ForwardBackwardOutput answer_to(std::span<Datum const> data) {
    ForwardBackwardOutput out;
    out.loss_fn_output_type = "CrossEntropyLossReturn";
    for (auto const& datum : data) {
        auto shape = shape_of_answer(datum);
        auto const count = std::reduce(shape.begin(), shape.end(), std::int64_t{1},
                                       std::multiplies<std::int64_t>{});
        std::vector<float> logprobs(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < logprobs.size(); ++i) {
            logprobs[i] = -0.25F * static_cast<float>(i + 1);
        }
        TensorData tensor;
        tensor.data = std::move(logprobs);
        tensor.shape = std::move(shape);
        out.loss_fn_outputs.push_back({{"logprobs", std::move(tensor)}});
    }
    out.metrics["loss:sum"] = static_cast<double>(data.size()) + 1.5;
    out.metrics["clock_cycle:unique"] = 17;
    return out;
}

std::string without_field(std::string const& message, std::uint32_t number) {
    std::string rest;
    protozero::pbf_reader in{message};
    auto const* begin = message.data();
    while (in.next()) {
        bool const drop = in.tag() == number;
        in.skip();
        auto const* end = message.data() + (message.size() - in.length());
        if (!drop) rest.append(begin, end);
        begin = end;
    }
    return rest;
}

namespace {

bool nearly(TensorView const& one, TensorView const& other) {
    if (one.dtype() == DType::int64 || other.dtype() == DType::int64) return one == other;
    if (to_tensor_data(one).shape != to_tensor_data(other).shape) return false;
    auto const same = [](float a, float b) {
        return std::signbit(a) == std::signbit(b) &&
               std::abs(a - b) <= 4e-7F * std::max(std::abs(a), std::abs(b));
    };
    return std::ranges::equal(std::get<0>(one.data), std::get<0>(other.data), same);
}

}  // namespace

bool nearly_same_pass(std::string const& one, std::string const& other) {
    auto const a = wire::server::decode_forward_backward_proto(one);
    auto const b = wire::server::decode_forward_backward_proto(other);
    if (!a || !b || one.size() != other.size()) return false;
    bool const head = a->model_id == b->model_id && a->seq_id == b->seq_id &&
                      a->loss_fn == b->loss_fn && a->config == b->config &&
                      a->forward_only == b->forward_only;
    return head && std::ranges::equal(a->data, b->data, [](Datum const& x, Datum const& y) {
               return x.model_input == y.model_input &&
                      std::ranges::equal(
                          x.loss_fn_inputs, y.loss_fn_inputs, [](auto const& p, auto const& q) {
                              return p.first == q.first && nearly(p.second.view(), q.second.view());
                          });
           });
}

}  // namespace tinkxx::golden
