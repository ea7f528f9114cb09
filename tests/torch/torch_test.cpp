#include <tinkxx/torch.hpp>

#include <tinkxx/losses.hpp>
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace tinkxx {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using Tensors = std::span<::torch::Tensor const>;

TensorData numbers(std::vector<float> values) { return {.data = std::move(values)}; }

std::vector<Datum> data(std::size_t count) {
    std::vector<Datum> made(count);
    for (std::size_t i = 0; i < count; ++i) {
        made[i].model_input = ModelInput::from_tokens({1, 2});
        made[i].loss_fn_inputs.set("target_tokens", {2, 3});
        made[i].loss_fn_inputs.set("weights", {1.0, 0.5 + static_cast<double>(i)});
    }
    return made;
}

::torch::Tensor cross_entropy(std::span<Datum const> data, Tensors logprobs) {
    auto total = ::torch::zeros({});
    for (std::size_t i = 0; i < data.size(); ++i) {
        total = total - (to_torch(data[i].loss_fn_inputs.at("weights")) * logprobs[i]).sum();
    }
    return total;
}

template <class Fn>
std::string refusal(Fn fn) {
    try {
        (void)torch_loss(fn)(data(1), std::vector{numbers({-1, -2})});
    } catch (ValidationError const& error) {
        return error.what();
    }
    return "none";
}

TEST(TorchLoss, GivesTheGradientOfAnExpression) {  // R-TRAIN-73
    auto const batch = data(2);
    std::vector const logprobs{numbers({-1, -2}), numbers({-0.5F, -4})};
    auto const value = torch_loss(cross_entropy)(batch, logprobs);
    EXPECT_DOUBLE_EQ(value.loss, 1 + 1 + 0.5 + 6);
    EXPECT_THAT(value.gradient, ElementsAre(ElementsAre(-1, -0.5F), ElementsAre(-1, -1.5F)));
    EXPECT_EQ(value, losses::weighted_cross_entropy()(batch, logprobs));
}

TEST(TorchLoss, PassesOnMetricsShapesAndTypes) {  // R-TRAIN-73
    std::vector<Datum> batch(1);
    batch[0].loss_fn_inputs.set("target_tokens", std::vector<std::vector<int>>{{1, 2}, {3, 4}});
    TensorData logprobs{.data = std::vector<float>{-1, -2, -3, -4},
                        .shape = std::vector<std::int64_t>{2, 2}};
    auto const loss = torch_loss([](std::span<Datum const> given, Tensors p) {
        auto const targets = to_torch(given[0].loss_fn_inputs.at("target_tokens"));
        EXPECT_EQ(targets.scalar_type(), ::torch::kInt64);
        EXPECT_EQ(targets.index({1, 0}).item<std::int64_t>(), 3);
        EXPECT_EQ(p[0].sizes(), (std::vector<std::int64_t>{2, 2}));
        return TorchLossValue{p[0].logsumexp(1).to(::torch::kFloat64).sum(), {{"mine", 7.0}}};
    });
    auto const value = loss(batch, std::vector{logprobs});
    EXPECT_THAT(value.metrics, ElementsAre(::testing::Pair("mine", 7.0)));
    // The softmax of each row: 1 / (1 + 1 / e) and the rest.
    EXPECT_THAT(value.gradient.at(0),
                ElementsAre(FloatNear(0.7310586F, 1e-6F), FloatNear(0.2689414F, 1e-6F),
                            FloatNear(0.7310586F, 1e-6F), FloatNear(0.2689414F, 1e-6F)));
    EXPECT_TRUE(losses::check_gradient(loss, batch, std::vector{logprobs}).ok);
}

TEST(TorchLoss, ADatumThatDoesNotMatterHasNoGradient) {  // R-TRAIN-73
    auto const loss = torch_loss([](std::span<Datum const>, Tensors p) { return p[1].sum(); });
    auto const value = loss(data(2), std::vector{numbers({-1, -2}), numbers({-3, -4})});
    EXPECT_THAT(value.gradient, ElementsAre(ElementsAre(0, 0), ElementsAre(1, 1)));
}

TEST(TorchLoss, WorksWhereGradientsWereTurnedOff) {  // R-TRAIN-73
    ::torch::NoGradGuard const off;
    auto const loss = torch_loss([](std::span<Datum const>, Tensors p) { return p[0].sum(); });
    EXPECT_THAT(loss(data(1), std::vector{numbers({-1, -2})}).gradient,
                ElementsAre(ElementsAre(1, 1)));
    EXPECT_FALSE(::torch::GradMode::is_enabled()) << "left as it was";
}

TEST(TorchLoss, RefusesWhatIsNoLoss) {  // R-TRAIN-72
    EXPECT_THAT(refusal([](std::span<Datum const>, Tensors p) { return p[0] * 2; }),
                HasSubstr("has 2 numbers"));
    EXPECT_THAT(refusal([](std::span<Datum const>, Tensors) { return ::torch::Tensor{}; }),
                HasSubstr("empty tensor"));
    EXPECT_THAT(refusal([](std::span<Datum const>, Tensors p) { return p[0].detach().sum(); }),
                HasSubstr("does not depend on the log-probabilities"));
}

TEST(TorchLoss, CsrMatricesBecomeDense) {
    auto const made = to_torch(TensorData{.data = std::vector<float>{5, 6},
                                          .shape = std::vector<std::int64_t>{2, 3},
                                          .sparse_crow_indices = std::vector<std::int64_t>{0, 1, 2},
                                          .sparse_col_indices = std::vector<std::int64_t>{2, 0}});
    EXPECT_TRUE(made.equal(::torch::tensor({{0.F, 0.F, 5.F}, {6.F, 0.F, 0.F}})));
    EXPECT_THROW((void)to_torch(TensorData{.data = std::vector<float>{5},
                                           .shape = std::vector<std::int64_t>{2, 3}}),
                 ValidationError);
}

TEST(TorchLoss, TrainsAModel) {  // R-TRAIN-70, R-TRAIN-73
    support::RawTinker tinker;
    auto options = tinker.options();
    options.submit_encoding = SubmitEncoding::json;
    ServiceClient const service{options};
    auto const trainer = service.create_lora_training_client("org/tiny").get();
    auto const output = trainer.forward_backward_custom(data(1), torch_loss(cross_entropy)).get();
    // The fake service gives the log-probabilities -0.25 and -0.5.
    EXPECT_DOUBLE_EQ(output.metrics.at("loss:sum"), 0.5);
    auto const& sent = tinker.trained().back().json.at("forward_backward_input").at("data").at(0);
    auto const& weights = sent.at("loss_fn_inputs").at("weights").at("data").as_array();
    EXPECT_EQ(weights.at(0).to_number<double>(), 1);
    EXPECT_EQ(weights.at(1).to_number<double>(), 0.5);
}

}  // namespace
}  // namespace tinkxx
