#include <tinkxx/data.hpp>
#include <tinkxx/error.hpp>

#include "math/check.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace tinkxx::data {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<Token>;

template <class T>
std::vector<T> input(Datum const& datum, std::string_view name) {
    auto const tensor = to_tensor_data(datum.loss_fn_inputs.at(name));
    return std::get<std::vector<T>>(tensor.data);
}

Datum tokens(std::size_t count) {
    return {.model_input = ModelInput::from_tokens(Tokens(count, 1))};
}

TEST(DataFromTokens, TargetsAreShiftedByOne) {
    auto const datum = from_tokens(Tokens{1, 2, 3, 4}, Floats{9, 0, 0.5F, 1});
    EXPECT_EQ(datum.model_input.to_tokens(), (Tokens{1, 2, 3}));
    EXPECT_EQ(input<std::int64_t>(datum, "target_tokens"), (std::vector<std::int64_t>{2, 3, 4}));
    EXPECT_EQ(input<float>(datum, "weights"), (Floats{0, 0.5F, 1}));
    EXPECT_FALSE(math::data_problem("t", std::vector{datum}, LossFn::cross_entropy));
}

TEST(DataFromTokens, WhatIsTooLongIsCut) {
    auto const datum = from_tokens(Tokens{1, 2, 3, 4}, Floats{0, 1, 1, 1}, 3);
    EXPECT_EQ(datum.model_input.to_tokens(), (Tokens{1, 2}));
    EXPECT_EQ(input<float>(datum, "weights"), (Floats{1, 1}));
    EXPECT_THROW((void)from_tokens(Tokens{1, 2}, Floats{1, 1}, 1), ValidationError);
    EXPECT_THROW((void)from_tokens(Tokens{1, 2}, Floats{1, 1}, -1), ValidationError);
}

TEST(DataFromTokens, AWeightForEachTokenIsNeeded) {
    try {
        (void)from_tokens(Tokens{1, 2, 3}, Floats{1, 1});
        FAIL();
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "weights");
        EXPECT_EQ(std::string{error.what()},
                  "from_tokens: there are 2 weights for 3 tokens; give one for each");
    }
    EXPECT_THROW((void)from_tokens(Tokens{1}, Floats{1}), ValidationError);
}

TEST(DataFromTokens, OnlyTheCompletionCounts) {
    auto const datum = from_completion(Tokens{1, 2}, Tokens{3, 4});
    EXPECT_EQ(datum.model_input.to_tokens(), (Tokens{1, 2, 3}));
    EXPECT_EQ(input<float>(datum, "weights"), (Floats{0, 1, 1}));
}

TEST(DataFromTokens, PlacesOfImagesCountNothing) {
    ModelInput const seen{.chunks = {EncodedTextChunk{{1}},
                                     ImageChunk{.data = "x", .expected_tokens = 2},
                                     EncodedTextChunk{{5, 6}}}};
    auto const datum = from_model_input(seen, Floats{1, 1, 1, 1, 1});
    EXPECT_EQ(datum.model_input.length(), 4);
    EXPECT_EQ(input<std::int64_t>(datum, "target_tokens"), (std::vector<std::int64_t>{0, 0, 5, 6}));
    EXPECT_EQ(input<float>(datum, "weights"), (Floats{0, 0, 1, 1}));
    EXPECT_FALSE(math::data_problem("t", std::vector{datum}, LossFn::cross_entropy));
    ModelInput const last{.chunks = {EncodedTextChunk{{1}}, ImageChunk{.expected_tokens = 1}}};
    EXPECT_THROW((void)from_model_input(last, Floats{1, 1}), ValidationError);
    auto const one =
        from_model_input({.chunks = {EncodedTextChunk{{1}}, EncodedTextChunk{{2}}}}, Floats{1, 1});
    EXPECT_EQ(one.model_input.chunks.size(), 1U) << "no empty chunk stays";
}

TEST(DataFromSample, ThePromptCountsNothing) {
    SampledSequence const drawn{.tokens = {7, 8}, .logprobs = {{-0.5F, -1}}, .sequence_id = "s"};
    auto const datum = from_sample(Tokens{1, 2, 3}, drawn, 2);
    EXPECT_EQ(datum.model_input.to_tokens(), (Tokens{1, 2, 3, 7}));
    EXPECT_EQ(input<std::int64_t>(datum, "target_tokens"), (std::vector<std::int64_t>{2, 3, 7, 8}));
    EXPECT_EQ(input<float>(datum, "logprobs"), (Floats{0, 0, -0.5F, -1}));
    EXPECT_EQ(input<float>(datum, "advantages"), (Floats{0, 0, 2, 2}));
    EXPECT_FALSE(math::data_problem("t", std::vector{datum}, LossFn::stable_reinforce));
    auto const shortest =
        from_sample(Tokens{1}, {.tokens = {7}, .logprobs = {{-0.5F}}, .sequence_id = "s"}, 1);
    EXPECT_FALSE(math::data_problem("t", std::vector{shortest}, LossFn::stable_reinforce));
    auto const unnamed = from_sample(Tokens{1}, {.tokens = {7}, .logprobs = {{-0.5F}}}, 1);
    EXPECT_TRUE(unnamed.model_input_spans.empty());
}

