#include <tinkxx/error.hpp>

#include "unit/text/render/support.hpp"

#include <gtest/gtest.h>

namespace tinkxx::text {
namespace {

RenderedExample const example{.tokens = {72, 105, 33, 10}, .weights = {0, 0, 1, 1}};

TEST(DatumOfAnExample, ShiftsTargetsAndMakesWeightsAMean) {
    auto const datum = to_datum(example);
    EXPECT_EQ(datum.model_input, ModelInput::from_tokens({72, 105, 33}));
    EXPECT_EQ(to_tensor_data(datum.loss_fn_inputs.at("target_tokens")),
              (TensorData{.data = std::vector<std::int64_t>{105, 33, 10}, .shape = {{3}}}));
    EXPECT_EQ(to_tensor_data(datum.loss_fn_inputs.at("weights")),
              (TensorData{.data = std::vector<float>{0, 0.5F, 0.5F}, .shape = {{3}}}));
}

TEST(DatumOfAnExample, KeepsWeightsIfAskedAndCutsWhatIsTooLong) {
    auto const datum = to_datum(
        example, {.max_length = 3, .reduction = ConversationDatumOptions::Reduction::none});
    EXPECT_EQ(datum.model_input, ModelInput::from_tokens({72, 105}));
    EXPECT_EQ(to_tensor_data(datum.loss_fn_inputs.at("weights")),
              (TensorData{.data = std::vector<float>{0, 1}, .shape = {{2}}}));
    EXPECT_THROW((void)to_datum(example, {.max_length = 1}), ValidationError);
    EXPECT_THROW((void)to_datum({.tokens = {1, 2}, .weights = {1}}), ValidationError);
}

TEST(DatumOfAConversation, IsThatOfItsExample) {
    auto const renderer = test::make_renderer("llama3");
    auto const messages = test::short_conversation();
    EXPECT_EQ(data::from_conversation(*renderer, messages),
              to_datum(renderer->build_supervised_example(messages,
                                                          TrainOnWhat::all_assistant_messages)));
}

TEST(ShownDatum, MarksWhatCountsInTheLoss) {
    auto const renderer = test::make_renderer("llama3");
    auto const datum =
        data::from_conversation(*renderer, test::short_conversation(),
                                {.train_on_what = TrainOnWhat::last_assistant_message});
    auto const text = show_datum(datum, renderer->tokenizer());
    EXPECT_TRUE(text.ends_with("<|start_header_id|>assistant<|end_header_id|>\n\n【6<|eot_id|>】"))
        << text;
}

TEST(ShownExample, HasColoursOnlyWhenAskedAndNeverObeysTheText) {
    auto const tokenizer = test::small_tokenizer("plain_eos");
    RenderedExample shown{.tokens = {'a', 0x1b, 'b'}, .weights = {0, 1, -1}};
    EXPECT_EQ(show_example(shown, *tokenizer), "a【␛】〖b〗");
    EXPECT_EQ(show_example(shown, *tokenizer, {.ansi = true}),
              "\x1b[33ma\x1b[0m\x1b[32m␛\x1b[0m\x1b[31mb\x1b[0m");
    RenderedExample const bounds{.tokens = {'a', 'b'}, .weights = {0, 0}};
    EXPECT_EQ(show_example(bounds, *tokenizer, {.token_bounds = true}), "a│b");
}

TEST(ShownDatum, WithoutTargetsIsRefused) {
    auto const tokenizer = test::small_tokenizer("plain_eos");
    EXPECT_THROW((void)show_datum(Datum{.model_input = ModelInput::from_tokens({1})}, *tokenizer),
                 ValidationError);
}

}  // namespace
}  // namespace tinkxx::text
