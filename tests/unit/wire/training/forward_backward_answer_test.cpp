#include "wire/training/training.hpp"
#include "wire/values/tensor.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace tinkxx::wire {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

// A message, field by field.
class Message {
public:
    Message& bytes(unsigned field, std::string_view content) {
        varint(field << 3U | 2U);
        varint(content.size());
        out_ += content;
        return *this;
    }
    Message& bytes(unsigned field, Message const& inner) { return bytes(field, inner.out_); }
    Message& number(unsigned field, std::int64_t value) {
        varint(field << 3U);
        varint(static_cast<std::uint64_t>(value));
        return *this;
    }
    Message& real(unsigned field, double value) {
        varint(field << 3U | 1U);
        out_.append(reinterpret_cast<char const*>(&value), sizeof value);
        return *this;
    }
    operator std::string() const { return out_; }

private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7U) out_ += static_cast<char>((value & 0x7fU) | 0x80U);
        out_ += static_cast<char>(value);
    }
    std::string out_{};
};

template <class T>
std::string packed_numbers(std::vector<T> const& numbers) {
    return {reinterpret_cast<char const*>(numbers.data()), numbers.size() * sizeof(T)};
}

struct Field {
    std::string data{};
    Integers offsets{};
    int dtype{1};
    Integers trailing{};

    [[nodiscard]] std::string entry(std::string_view name) const {
        Message tensor;
        tensor.bytes(1, data).bytes(2, packed_numbers(offsets)).number(3, dtype);
        for (auto const dimension : trailing) tensor.number(4, dimension);
        return Message{}.bytes(1, name).bytes(2, tensor);
    }
};
Field floats(Floats const& numbers, Integers offsets, Integers trailing = {}) {
    return {.data = packed_numbers(numbers),
            .offsets = std::move(offsets),
            .trailing = std::move(trailing)};
}

std::string answer(std::vector<std::string> const& records, std::string_view type = "T") {
    Message out;
    if (!type.empty()) out.bytes(1, type);
    for (auto const& record : records) out.bytes(2, record);
    return out;
}
std::string one_record(Field const& field, std::int64_t count = 0) {
    Message record;
    record.bytes(2, field.entry("x"));
    if (count != 0) record.number(3, count);
    return answer({record});
}

Result<ForwardBackwardOutput> decode(std::string_view body) {
    return decode_forward_backward_proto("forward_backward", body);
}

TEST(ForwardBackwardAnswer, IsReadFromTheProtobufOfTheService) {  // R-WIRE-05, R-TRAIN-30
    auto const body =
        Message{}
            .bytes(1, "CrossEntropyLossReturn")
            .bytes(2, Message{}
                          .bytes(1, "tag")
                          .bytes(2, floats({-0.5F, -1, -2}, {0, 8, 12}).entry("logprobs"))
                          .number(3, 2))
            .bytes(3, Message{}.bytes(1, "loss:sum").real(2, 1.5));
    EXPECT_EQ(decode(std::string{body}).value(),
              (ForwardBackwardOutput{
                  .loss_fn_output_type = "CrossEntropyLossReturn",
                  .loss_fn_outputs = {{{"logprobs", {.data = Floats{-0.5F, -1}, .shape = {{2}}}}},
                                      {{"logprobs", {.data = Floats{-2}, .shape = {{1}}}}}},
                  .metrics = {{"loss:sum", 1.5}}}));
}

TEST(ForwardBackwardAnswer, WidensIntegersAndHalfFloats) {  // R-WIRE-05
    Field narrow{
        .data = packed_numbers(std::vector<std::int32_t>{1, -2}), .offsets = {0, 8}, .dtype = 3};
    EXPECT_EQ(decode(one_record(narrow)).value().loss_fn_outputs[0].at("x"),
              (TensorData{.data = Integers{1, -2}, .shape = {{2}}}));
    Field half{.data = packed_numbers(std::vector<std::uint16_t>{0x3f80, 0xbf00, 0x4049}),
               .offsets = {0, 6},
               .dtype = 4};
    EXPECT_EQ(decode(one_record(half)).value().loss_fn_outputs[0].at("x"),
              (TensorData{.data = Floats{1, -0.5F, 3.140625F}, .shape = {{3}}}));
    Field wide{
        .data = packed_numbers(Integers{std::int64_t{1} << 62U}), .offsets = {0, 8}, .dtype = 2};
    EXPECT_EQ(decode(one_record(wide)).value().loss_fn_outputs[0].at("x"),
              (TensorData{.data = Integers{std::int64_t{1} << 62U}, .shape = {{1}}}));
}

