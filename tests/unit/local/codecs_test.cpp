// What a server writes is what a client reads, and the other way round.
#include "wire/sampling/sample.hpp"
#include "wire/server/answers.hpp"
#include "wire/server/requests.hpp"
#include "wire/training/training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::wire::server {
namespace {

using ::testing::HasSubstr;

std::string from_hex(std::string_view hex) {
    auto const digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
    }
    return bytes;
}

Datum datum() {
    Datum made;
    made.model_input = ModelInput::from_tokens({1, 2, 3});
    made.loss_fn_inputs.set("target_tokens", std::vector<std::int64_t>{2, 3, 4});
    made.loss_fn_inputs.set("weights", {0.0, 1.0, 1.0});
    return made;
}

TEST(ServerCodecs, ReadTheRecordedRequests) {
    // Protocol §8.3 and §8.10, as the official SDK writes them.
    auto const plain = decode_forward_backward_proto(from_hex(
        "0a09533a747261696e3a3010011a640a100a0e0a0c01000000020000000300000012300a0d7461726765"
        "745f746f6b656e73121f0a180200000000000000030000000000000004000000000000001802220103121e"
        "0a077765696768747312130a0c000000000000803f0000803f1801220103220d63726f73735f656e74726f"
        "7079"));
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->model_id, "S:train:0");
    EXPECT_EQ(plain->seq_id, 1);
    EXPECT_EQ(plain->loss_fn, "cross_entropy");
    EXPECT_FALSE(plain->forward_only);
    ASSERT_EQ(plain->data.size(), 1U);
    EXPECT_EQ(plain->data[0].model_input, datum().model_input);
    EXPECT_EQ(std::get<1>(plain->data[0].loss_fn_inputs.at("target_tokens").data)[2], 4);

    auto const spans = decode_forward_backward_proto(from_hex(
        "0a09533a747261696e3a3010011a8a010a100a0e0a0c01000000020000000300000012300a0d74617267"
        "65745f746f6b656e73121f0a180200000000000000030000000000000004000000000000001802220103"
        "121e0a077765696768747312130a0c000000000000803f0000803f18012201031a070a050a017118021a"
        "0712050a0171180122090a070a017110011801220712050a01711802220370706f2a1d0a12636c69705f"
        "6c6f775f7468726573686f6c6411cdccccccccccec3f3a1f0a12636c69705f6c6f775f7468726573686f"
        "6c64120909cdccccccccccec3f3a0b0a046d6f64651203120178"));
    ASSERT_TRUE(spans);
    EXPECT_EQ(std::get<double>(spans->config.at("clip_low_threshold")), 0.9);
    EXPECT_EQ(std::get<std::string>(spans->config.at("mode")), "x");
    EXPECT_EQ(spans->data[0].model_input_spans.size(), 2U);
    EXPECT_EQ(spans->data[0].loss_fn_input_spans[0].offset, 1);
}

TEST(ServerCodecs, ReadWhatTheClientWritesInEitherForm) {
    std::vector<Datum> const data{datum(), datum()};
    Loss const loss{PpoConfig{.clip_low_threshold = 0.7}};
    wire::ForwardBackward const request{
        .model_id = "M", .seq_id = 9, .data = data, .loss = &loss, .forward_only = true};
    auto const proto =
        encode_forward_backward(request, Encoding::protobuf, Compression::zstd).value();
    auto const body = decode_body("x", proto.bytes, proto.content_encoding, 1 << 20).value();
    auto const from_proto = decode_forward_backward_proto(body).value();
    auto const json = encode_forward_backward(request, Encoding::json, Compression::none).value();
    auto const from_json = decode_forward_backward("forward", json.bytes).value();
    EXPECT_EQ(from_proto.data, data);
    EXPECT_EQ(from_json.data, data);
    EXPECT_EQ(from_proto.config, from_json.config);
    EXPECT_TRUE(from_proto.forward_only && from_json.forward_only);
    EXPECT_EQ(from_proto.seq_id, from_json.seq_id);
}

TEST(ServerCodecs, ReadImagesAndAudioOfTrainingInProtobuf) {
    auto seen = datum();
    seen.model_input.chunks.emplace_back(
        ImageChunk{.data = "bytes", .format = ImageFormat::jpeg, .expected_tokens = 7});
    seen.model_input.chunks.emplace_back(DmelChunk{"sound"});
    std::vector<Datum> const data{seen};
    Loss const loss{LossFn::cross_entropy};
    wire::ForwardBackward const request{.model_id = "M", .seq_id = 1, .data = data, .loss = &loss};
    auto const sent =
        encode_forward_backward(request, Encoding::protobuf, Compression::none).value();
    EXPECT_EQ(decode_forward_backward_proto(sent.bytes).value().data, data);
}

