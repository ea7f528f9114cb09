#include <tinkxx/error.hpp>
#include <tinkxx/losses.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tinkxx::losses {
namespace {

using Floats = std::vector<float>;
using Gradient = std::vector<Floats>;

Datum datum(std::size_t targets, LossInputs more) {
    more.set("target_tokens", std::vector<std::int64_t>(targets, 1));
    return {.model_input = ModelInput::from_tokens(std::vector<Token>(targets, 1)),
            .loss_fn_inputs = std::move(more)};
}
TensorData list(Floats numbers) {
    auto const size = static_cast<std::int64_t>(numbers.size());
    return {.data = std::move(numbers), .shape = {{size}}};
}

void expect_right_gradient(CustomLoss const& loss, std::vector<Datum> const& data,
                           std::vector<TensorData> const& logprobs) {
    auto const check = check_gradient(loss, data, logprobs);
    EXPECT_TRUE(check.ok) << "datum " << check.datum << " at " << check.index << ": gives "
                          << check.analytic << ", is " << check.numeric;
    std::size_t all = 0;
    for (auto const& tensor : logprobs) all += view(tensor).size();
    EXPECT_EQ(check.compared, all);
}

TEST(WeightedCrossEntropy, IsWhatTheServiceComputes) {  // R-TRAIN-73, R-TRAIN-71
    std::vector<Datum> const data{datum(2, {{"weights", {0.5, 2}}}), datum(1, {})};
    std::vector<TensorData> const logprobs{list({-1, -3}), list({-0.25F})};
    auto const value = weighted_cross_entropy()(data, logprobs);
    // 0.5 * 1 + 2 * 3 + 1 * 0.25
    EXPECT_DOUBLE_EQ(value.loss, 6.75);
    EXPECT_EQ(value.gradient, (Gradient{{-0.5F, -2}, {-1}}));
    expect_right_gradient(weighted_cross_entropy(), data, logprobs);
}

TEST(WeightedCrossEntropy, TakesSparseWeights) {  // R-TRAIN-73
    TensorData const dense{.data = Floats{0, 2, 0, 0}, .shape = {{2, 2}}};
    std::vector<Datum> const data{datum(2, {{"weights", to_csr(dense)}})};
    std::vector<TensorData> const logprobs{{.data = Floats{-1, -3, -1, -1}, .shape = {{2, 2}}}};
    EXPECT_DOUBLE_EQ(weighted_cross_entropy()(data, logprobs).loss, 6);
}

TEST(Dpo, HasTheLossOfTheLogisticMargin) {  // R-TRAIN-73
    // Rewards: 0.5 * ((-1 + 2) + (-2 + 2)) = 0.5 and 0.5 * (-4 + 3) = -0.5; the margin is 1.
    std::vector<Datum> const data{datum(2, {{"reference_logprobs", {-2, -2}}}),
                                  datum(1, {{"reference_logprobs", {-3}}})};
    std::vector<TensorData> const logprobs{list({-1, -2}), list({-4})};
    auto const loss = dpo({.beta = 0.5});
    auto const value = loss(data, logprobs);
    EXPECT_NEAR(value.loss, std::log(1 + std::exp(-1.0)), 1e-12);
    auto const slope = static_cast<float>(-0.5 / (1 + std::exp(1.0)));
    EXPECT_EQ(value.gradient, (Gradient{{slope, slope}, {-slope}}));
    EXPECT_EQ(value.metrics, (MetricValues{{"dpo_loss", value.loss},
                                           {"accuracy", 1},
                                           {"margin", 1},
                                           {"chosen_reward", 0.5},
                                           {"rejected_reward", -0.5}}));
    expect_right_gradient(loss, data, logprobs);
}

TEST(Dpo, TakesTheMeanOverPairsAndStaysFinite) {  // R-TRAIN-73
    std::vector<Datum> const data(4, datum(1, {{"reference_logprobs", {0}}, {"weights", {2}}}));
    // Margins of beta * weight * difference: 0 and -20000.
    std::vector<TensorData> const logprobs{list({-1}), list({-1}), list({-1e5F}), list({0})};
    auto const value = dpo()(data, logprobs);
    EXPECT_NEAR(value.loss, (std::log(2.0) + 20000) / 2, 1e-6);
    EXPECT_EQ(value.gradient[0], Floats{static_cast<float>(-0.5 * 0.1 * 2 / 2)});
    EXPECT_EQ(value.gradient[2], Floats{static_cast<float>(-1.0 * 0.1 * 2 / 2)});
    EXPECT_EQ(value.metrics.at("accuracy"), 0);
}

TEST(Dpo, NeedsPairsAndAReference) {  // R-TRAIN-73
    std::vector<TensorData> const logprobs{list({-1})};
    std::vector<Datum> const odd{datum(1, {{"reference_logprobs", {0}}})};
    EXPECT_THROW((void)dpo()(odd, logprobs), ValidationError);
    std::vector<Datum> const bare(2, datum(1, {}));
    std::vector<TensorData> const two(2, list({-1}));
    try {
        (void)dpo()(bare, two);
        FAIL();
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "data/0/loss_fn_inputs/reference_logprobs");
    }
}