TEST(DataFromSample, NeedsTokensWithTheirLogprobs) {
    EXPECT_THROW((void)from_sample(Tokens{1}, {}, 1), ValidationError);
    EXPECT_THROW((void)from_sample(Tokens{1}, {.tokens = {7}}, 1), ValidationError);
    EXPECT_THROW((void)from_sample(Tokens{}, {.tokens = {7}, .logprobs = {{-1.0F}}}, 1),
                 ValidationError);
}

TEST(Batches, KeepWithinTheirBudget) {
    std::vector<Datum> const data{tokens(3), tokens(3), tokens(9), tokens(1), tokens(1), tokens(1)};
    auto const sizes = [&](std::int64_t most, std::int64_t items) {
        std::vector<std::size_t> out;
        for (auto const batch : batches(data, most, items)) out.push_back(batch.size());
        return out;
    };
    EXPECT_EQ(sizes(6, 0), (std::vector<std::size_t>{2, 1, 3}));
    EXPECT_EQ(sizes(6, 2), (std::vector<std::size_t>{2, 1, 2, 1}));
    EXPECT_EQ(sizes(1, 0), (std::vector<std::size_t>{1, 1, 1, 1, 1, 1}));
    EXPECT_TRUE(batches({}, 6).empty());
    EXPECT_EQ(batches(data, 6)[1].data(), &data[2]);
}

RC_GTEST_PROP(Batches, HoldEveryDatumOnceInOrder, ()) {  // R-TEST-03
    std::vector<Datum> data;
    for (auto const size : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9))) {
        data.push_back(tokens(static_cast<std::size_t>(size)));
    }
    auto const most = *rc::gen::inRange<std::int64_t>(1, 20);
    auto const* next = data.data();
    for (auto const batch : batches(data, most)) {
        RC_ASSERT(!batch.empty());
        RC_ASSERT(batch.data() == next);
        next += batch.size();
        std::int64_t total = 0;
        for (auto const& datum : batch) total += token_count(datum);
        RC_ASSERT(total <= most || batch.size() == 1U);
    }
    RC_ASSERT(next == data.data() + data.size());
}

TEST(GroupRelativeAdvantages, AreTheDifferencesToTheMeanOfTheGroup) {
    EXPECT_EQ(group_relative_advantages(std::vector<double>{1, 3, 0, 0}, 2),
              (std::vector<double>{-1, 1, 0, 0}));
    // The deviation of 1 and 3 is 1.
    auto const scaled =
        group_relative_advantages(std::vector<double>{1, 3}, 2, {.divide_by_deviation = true});
    EXPECT_NEAR(scaled[1], 1 / (1 + 1e-6), 1e-12);
    EXPECT_EQ(
        group_relative_advantages(std::vector<double>{5, 5}, 2, {.divide_by_deviation = true}),
        (std::vector<double>{0, 0}));
}

TEST(GroupRelativeAdvantages, GroupsMustComeOutEven) {
    EXPECT_THROW((void)group_relative_advantages(std::vector<double>{1, 2, 3}, 2), ValidationError);
    EXPECT_THROW((void)group_relative_advantages(std::vector<double>{1}, 0), ValidationError);
    EXPECT_THROW((void)group_relative_advantages(std::vector<double>{std::nan("")}, 1),
                 ValidationError);
}

TEST(LearningRateSchedule, WarmsUpAndComesDown) {
    using Shape = LearningRateSchedule::Shape;
    LearningRateSchedule const linear{
        .peak = 1, .warmup_steps = 3, .total_steps = 13, .shape = Shape::linear};
    EXPECT_DOUBLE_EQ(linear.at(0), 0.25);
    EXPECT_DOUBLE_EQ(linear.at(2), 0.75);
    EXPECT_DOUBLE_EQ(linear.at(3), 1);
    EXPECT_DOUBLE_EQ(linear.at(8), 0.5);
    EXPECT_DOUBLE_EQ(linear.at(13), 0);
    EXPECT_DOUBLE_EQ(linear.at(99), 0);
    LearningRateSchedule const cosine{
        .peak = 2, .total_steps = 4, .shape = Shape::cosine, .final_fraction = 0.5};
    EXPECT_DOUBLE_EQ(cosine.at(0), 2);
    EXPECT_DOUBLE_EQ(cosine.at(2), 1.5);
    EXPECT_DOUBLE_EQ(cosine.at(4), 1);
    EXPECT_DOUBLE_EQ((LearningRateSchedule{.peak = 3}.at(1000)), 3);
    EXPECT_DOUBLE_EQ(
        (LearningRateSchedule{.peak = 3, .total_steps = 0, .shape = Shape::linear}.at(1)), 0);
}

}  // namespace
}  // namespace tinkxx::data
