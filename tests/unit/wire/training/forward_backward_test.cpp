#include "wire/training/training.hpp"

#include <gtest/gtest.h>

#include <zstd.h>

#include <array>

namespace tinkxx::wire {
namespace {

using Integers = std::vector<std::int64_t>;

std::string from_hex(std::string_view hex) {
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        out += static_cast<char>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16));
    }
    return out;
}

std::string to_hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (auto const c : bytes) {
        auto const byte = static_cast<unsigned char>(c);
        out += digits[byte >> 4U];
        out += digits[byte & 15U];
    }
    return out;
}

Datum first_datum() {
    return {.model_input = ModelInput::from_tokens({1, 2, 3}),
            .loss_fn_inputs = {{"target_tokens", {2, 3, 4}}, {"weights", {0, 1, 1}}}};
}

struct Call {
    std::vector<Datum> data{};
    Loss loss{LossFn::cross_entropy};
    bool forward_only{false};
    std::int64_t seq_id{1};

    [[nodiscard]] Result<EncodedBody> encode(Encoding encoding,
                                             Compression compression = Compression::none) const {
        return encode_forward_backward(request(), encoding, compression);
    }
    [[nodiscard]] ForwardBackward request() const {
        return {.model_id = "S:train:0",
                .seq_id = seq_id,
                .data = data,
                .loss = &loss,
                .forward_only = forward_only};
    }
    [[nodiscard]] std::string proto() const { return encode(Encoding::protobuf).value().bytes; }
    [[nodiscard]] std::string json() const { return encode(Encoding::json).value().bytes; }
};

// The bytes of the protocol's own example.
constexpr std::string_view example =
    "0a09533a747261696e3a3010011a640a100a0e0a0c01000000020000000300000012300a0d7461726765745f746f"
    "6b656e73121f0a180200000000000000030000000000000004000000000000001802220103121e0a077765696768"
    "747312130a0c000000000000803f0000803f1801220103220d63726f73735f656e74726f7079";

TEST(ForwardBackwardRequest, IsTheProtobufOfTheService) {  // R-TRAIN-30, R-WIRE-04
    Call const call{.data = {first_datum()}};
    auto const body = call.encode(Encoding::protobuf).value();
    EXPECT_EQ(to_hex(body.bytes), example);
    EXPECT_EQ(body.content_type, "application/x-protobuf");
    EXPECT_EQ(body.content_encoding, "");
    EXPECT_EQ(proto_bytes(call.request()), body.bytes.size());
    EXPECT_EQ(body.bytes.capacity(), body.bytes.size()) << "room was counted before";
}

TEST(ForwardBackwardRequest, ForwardIsTheSameWithAMark) {  // R-TRAIN-30
    Call const call{.data = {first_datum()}, .forward_only = true};
    EXPECT_EQ(to_hex(call.proto()), std::string{example} + "3001");
    EXPECT_EQ(forward_backward_path(Encoding::protobuf, true), "/api/v1/forward_backward");
    EXPECT_EQ(forward_backward_path(Encoding::json, true), "/api/v1/forward");
    EXPECT_EQ(forward_backward_path(Encoding::json, false), "/api/v1/forward_backward");
}

TEST(ForwardBackwardRequest, NumbersOfTheConfigGoToBothFieldsAndTextToOne) {  // R-TRAIN-39
    Call const call{.data = {first_datum()},
                    .loss = Loss{"x", {{"clip_low_threshold", 0.9}, {"mode", "y"}}},
                    .forward_only = true};
    auto const bytes = to_hex(call.proto());
    EXPECT_NE(bytes.find("2a1d0a12636c69705f6c6f775f7468726573686f6c6411cdccccccccccec3f"),
              std::string::npos);
    // Field 7 holds a message with a number (1) or a text (2).
    EXPECT_NE(bytes.find("3a1f0a12636c69705f6c6f775f7468726573686f6c64120909cdccccccccccec3f"),
              std::string::npos)
        << bytes;
    EXPECT_NE(bytes.find("3a0b0a046d6f64651203120179"), std::string::npos) << bytes;
    EXPECT_EQ(bytes.find("2a0b0a046d6f6465"), std::string::npos);
    EXPECT_EQ(proto_bytes(call.request()) * 2, bytes.size());
}