TEST(KlToReference, HasThreeEstimates) {  // R-TRAIN-73
    std::vector<Datum> const data{
        datum(2, {{"reference_logprobs", {-2, -1}}, {"weights", {1, 3}}})};
    std::vector<TensorData> const logprobs{list({-1, -1})};  // d = 1 and 0
    struct Case {
        KlEstimate estimate;
        double loss;
        double slope;
    };
    for (auto const& [estimate, loss, slope] :
         {Case{KlEstimate::k1, 1, 1}, Case{KlEstimate::k2, 0.5, 1},
          Case{KlEstimate::k3, std::exp(-1.0), 1 - std::exp(-1.0)}}) {
        auto const made = kl_to_reference({.coefficient = 2, .estimate = estimate});
        auto const value = made(data, logprobs);
        EXPECT_NEAR(value.loss, 2 * loss, 1e-12);
        EXPECT_NEAR(value.gradient[0][0], 2 * slope, 1e-6);
        EXPECT_NEAR(value.gradient[0][1], estimate == KlEstimate::k1 ? 6 : 0, 1e-6);
        EXPECT_NEAR(value.metrics.at("kl"), loss / 4, 1e-12);
        expect_right_gradient(made, data, logprobs);
    }
}

TEST(EntropyBonus, IsEstimatedFromDrawnTokens) {  // R-TRAIN-73
    std::vector<Datum> const data{datum(2, {{"weights", {1, 0.5}}})};
    std::vector<TensorData> const logprobs{list({-1, -4})};
    auto const value = entropy_bonus(2)(data, logprobs);
    EXPECT_DOUBLE_EQ(value.loss, -2 * (1 + 0.5 * 4));
    EXPECT_EQ(value.gradient, (Gradient{{2, 1}}));
    EXPECT_DOUBLE_EQ(value.metrics.at("entropy"), 2);
    expect_right_gradient(entropy_bonus(2), data, logprobs);
}

TEST(EntropyBonus, IsExactOverTheCellsOfARow) {  // R-TRAIN-73
    auto const half = std::log(0.5F);
    std::vector<Datum> const data{datum(2, {})};
    std::vector<TensorData> const logprobs{
        {.data = Floats{half, half, 0, -200}, .shape = {{2, 2}}}};
    auto const value = entropy_bonus()(data, logprobs);
    EXPECT_NEAR(value.loss, -std::log(2.0), 1e-6);
    EXPECT_NEAR(value.gradient[0][0], 0.5 * (1 + std::log(0.5)), 1e-6);
    EXPECT_NEAR(value.gradient[0][2], 1, 1e-6);
    EXPECT_EQ(value.gradient[0][3], 0);
    expect_right_gradient(entropy_bonus(), data, logprobs);
}

TEST(PpoClip, HoldsTheRatioWhereThatIsWorse) {  // R-TRAIN-73
    // Ratios 1.5, 1.5, 0.5, 0.5, 1.1 with advantages of both signs.
    auto const log = [](double x) { return static_cast<float>(std::log(x)); };
    std::vector<Datum> const data{
        datum(5, {{"logprobs", {0, 0, 0, 0, 0}}, {"advantages", {2, -2, 2, -2, 1}}})};
    std::vector<TensorData> const logprobs{
        list({log(1.5), log(1.5), log(0.5), log(0.5), log(1.1)})};
    auto const value = ppo_clip()(data, logprobs);
    // -min(3, 2.4), -min(-3, -2.4), -min(1, 1.6), -min(-1, -1.6), -1.1
    EXPECT_NEAR(value.loss, -2.4 + 3 - 1 + 1.6 - 1.1, 1e-6);
    Floats const expected{0, 3, -1, 0, -1.1F};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(value.gradient[0][i], expected[i], 1e-6) << i;
    }
    EXPECT_NEAR(value.metrics.at("clip_fraction"), 0.4, 1e-12);
    EXPECT_NEAR(value.metrics.at("ratio"), 5.1 / 5, 1e-6);
    expect_right_gradient(ppo_clip(), data, logprobs);
}