TEST(ForwardBackwardAnswer, TheFirstDimensionFollowsFromTheOthers) {  // R-WIRE-05
    auto const read = decode(one_record(floats({1, 2, 3, 4, 5, 6}, {0, 8, 24}, {2}))).value();
    EXPECT_EQ(read.loss_fn_outputs[0].at("x").shape, (Integers{1, 2}));
    EXPECT_EQ(read.loss_fn_outputs[1].at("x").shape, (Integers{2, 2}));
    auto const none = decode(one_record(floats({}, {0, 0}, {0}))).value();
    EXPECT_EQ(none.loss_fn_outputs[0].at("x").shape, (Integers{0, 0}));
}

TEST(ForwardBackwardAnswer, RecordsFollowEachOther) {  // R-WIRE-05
    auto const record = [](Field const& field, std::int64_t count) {
        return std::string{Message{}.bytes(2, field.entry("x")).number(3, count)};
    };
    Field const ints{.data = packed_numbers(Integers{3, 4}), .offsets = {0, 16}, .dtype = 2};
    auto const read =
        decode(answer({record(floats({1, 2}, {0, 4, 8}), 2), record(ints, 1)})).value();
    ASSERT_EQ(read.loss_fn_outputs.size(), 3U);
    EXPECT_EQ(read.loss_fn_outputs[1].at("x"), (TensorData{.data = Floats{2}, .shape = {{1}}}));
    EXPECT_EQ(read.loss_fn_outputs[2].at("x"),
              (TensorData{.data = Integers{3, 4}, .shape = {{2}}}));
}

TEST(ForwardBackwardAnswer, TheNumberOfDataIsTheRecordsOwnElseThatOfTheFirstField) {  // R-WIRE-05
    auto const two = floats({1, 2}, {0, 4, 8});
    EXPECT_EQ(decode(one_record(two)).value().loss_fn_outputs.size(), 2U);
    EXPECT_EQ(decode(one_record(two, 1)).value().loss_fn_outputs.size(), 1U);
    auto const more = decode(one_record(two, 3));
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().field(), "/loss_fn_outputs/x");
    auto const stripped = decode(answer({Message{}.number(3, 2), Message{}.number(3, 1)})).value();
    EXPECT_EQ(stripped.loss_fn_outputs, std::vector<LossFnOutput>(3));
}

TEST(ForwardBackwardAnswer, NobodyIsMadeToStoreMoreThanCanBe) {  // R-WIRE-05
    for (auto const count : {std::int64_t{1} << 40U, std::int64_t{-1}, std::int64_t{1} << 62U}) {
        auto const read = decode(answer({Message{}.number(3, count), Message{}.number(3, count)}));
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().kind(), ErrorKind::validation);
        EXPECT_EQ(read.error().field(), "/loss_fn_outputs/0");
    }
    EXPECT_FALSE(decode(one_record(floats({1}, {0, 4}, Integers(17, 1)))));
    EXPECT_FALSE(decode(one_record(floats({}, {0, 0}, Integers(16, 1'000'000)))));
}

TEST(ForwardBackwardAnswer, TheTypeLosesItsModuleOnlyBesideRecords) {  // R-WIRE-05
    EXPECT_EQ(
        decode(answer({Message{}.number(3, 1)}, "pkg.mod:a:Name")).value().loss_fn_output_type,
        "Name");
    EXPECT_EQ(decode(answer({Message{}.number(3, 1)}, "")).value().loss_fn_output_type, "");
    EXPECT_EQ(decode(answer({}, "pkg.mod:Name")).value().loss_fn_output_type, "pkg.mod:Name");
    EXPECT_EQ(decode("").value().loss_fn_output_type, "ArrayRecord");
}