TEST(ForwardBackwardRequest, CarriesImagesAudioAndSparseTensors) {  // R-WIRE-04, R-TRAIN-36
    // The protocol's example of a compressed body, before compression.
    Call const call{
        .data = {
            {.model_input = {.chunks = {EncodedTextChunk{{1}},
                                        ImageChunk{.data = "PNG", .expected_tokens = 4}}},
             .loss_fn_inputs = {{"target_tokens", TensorData{.data = Integers{5, 6},
                                                             .shape = {{2, 3}},
                                                             .sparse_crow_indices = {{0, 1, 2}},
                                                             .sparse_col_indices = {{0, 2}}}}}}}};
    auto const frame = from_hex(
        "28b52ffd20919503001206171d608b7310e4727f44e3d8da460c9b522d583bd2536253fda0bf1ba54d018fe9c1"
        "75"
        "0d8af14106e3a84c279957e334532f56d60b6ad0e89ae32db44d82d1325f68c22437293d2012ea021ddc36927c"
        "39"
        "e0b14116e1718d08eea3083c080035090079804188404200200f305018c019");
    std::string plain(145, '\0');
    ASSERT_EQ(::ZSTD_decompress(plain.data(), plain.size(), frame.data(), frame.size()),
              plain.size());
    EXPECT_EQ(to_hex(call.proto()), to_hex(plain));

    auto const body = call.encode(Encoding::protobuf, Compression::zstd).value();
    EXPECT_EQ(body.content_encoding, "zstd");
    EXPECT_EQ(body.content_type, "application/x-protobuf");
    EXPECT_EQ(::ZSTD_getFrameContentSize(body.bytes.data(), body.bytes.size()), plain.size());
    std::string again(plain.size(), '\0');
    ASSERT_EQ(::ZSTD_decompress(again.data(), again.size(), body.bytes.data(), body.bytes.size()),
              plain.size());
    EXPECT_EQ(again, plain);
}