TEST(PpoClip, AnEndlessRatioOfNoAdvantageIsNothing) {  // R-TRAIN-73
    std::vector<Datum> const data{datum(1, {{"logprobs", {-1000}}, {"advantages", {0}}})};
    std::vector<TensorData> const logprobs{list({0})};
    EXPECT_EQ(ppo_clip()(data, logprobs).loss, 0);
}

TEST(LossSum, AddsLossesGradientsAndMetrics) {  // R-TRAIN-73
    std::vector<Datum> const data{datum(1, {{"reference_logprobs", {-2}}})};
    std::vector<TensorData> const logprobs{list({-1})};
    auto const loss = sum({{.loss = weighted_cross_entropy(), .weight = 2},
                           {.loss = kl_to_reference({.estimate = KlEstimate::k2}), .weight = 0.5}});
    auto const value = loss(data, logprobs);
    EXPECT_DOUBLE_EQ(value.loss, 2 * 1 + 0.5 * 0.5);
    EXPECT_EQ(value.gradient, (Gradient{{-1.5F}}));
    EXPECT_EQ(value.metrics, (MetricValues{{"kl", 0.5}}));
    expect_right_gradient(loss, data, logprobs);
}

TEST(Losses, InputsOfAnotherLengthAreRefused) {  // R-TRAIN-72
    std::vector<Datum> const data{datum(2, {{"weights", {1}}})};
    std::vector<TensorData> const logprobs{list({-1, -1})};
    try {
        (void)weighted_cross_entropy()(data, logprobs);
        FAIL();
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "data/0/loss_fn_inputs/weights");
    }
    EXPECT_THROW((void)weighted_cross_entropy()(data, {}), ValidationError);
    std::vector<TensorData> const integers{{.data = std::vector<std::int64_t>{1, 2}}};
    EXPECT_THROW((void)weighted_cross_entropy()(data, integers), ValidationError);
}

TEST(CheckGradient, FindsTheDerivativeThatIsWrong) {  // R-TRAIN-73
    CustomLoss const wrong = [](std::span<Datum const>, std::span<TensorData const> logprobs) {
        CustomLossValue out;
        for (auto const& tensor : logprobs) {
            auto const& p = std::get<Floats>(tensor.data);
            auto& gradient = out.gradient.emplace_back();
            for (auto const x : p) {
                out.loss += static_cast<double>(x) * static_cast<double>(x);
                gradient.push_back(2 * x);
            }
        }
        out.gradient[1][0] += 0.5F;
        return out;
    };
    std::vector<Datum> const data(2);
    std::vector<TensorData> const logprobs{list({-1, -2}), list({-3})};
    auto const check = check_gradient(wrong, data, logprobs);
    EXPECT_FALSE(check.ok);
    EXPECT_EQ(check.datum, 1U);
    EXPECT_EQ(check.index, 0U);
    EXPECT_NEAR(check.analytic, -5.5, 1e-6);
    EXPECT_NEAR(check.numeric, -6, 1e-3);
    EXPECT_EQ(check.compared, 3U);
    EXPECT_TRUE(check_gradient(wrong, data, logprobs, {.tolerance = 0.2}).ok);
    EXPECT_TRUE(check_gradient(wrong, data, logprobs, {.most = 1}).ok) << "only the first is seen";
}

TEST(CheckGradient, ALossThatIsNoNumberBesideIsWrong) {  // R-TRAIN-73
    CustomLoss const edge = [](std::span<Datum const>, std::span<TensorData const> logprobs) {
        auto const x = std::get<Floats>(logprobs[0].data)[0];
        return CustomLossValue{.loss = x > -1 ? std::numeric_limits<double>::quiet_NaN() : 0.0,
                               .gradient = {{0}}};
    };
    std::vector<Datum> const data(1);
    std::vector<TensorData> const logprobs{list({-1})};
    EXPECT_FALSE(check_gradient(edge, data, logprobs).ok);
    CustomLoss const none = [](std::span<Datum const>, std::span<TensorData const>) {
        return CustomLossValue{};
    };
    EXPECT_THROW((void)check_gradient(none, data, logprobs), ValidationError);
}

}  // namespace
}  // namespace tinkxx::losses