TEST(ServerCodecs, RefuseBrokenProtobufByPlace) {
    auto const refusal = [](std::string_view hex) {
        auto const read = decode_forward_backward_proto(from_hex(hex));
        return read ? std::string{"accepted"} : std::string{read.error().what()};
    };
    EXPECT_THAT(refusal("0aff"), HasSubstr("no message ForwardBackwardRequest of protobuf"));
    // A datum with a chunk of nothing, and one with tokens of three bytes.
    EXPECT_THAT(refusal("1a020a00"), HasSubstr("/data/0/model_input a chunk of no kind"));
    EXPECT_THAT(refusal("1a090a070a050a03010203"), HasSubstr("/data/0/model_input"));
    // Fields that are not known yet are passed over.
    EXPECT_EQ(refusal("9a3f03616263"), "accepted");
}

TEST(ServerCodecs, ReadSamplesOfAllAges) {
    auto const old = decode_sample(
        "asample",
        R"({"num_samples":null,"prompt":{"chunks":[{"tokens":[1]},{"tokens":[2],"type":"encoded_text"}]},)"
        R"("sampling_params":{"stop":["x","y"],"seed":18446744073709551615},"prompt_logprobs":null,"new":{}})");
    ASSERT_TRUE(old);
    EXPECT_EQ(old->prompt.to_tokens(), (std::vector<Token>{1, 2}));
    EXPECT_EQ(old->params.seed, 18446744073709551615U);
    EXPECT_EQ(old->params.stop, (Stop{"x", "y"}));
    EXPECT_EQ(old->options.num_samples, 1);
    auto const nowhere =
        decode_sample("asample", R"({"prompt":{"chunks":[]},"sampling_params":{"stop":[]}})");
    EXPECT_EQ(nowhere->params.stop, Stop::nowhere());
    auto const wrong = decode_sample("asample", R"({"prompt":{"chunks":[{"tokens":["a"]}]}})");
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().what(), HasSubstr("/prompt/chunks/0/tokens/0"));
    EXPECT_THAT(decode_sample("asample", "{}").error().what(), HasSubstr("has no /prompt"));
}

TEST(ServerCodecs, WriteSamplesThatTheClientReads) {
    SampleResponse response;
    response.sequences.push_back({.stop_reason = StopReason::length,
                                  .tokens = {5, 6},
                                  .logprobs = std::vector<float>{-0.5F, -0.25F}});
    response.sequences.push_back({.tokens = {9}, .logprobs = std::vector<float>{-1.0F}});
    response.prompt_logprobs = {std::nullopt, -1.0F};
    response.topk_prompt_logprobs =
        TopkLogprobs{std::nullopt, std::vector<TokenLogprob>{{7, -0.5F}, {8, -1.0F}}};
    response.prompt_cache_hit_tokens = 1;
    EXPECT_EQ(decode_sample_json(encode_sample_json(response)).value(), response);
    response.sequences[0].topk_logprobs = TopkLogprobs{
        std::vector<TokenLogprob>{{5, -0.5F}, {9, -1.0F}}, std::vector<TokenLogprob>{{6, -0.25F}}};
    response.target_prompt_logprobs =
        TensorData{.data = std::vector<float>{-2.0F},
                   .shape = std::vector<std::int64_t>{2, 1},
                   .sparse_crow_indices = std::vector<std::int64_t>{0, 0, 1},
                   .sparse_col_indices = std::vector<std::int64_t>{0}};
    EXPECT_EQ(decode_sample_proto(encode_sample_proto(response)).value(), response);
}

TEST(ServerCodecs, WriteOutputsThatTheClientReads) {
    auto const tensor = [](std::vector<float> numbers, std::vector<std::int64_t> shape) {
        return TensorData{.data = std::move(numbers), .shape = std::move(shape)};
    };
    ForwardBackwardOutput output{.loss_fn_output_type = "CrossEntropyLossReturn",
                                 .metrics = {{"loss:sum", 1.5}}};
    output.loss_fn_outputs.push_back({{"logprobs", tensor({-0.5F, -1.0F}, {2})}});
    output.loss_fn_outputs.push_back({{"logprobs", tensor({-2.0F}, {1})}});
    // Protocol §8.3.
    EXPECT_EQ(
        encode_forward_backward_proto(output),
        from_hex("0a1643726f7373456e74726f70794c6f737352657475726e123a12360a086c6f6770726f627312"
                 "2a0a0c000000bf000080bf000000c01218000000000000000008000000000000000c000000000000"
                 "00180118021a130a086c6f73733a73756d11000000000000f83f"));
    // Data of another form, as those with several targets a token.
    output.loss_fn_outputs.push_back({{"logprobs", tensor({1, 2, 3, 4}, {2, 2})}});
    EXPECT_EQ(
        wire::decode_forward_backward_proto("x", encode_forward_backward_proto(output)).value(),
        output);
    EXPECT_EQ(decode_forward_backward_json("x", encode_forward_backward_json(output)).value(),
              output);
}

}  // namespace
}  // namespace tinkxx::wire::server
