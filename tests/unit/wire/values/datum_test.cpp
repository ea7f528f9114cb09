#include <tinkxx/error.hpp>
#include <tinkxx/types/datum.hpp>

#include "wire/values/tensor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

namespace tinkxx {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

TensorData tensor(LossInputs const& inputs, std::string_view name) {
    return to_tensor_data(inputs.at(name));
}

template <class Fn>
ErrorDetails refused(Fn fn) {
    try {
        fn();
    } catch (ValidationError const& error) {
        return error.details();
    }
    ADD_FAILURE() << "was not refused";
    return {};
}

TEST(LossInputs, ListsTakeTheTypeThatBelongsToTheirName) {  // R-TRAIN-35
    LossInputs const inputs{
        {"target_tokens", {1, 2}},       {"weights", std::vector<int>{0, 1}},
        {"advantages", Integers{1, -1}}, {"logprobs", {-0.5, -1}},
        {"clip_low_threshold", {1, 2}},  {"clip_high_threshold", std::vector<int>{1, 2}},
        {"sequence_ratio_mask", {1, 0}}};
    EXPECT_EQ(tensor(inputs, "target_tokens"),
              (TensorData{.data = Integers{1, 2}, .shape = {{2}}}));
    EXPECT_EQ(tensor(inputs, "weights"), (TensorData{.data = Floats{0, 1}, .shape = {{2}}}));
    for (auto const* name : {"advantages", "logprobs", "clip_low_threshold", "clip_high_threshold",
                             "sequence_ratio_mask"}) {
        EXPECT_EQ(inputs.at(name).dtype(), DType::float32) << name;
    }
}

TEST(LossInputs, ListsOfOtherNamesKeepTheTypeOfTheirElements) {  // R-TRAIN-35
    LossInputs const inputs{{"a", std::vector<int>{1}},
                            {"b", Floats{1}},
                            {"c", std::vector<double>{0.1}},
                            {"d", std::vector<std::vector<int>>{{1, 2}}}};
    EXPECT_EQ(inputs.at("a").dtype(), DType::int64);
    EXPECT_EQ(inputs.at("b").dtype(), DType::float32);
    EXPECT_EQ(tensor(inputs, "c"), (TensorData{.data = Floats{0.1F}, .shape = {{1}}}));
    EXPECT_EQ(tensor(inputs, "d"), (TensorData{.data = Integers{1, 2}, .shape = {{1, 2}}}));
}

TEST(LossInputs, ListsOfRowsBecomeMatrices) {  // R-TRAIN-35
    LossInputs const inputs{
        {"target_tokens", std::vector<std::vector<double>>{{3, 4}, {5, 6}, {7, 8}}},
        {"weights", std::vector<Integers>{{1, 0}, {0, 1}, {1, 1}}},
        {"logprobs", std::vector<Floats>{}}};
    EXPECT_EQ(tensor(inputs, "target_tokens"),
              (TensorData{.data = Integers{3, 4, 5, 6, 7, 8}, .shape = {{3, 2}}}));
    EXPECT_EQ(tensor(inputs, "weights"),
              (TensorData{.data = Floats{1, 0, 0, 1, 1, 1}, .shape = {{3, 2}}}));
    EXPECT_EQ(tensor(inputs, "logprobs"), (TensorData{.data = Floats{}, .shape = {{0, 0}}}));
}

TEST(LossInputs, RaggedRowsAreRefused) {  // R-TRAIN-35
    auto const error = refused([] { (void)LossInput{std::vector<Integers>{{3, 4}, {5}}}; });
    EXPECT_EQ(error.field, "rows/1");
    EXPECT_NE(error.message.find("row 1 of a list has 1 numbers and row 0 has 2"),
              std::string::npos)
        << error.message;
}

TEST(LossInputs, TargetsThatAreNoIntegersAreRefused) {  // R-TRAIN-35
    auto const error = refused([] { (void)LossInputs{{"target_tokens", {1, 2.5}}}; });
    EXPECT_EQ(error.field, "target_tokens");
    EXPECT_EQ(error.value, "2.5");
    EXPECT_NE(error.message.find("target_tokens[1] is 2.5"), std::string::npos) << error.message;
    refused([] { (void)LossInputs{{"target_tokens", {0x1p63}}}; });
}

TEST(LossInputs, TensorsAreKeptAsTheyAre) {  // R-TRAIN-35
    TensorData const odd{.data = Floats{1, 2}};
    LossInputs const inputs{{"target_tokens", odd}};
    EXPECT_EQ(tensor(inputs, "target_tokens"), odd);
}

TEST(LossInputs, ViewsAreReadWhereTheyAreUntilTheyAreOwned) {  // R-TRAIN-35
    std::array<float, 2> elsewhere{1, 2};
    LossInputs inputs{{"weights", std::span<float const>{elsewhere}}};
    elsewhere[1] = 3;
    EXPECT_EQ(tensor(inputs, "weights").data, (TensorData{.data = Floats{1, 3}}.data));
    EXPECT_FALSE(inputs.begin()->second.owned());
    inputs.own();
    elsewhere[0] = 9;
    EXPECT_EQ(tensor(inputs, "weights"), (TensorData{.data = Floats{1, 3}}));
    EXPECT_TRUE(inputs.begin()->second.owned());
}

TEST(LossInputs, AreReplacedFoundAndErasedByName) {
    LossInputs inputs{{"b", {1}}, {"a", {2}}, {"b", {3}}};
    EXPECT_EQ(inputs.size(), 2U);
    EXPECT_EQ(inputs.begin()->first, "a");
    EXPECT_EQ(tensor(inputs, "b"), (TensorData{.data = Floats{3}, .shape = {{1}}}));
    EXPECT_TRUE(inputs.erase("b"));
    EXPECT_FALSE(inputs.erase("b"));
    EXPECT_FALSE(inputs.find("b"));
    auto const error = refused([&] { (void)inputs.at("b"); });
    EXPECT_EQ(error.field, "b");
    EXPECT_NE(error.message.find("there is: a"), std::string::npos) << error.message;
    EXPECT_NE(inputs, (LossInputs{{"a", {2.5}}}));
    EXPECT_EQ(inputs, (LossInputs{{"a", {2}}}));
}

TEST(Csr, HoldsTheCellsThatDifferFromThePad) {  // R-TRAIN-36
    TensorData const dense{.data = Integers{5, 0, 0, 0, 6, 0, 0, 0, 7}, .shape = {{3, 3}}};
    TensorData const csr{.data = Integers{5, 6, 7},
                         .shape = {{3, 3}},
                         .sparse_crow_indices = {{0, 1, 2, 3}},
                         .sparse_col_indices = {{0, 1, 2}}};
    EXPECT_EQ(to_csr(dense), csr);
    EXPECT_EQ(to_dense(csr), dense);
    TensorData const padded{.data = Integers{-1, 4, -1}, .shape = {{1, 3}}};
    EXPECT_EQ(to_csr(padded, -1), (TensorData{.data = Integers{4},
                                              .shape = {{1, 3}},
                                              .sparse_crow_indices = {{0, 1}},
                                              .sparse_col_indices = {{1}}}));
    EXPECT_EQ(to_dense(to_csr(padded, -1), -1), padded);
}

TEST(Csr, IsChosenWhereItIsSmaller) {  // R-TRAIN-36
    // Three rows: 4 + 2 * stored < cells.
    auto const matrix = [](std::int64_t columns, std::size_t stored) {
        Floats cells(static_cast<std::size_t>(3 * columns), 0.0F);
        std::fill_n(cells.begin(), stored, 1.0F);
        return TensorData{.data = cells, .shape = {{3, columns}}};
    };
    EXPECT_TRUE(csr_if_smaller(matrix(4, 3)).sparse());   // 10 < 12
    EXPECT_FALSE(csr_if_smaller(matrix(4, 4)).sparse());  // 12 = 12
    EXPECT_FALSE(csr_if_smaller(matrix(2, 6)).sparse());
    TensorData const list{.data = Floats(100, 0.0F), .shape = {{100}}};
    EXPECT_EQ(csr_if_smaller(list), list);
    EXPECT_EQ(csr_if_smaller(to_csr(matrix(4, 1))), to_csr(matrix(4, 1)));
}

TEST(Csr, GoesRound) {  // R-TRAIN-36, R-TEST-03
    EXPECT_TRUE(rc::check([] {
        auto const rows = *rc::gen::inRange<std::size_t>(0, 6);
        auto const columns = *rc::gen::inRange<std::size_t>(0, 6);
        auto const cells =
            *rc::gen::container<Integers>(rows * columns, rc::gen::inRange<std::int64_t>(-2, 3));
        TensorData const dense{
            .data = cells,
            .shape = {{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}}};
        auto const csr = to_csr(dense);
        RC_ASSERT(wire::tensor_problem(csr).empty());
        RC_ASSERT(to_dense(csr) == dense);
    }));
}

TEST(Csr, RefusesWhatIsNoMatrix) {  // R-TRAIN-36
    EXPECT_EQ(refused([] { (void)to_csr({.data = Floats{1}}); }).field, "shape");
    EXPECT_EQ(refused([] { (void)to_csr({.data = Floats{1}, .shape = {{2, 2}}}); }).field, "shape");
    EXPECT_EQ(refused([] { (void)to_dense({.data = Floats{1}}); }).field, "sparse_crow_indices");
}

Datum datum(std::size_t tokens) {
    return {.model_input = ModelInput::from_tokens(std::vector<Token>(tokens, 1)),
            .loss_fn_inputs = {{"target_tokens", Integers(tokens, 2)}}};
}
ProvenanceSpan prompt(std::int64_t length, std::int64_t offset = 0) {
    return {.sequence_id = "s", .offset = offset, .length = length};
}
ProvenanceSpan sampled(std::int64_t length) {
    return {.kind = ProvenanceSpan::Kind::sampled, .sequence_id = "s", .length = length};
}

TEST(Provenance, SpansTileInputAndTargets) {  // R-TRAIN-38
    auto const made = datum(3).with_provenance({prompt(2), sampled(1)}, {prompt(1, 1), sampled(2)});
    EXPECT_EQ(made.model_input_spans.size(), 2U);
    EXPECT_EQ(made.loss_fn_input_spans.front().offset, 1);
}

TEST(Provenance, SpansThatDoNotTileAreRefused) {  // R-TRAIN-38
    struct Case {
        std::vector<ProvenanceSpan> input;
        std::vector<ProvenanceSpan> targets;
        std::string field;
    };
    for (auto const& [input, targets, field] : {
             Case{{prompt(2)}, {sampled(3)}, "model_input_spans"},
             Case{{prompt(3)}, {sampled(4)}, "loss_fn_input_spans"},
             Case{{prompt(3)}, {}, "loss_fn_input_spans"},
             Case{{}, {sampled(3)}, "model_input_spans"},
             Case{{prompt(4), prompt(-1)}, {sampled(3)}, "model_input_spans/1/length"},
             Case{{prompt(3, -1)}, {sampled(3)}, "model_input_spans/0/offset"},
             Case{{prompt(3)}, {{.length = 3}}, "loss_fn_input_spans/0/sequence_id"},
         }) {
        auto const error =
            refused([&, in = input, out = targets] { (void)datum(3).with_provenance(in, out); });
        EXPECT_EQ(error.field, field) << error.message;
        EXPECT_TRUE(error.message.starts_with("with_provenance: ")) << error.message;
    }
}

TEST(Provenance, LengthsOverAMatrixOfTargetsAreNotAddedUp) {  // R-TRAIN-38
    auto matrix = datum(2);
    matrix.loss_fn_inputs.set("target_tokens", std::vector<Integers>{{1, 2}, {3, 4}});
    EXPECT_NO_THROW((void)matrix.with_provenance({prompt(2)}, {sampled(7)}));
    EXPECT_EQ(refused([&] { (void)matrix.with_provenance({prompt(2)}, {sampled(-7)}); }).field,
              "loss_fn_input_spans/0/length");
}

}  // namespace
}  // namespace tinkxx