TEST(ForwardBackwardRequest, CompressesMoreThanOneBlock) {  // R-TRAIN-30
    Call call;
    for (Token i = 0; i < 40; ++i) {
        std::vector<Token> tokens(5000);
        for (std::size_t k = 0; k < tokens.size(); ++k) {
            tokens[k] = i * 7919 + static_cast<Token>(k * k % 65'521);
        }
        call.data.push_back({.model_input = ModelInput::from_tokens(tokens)});
    }
    auto const plain = call.proto();
    ASSERT_GT(plain.size(), 800'000U);
    auto const body = call.encode(Encoding::protobuf, Compression::zstd).value();
    std::string again(plain.size(), '\0');
    ASSERT_EQ(::ZSTD_decompress(again.data(), again.size(), body.bytes.data(), body.bytes.size()),
              plain.size());
    EXPECT_EQ(again, plain);
}

TEST(ForwardBackwardRequest, SpansTravelInProtobuf) {  // R-TRAIN-38
    auto const datum = Datum{.model_input = ModelInput::from_tokens({1}),
                             .loss_fn_inputs = {{"target_tokens", {2}}}}
                           .with_provenance({{.sequence_id = "s", .length = 1}},
                                            {{.kind = ProvenanceSpan::Kind::sampled,
                                              .sequence_id = "s",
                                              .offset = 300,
                                              .length = 1}});
    Call const call{.data = {datum}};
    auto const bytes = to_hex(call.proto());
    EXPECT_NE(bytes.find("1a070a050a01731801220a12080a017310ac021801"), std::string::npos) << bytes;
    EXPECT_EQ(proto_bytes(call.request()) * 2, bytes.size());
}

TEST(ForwardBackwardRequest, WhatIsEmptyDoesNotTravelUnlessItIsChosen) {  // R-WIRE-04
    Call const call{
        .data = {{.model_input = {.chunks = {EncodedTextChunk{}, ImageChunk{.expected_tokens = 0},
                                             DmelChunk{}}},
                  .loss_fn_inputs = {{"a", TensorData{.shape = {{0}}}},
                                     {"b", TensorData{.shape = Integers{}}}}}},
        .loss = Loss{""},
        .seq_id = 0};
    EXPECT_EQ(to_hex(call.proto()),
              "0a09533a747261696e3a30"
              "1a2c"
              "0a020a00"
              "0a0912071203706e671800"
              "0a021a00"
              "120c0a016112070a001801220100"
              "12090a016212040a001801");
}

TEST(ForwardBackwardRequest, ImagePointersAreRefusedInProtobufOnly) {  // R-TRAIN-37
    Call const call{.data = {first_datum(),
                             {.model_input = {.chunks = {EncodedTextChunk{{1}},
                                                         ImageAssetPointerChunk{.location = "l"}}},
                              .loss_fn_inputs = {}}}};
    auto const refused = call.encode(Encoding::protobuf);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
    EXPECT_EQ(refused.error().field(), "data/1/model_input/chunks/1");
    EXPECT_TRUE(std::string{refused.error().what()}.starts_with("forward_backward: datum 1"));
    EXPECT_NE(call.json().find(R"("location":"l")"), std::string::npos);
}

TEST(ForwardBackwardRequest, NumbersThatProtobufCannotHoldAreRefused) {  // R-WIRE-04
    Call call{.data = {first_datum()}, .seq_id = std::int64_t{1} << 31U};
    EXPECT_EQ(call.encode(Encoding::protobuf).error().field(), "seq_id");
    EXPECT_TRUE(call.encode(Encoding::json));
    call = {.data = {{.model_input = {.chunks = {ImageChunk{.expected_tokens = -1}}}}}};
    EXPECT_EQ(call.encode(Encoding::protobuf).error().field(),
              "data/0/model_input/chunks/0/expected_tokens");
}

TEST(ForwardBackwardRequest, IsTheJsonOfOlderServers) {  // R-TRAIN-30, R-WIRE-03
    Call call{.data = {first_datum()}};
    auto const body = call.encode(Encoding::json, Compression::zstd).value();
    EXPECT_EQ(body.content_type, "application/json");
    EXPECT_EQ(body.content_encoding, "");
    EXPECT_EQ(body.bytes,
              R"({"forward_backward_input":{"data":[{"model_input":{"chunks":[{"tokens":[1,2,3],)"
              R"("type":"encoded_text"}]},"loss_fn_inputs":{"target_tokens":{"data":[2,3,4],)"
              R"("dtype":"int64","shape":[3]},"weights":{"data":[0,1,1],"dtype":"float32",)"
              R"("shape":[3]}}}],"loss_fn":"cross_entropy"},"model_id":"S:train:0","seq_id":1})");
    call.forward_only = true;
    EXPECT_TRUE(call.json().starts_with(R"({"forward_input":{"data":)"));
}

TEST(ForwardBackwardRequest, ConfigIsSentAsItIsInJson) {  // R-TRAIN-39
    Call const call{.data = {first_datum()}, .loss = Loss{"x", {{"a", 0.5}, {"b", "t"}}}};
    EXPECT_NE(call.json().find(R"("loss_fn":"x","loss_fn_config":{"a":0.5,"b":"t"}})"),
              std::string::npos)
        << call.json();
}

TEST(ForwardBackwardRequest, SpansAreRefusedInJson) {  // R-TRAIN-38
    auto datum = first_datum();
    datum.model_input_spans = {{.sequence_id = "s", .length = 3}};
    Call const call{.data = {first_datum(), datum}};
    auto const refused = call.encode(Encoding::json);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field(), "data/1/model_input_spans");
}

TEST(ForwardBackwardRequest, ReadsTensorsWhereTheyAre) {  // R-TRAIN-35
    std::array<float, 2> const weights{0.5F, 0.25F};
    Integers const targets{7, 8};
    Call elsewhere{.data = {{.model_input = ModelInput::from_tokens({1, 2})}}};
    elsewhere.data[0].loss_fn_inputs.set("target_tokens", std::span<std::int64_t const>{targets});
    elsewhere.data[0].loss_fn_inputs.set("weights", std::span<float const>{weights});
    Call owned = elsewhere;
    owned.data[0].loss_fn_inputs.own();
    EXPECT_EQ(elsewhere.proto(), owned.proto());
    EXPECT_EQ(elsewhere.json(), owned.json());
}

// Renumbering ------------------------------------------------------------------------------------

TEST(RenumberForwardBackward, GivesWhatTheOtherNumberWouldHaveGiven) {  // R-TRAIN-10
    Call call{.data = {first_datum(), first_datum()}};
    for (auto const encoding : {Encoding::protobuf, Encoding::json}) {
        for (std::int64_t const other : {1, 127, 128, 70'000}) {
            call.seq_id = 300;
            auto const written = call.encode(encoding).value().bytes;
            call.seq_id = other;
            EXPECT_EQ(
                renumber_forward_backward(written, encoding, Compression::none, other).value(),
                call.encode(encoding).value().bytes);
        }
    }
}

TEST(RenumberForwardBackward, KeepsWhatTheCallerCallsANumber) {  // R-TRAIN-10
    Call call{.data = {first_datum()}};
    call.data[0].loss_fn_inputs.set("seq_id", std::vector<std::int64_t>{5});
    auto const written = call.json();
    call.seq_id = 9;
    EXPECT_EQ(renumber_forward_backward(written, Encoding::json, Compression::none, 9).value(),
              call.json());
}

TEST(RenumberForwardBackward, CompressesAgain) {  // R-TRAIN-30
    Call call{.data = {first_datum(), first_datum()}};
    auto const packed = call.encode(Encoding::protobuf, Compression::zstd).value().bytes;
    auto const renumbered =
        renumber_forward_backward(packed, Encoding::protobuf, Compression::zstd, 77).value();
    std::string plain(10'000, '\0');
    plain.resize(
        ::ZSTD_decompress(plain.data(), plain.size(), renumbered.data(), renumbered.size()));
    call.seq_id = 77;
    EXPECT_EQ(plain, call.proto());
}

TEST(RenumberForwardBackward, RefusesWhatWasNotWrittenHere) {
    for (auto const compression : {Compression::none, Compression::zstd}) {
        EXPECT_FALSE(renumber_forward_backward("\xff\xff", Encoding::protobuf, compression, 1));
        EXPECT_FALSE(renumber_forward_backward("", Encoding::protobuf, compression, 1));
    }
    EXPECT_FALSE(renumber_forward_backward("{}", Encoding::json, Compression::none, 1));
}

}  // namespace
}  // namespace tinkxx::wire