TEST(ForwardBackwardAnswer, OffsetsThatCannotBeAreRefused) {  // R-WIRE-05
    Floats const two{1, 2};
    for (auto const& offsets :
         {Integers{0, 12}, Integers{8, 4}, Integers{-4, 4}, Integers{0, 2}, Integers{1, 5}}) {
        auto const read = decode(one_record(floats(two, offsets)));
        ASSERT_FALSE(read) << offsets[0] << ' ' << offsets[1];
        EXPECT_EQ(read.error().field(), "/loss_fn_outputs/0/x");
        EXPECT_TRUE(std::string{read.error().what()}.starts_with("forward_backward: the protobuf"));
    }
    EXPECT_EQ(decode(one_record(floats(two, {4, 8}))).value().loss_fn_outputs[0].at("x"),
              (TensorData{.data = Floats{2}, .shape = {{1}}}));
    EXPECT_TRUE(decode(one_record(floats(two, {}))).value().loss_fn_outputs.empty());
}

TEST(ForwardBackwardAnswer, ElementsThatCannotBeAreRefused) {  // R-WIRE-05
    EXPECT_FALSE(decode(one_record({.data = "12345", .offsets = {0, 4}})));
    EXPECT_FALSE(decode(one_record({.data = "1234", .offsets = {0, 4}, .dtype = 0})));
    EXPECT_FALSE(decode(one_record({.data = "1234", .offsets = {0, 4}, .dtype = 9})));
    EXPECT_FALSE(decode(one_record(floats({1, 2, 3, 4}, {0, 16}, {3}))));
    EXPECT_FALSE(decode(one_record(floats({1}, {0, 4}, {-1}))));
    EXPECT_FALSE(decode(one_record(floats({1}, {0, 4}, {0}))));
    auto const whole = one_record(floats({1}, {0, 4}));
    EXPECT_FALSE(decode(std::string_view{whole}.substr(0, whole.size() - 1)));
}

TEST(ForwardBackwardAnswer, FieldsOfOtherNumbersAndTypesAreSkipped) {  // R-WIRE-05
    auto const body = Message{}
                          .number(1, 5)
                          .bytes(9, "new")
                          .bytes(2, Message{}.bytes(7, "new").number(2, 1).number(3, 1))
                          .bytes(3, Message{}.bytes(1, "a").number(2, 3).bytes(8, "?"));
    auto const read = decode(std::string{body}).value();
    EXPECT_EQ(read.loss_fn_outputs.size(), 1U);
    EXPECT_EQ(read.metrics, (MetricValues{{"a", 0}}));
}

TEST(ForwardBackwardAnswer, IsReadFromJsonToo) {  // R-WIRE-10, R-TRAIN-30
    auto const read = decode_forward_backward_json("forward", R"({
        "loss_fn_output_type": "scalar", "zz": 1,
        "loss_fn_outputs": [
            {"logprobs": {"data": [-0.5, -1], "dtype": "float32", "shape": [2]}},
            {"ids": {"data": [9007199254740993], "dtype": "int64", "shape": null}}],
        "metrics": {"loss:sum": 0.30000000000000004}})");
    EXPECT_EQ(read.value(),
              (ForwardBackwardOutput{
                  .loss_fn_output_type = "scalar",
                  .loss_fn_outputs = {{{"logprobs", {.data = Floats{-0.5F, -1}, .shape = {{2}}}}},
                                      {{"ids", {.data = Integers{9007199254740993}}}}},
                  .metrics = {{"loss:sum", 0.30000000000000004}}}));
}

TEST(ForwardBackwardAnswer, JsonNeedsNoMetricsButTheRest) {  // R-WIRE-10
    EXPECT_TRUE(decode_forward_backward_json(
        "forward", R"({"loss_fn_output_type": "T", "loss_fn_outputs": []})"));
    for (auto const& [json, field] :
         {std::pair{R"({"loss_fn_outputs": []})", "/loss_fn_output_type"},
          std::pair{R"({"loss_fn_output_type": "T"})", "/loss_fn_outputs"},
          std::pair{R"({"loss_fn_output_type": "T", "loss_fn_outputs": [{"x": {"data": [1], )"
                    R"("dtype": "bfloat16"}}]})",
                    "/loss_fn_outputs/0/x"}}) {
        auto const read = decode_forward_backward_json("forward", json);
        ASSERT_FALSE(read) << json;
        EXPECT_EQ(read.error().field(), field);
    }
}

}  // namespace
}  // namespace tinkxx::wire
