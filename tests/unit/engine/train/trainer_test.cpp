#include "engine/train/trainer.hpp"

#include "engine/train/optimizer.hpp"
#include "support/tiny_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

namespace tinkxx::engine {
namespace {

using testing::HasSubstr;

/// Sequences of many lengths, some longer than a page and than a piece.
std::vector<Datum> some_data(ModelConfig const& config, std::uint64_t seed) {
    std::vector<Datum> data;
    for (std::size_t const count : {5U, 70U, 1U, 130U, 300U, 64U, 17U, 33U, 128U, 2U}) {
        Datum datum{.tokens = support::random_tokens(count, config.vocab_size, seed + count),
                    .targets = support::random_tokens(count, config.vocab_size, seed + 2 * count)};
        for (std::size_t i = 0; i < count; ++i) {
            datum.weights.push_back(static_cast<float>(uniform(seed, count, i)));
        }
        data.push_back(std::move(datum));
    }
    return data;
}

std::vector<float> all_values(Parameters& parameters) {
    std::vector<float> values;
    for (auto const* matrix : all_matrices(parameters)) {
        values.insert(values.end(), matrix->values().begin(), matrix->values().end());
    }
    return values;
}

/// An adapter whose B is not zero, so that every gradient matters.
std::unique_ptr<Adapter> trained_adapter(std::shared_ptr<Model const> const& model,
                                         LoraConfig const& config) {
    auto adapter = Adapter::create(model, config).value();
    std::uint64_t number = 0;
    for (auto* matrix : all_matrices(adapter->parameters())) {
        ++number;
        for (std::size_t i = 0; i < matrix->values().size(); ++i) {
            matrix->values()[i] +=
                0.02F * static_cast<float>(uniform(config.seed, 1000 + number, i) - 0.5);
        }
    }
    return adapter;
}

/// Rank, and the type of the base, whose products have a path of their own where there is AMX.
using RankAndType = std::pair<int, ElementType>;

class TrainerOfRank : public testing::TestWithParam<RankAndType> {
protected:
    std::shared_ptr<Model const> model =
        GetParam().second == ElementType::bf16
            ? support::random_bf16_model(support::small_config(), 3)
            : support::random_model(support::small_config(), 3);
    LoraConfig lora{.rank = GetParam().first, .seed = 5};
    std::vector<Datum> data = some_data(model->config(), 1);

    std::pair<BatchResult, std::vector<float>> run(unsigned thread_count, TrainOptions options) {
        Threads threads{thread_count};
        Trainer trainer{model, threads, options};
        auto const adapter = trained_adapter(model, lora);
        auto result = trainer.forward_backward(*adapter, data, Loss{}).value();
        return {std::move(result), all_values(adapter->gradients())};
    }
};

TEST_P(TrainerOfRank, GivesTheSameBitsOnAnyNumberOfThreads) {
    auto const [one, one_gradients] = run(1, {});
    for (unsigned const count : {2U, 3U, 7U}) {
        auto const [many, many_gradients] = run(count, {});
        EXPECT_EQ(many.metrics, one.metrics);
        EXPECT_EQ(many_gradients, one_gradients);
        for (std::size_t i = 0; i < data.size(); ++i) {
            EXPECT_EQ(many.outputs[i].logprobs, one.outputs[i].logprobs);
        }
    }
}

TEST_P(TrainerOfRank, GivesTheSameBitsWhenLayersAreComputedAgain) {
    auto const kept = run(2, {});
    auto const again = run(2, {.activation_bytes = 1});
    EXPECT_EQ(kept.first.metrics, again.first.metrics);
    EXPECT_EQ(kept.second, again.second);
}

TEST_P(TrainerOfRank, GivesTheSameBitsInTurnsWithAnotherBatch) {
    auto const whole = run(2, {});
    auto const other_data = some_data(model->config(), 9);
    Threads threads{2};
    Trainer trainer{model, threads};
    auto const first = trained_adapter(model, lora);
    auto const second = trained_adapter(model, {.rank = 3, .seed = 11});
    auto mine = trainer.begin(first.get(), first.get(), data, Loss{}).value();
    auto other = trainer.begin(second.get(), second.get(), other_data, Loss{}).value();
    for (std::size_t pieces = 1; !mine.done() || !other.done(); ++pieces) {
        if (!mine.done()) (void)mine.advance(pieces % 4);
        if (!other.done()) (void)other.advance(1);
    }
    EXPECT_EQ(mine.take().metrics, whole.first.metrics);
    EXPECT_EQ(all_values(first->gradients()), whole.second);
}

TEST_P(TrainerOfRank, GivesADatumTheSameLogprobsAloneAndAmongOthers) {
    Threads threads{2};
    Trainer trainer{model, threads};
    auto const adapter = trained_adapter(model, lora);
    auto const together = trainer.forward(adapter.get(), data, Loss{}).value();
    for (std::size_t i = 0; i < data.size(); ++i) {
        auto const alone = trainer.forward(adapter.get(), {&data[i], 1}, Loss{}).value();
        EXPECT_EQ(alone.outputs[0].logprobs, together.outputs[i].logprobs) << i;
    }
}

TEST_P(TrainerOfRank, AddsGradientsUpUntilAStep) {
    Threads threads{2};
    Trainer trainer{model, threads};
    auto const twice = trained_adapter(model, lora);
    auto const once = trained_adapter(model, lora);
    (void)trainer.forward_backward(*once, data, Loss{}).value();
    (void)trainer.forward_backward(*twice, data, Loss{}).value();
    (void)trainer.forward_backward(*twice, data, Loss{}).value();
    auto const single = all_values(once->gradients());
    auto const sum = all_values(twice->gradients());
    for (std::size_t i = 0; i < sum.size(); ++i) {
        ASSERT_NEAR(sum[i], 2.0F * single[i], 1e-3F * (1.0F + std::abs(single[i]))) << i;
    }
    (void)optim_step(*twice, {}, &threads).value();
    for (auto const value : all_values(twice->gradients())) ASSERT_EQ(value, 0.0F);
}

TEST_P(TrainerOfRank, TrainsTwoAdaptersSideBySideAsAlone) {
    Threads threads{2};
    auto const other_data = some_data(model->config(), 9);
    auto const other_lora = LoraConfig{.rank = 3, .seed = 11, .train_mlp = false};
    auto const step = [&](Trainer& trainer, Adapter& adapter, std::vector<Datum> const& batch) {
        (void)trainer.forward_backward(adapter, batch, Loss{}).value();
        (void)optim_step(adapter, {.learning_rate = 1e-2}, &threads).value();
    };
    auto const first = trained_adapter(model, lora);
    auto const second = trained_adapter(model, other_lora);
    Trainer shared{model, threads};
    for (int i = 0; i < 3; ++i) {
        step(shared, *first, data);
        step(shared, *second, other_data);
    }
    auto const first_alone = trained_adapter(model, lora);
    Trainer alone{model, threads};
    for (int i = 0; i < 3; ++i) step(alone, *first_alone, data);
    auto const second_alone = trained_adapter(model, other_lora);
    Trainer alone_too{model, threads};
    for (int i = 0; i < 3; ++i) step(alone_too, *second_alone, other_data);
    EXPECT_EQ(all_values(first->parameters()), all_values(first_alone->parameters()));
    EXPECT_EQ(all_values(second->parameters()), all_values(second_alone->parameters()));
}

INSTANTIATE_TEST_SUITE_P(Ranks, TrainerOfRank,
                         testing::Values(RankAndType{0, ElementType::f32},
                                         RankAndType{4, ElementType::f32},
                                         RankAndType{4, ElementType::bf16}),
                         [](auto const& variant) {
                             return "Rank" + std::to_string(variant.param.first) +
                                    (variant.param.second == ElementType::bf16 ? "OverBf16" : "");
                         });

TEST(Trainer, HoldsNoMoreMemoryThanItStates) {
    auto const model = support::random_model(support::small_config(), 3);
    auto const data = some_data(model->config(), 1);
    Threads threads{1};
    for (bool const recompute : {false, true}) {
        Trainer trainer{
            model, threads, {.activation_bytes = recompute ? 1 : std::size_t{1} << 40U}};
        auto const adapter = Adapter::create(model, {.rank = 4}).value();
        (void)trainer.forward_backward(*adapter, data, Loss{}).value();
        // The longest datum is a piece by itself, and the largest.
        auto const stated = Trainer::activation_bytes(model->config(), 4, 300, 1, recompute);
        EXPECT_LE(trainer.held_bytes(), stated);
        EXPECT_GE(trainer.held_bytes() * 10, stated * 8);
    }
}

TEST(Trainer, RefusesDataThatDoesNotFit) {
    auto const model = support::random_model(support::small_config(), 3);
    Threads threads{1};
    Trainer trainer{model, threads};
    Datum const good{.tokens = {1, 2}, .targets = {2, 3}, .weights = {1.0F, 1.0F}};
    auto const field = [&](Datum const& datum, Loss const& loss) {
        auto const result = trainer.forward(nullptr, {&datum, 1}, loss);
        return result ? std::string("accepted") : std::string(result.error().field());
    };
    EXPECT_EQ(field(good, {}), "accepted");
    auto bad = good;
    bad.tokens = {};
    EXPECT_EQ(field(bad, {}), "model_input");
    bad = good;
    bad.tokens[1] = 96;
    EXPECT_EQ(field(bad, {}), "model_input");
    bad = good;
    bad.targets[0] = -1;
    EXPECT_EQ(field(bad, {}), "target_tokens");
    bad = good;
    bad.targets.pop_back();
    EXPECT_EQ(field(bad, {}), "target_tokens");
    bad = good;
    bad.weights.clear();
    EXPECT_EQ(field(bad, {}), "weights");
    bad = good;
    bad.weights[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(field(bad, {}), "weights");
    EXPECT_EQ(field(good, {.fn = LossFn::ppo}), "logprobs");
    bad = good;
    bad.logprobs = {-1.0F, -1.0F};
    EXPECT_EQ(field(bad, {.fn = LossFn::ppo}), "advantages");
    bad = good;
    bad.tokens = support::random_tokens(513, 96, 1);
    bad.targets = bad.tokens;
    bad.weights.assign(513, 1.0F);
    EXPECT_EQ(field(bad, {}), "model_input");
    EXPECT_FALSE(trainer.forward(nullptr, {}, Loss{}));
}

TEST(Trainer, RefusesAnAdapterOfAnotherModel) {
    auto const model = support::random_model(support::small_config(), 3);
    auto const other = support::random_model(support::small_config(), 4);
    Threads threads{1};
    Trainer trainer{model, threads};
    auto const adapter = Adapter::create(other, {.rank = 4}).value();
    Datum const datum{.tokens = {1}, .targets = {2}, .weights = {1.0F}};
    EXPECT_FALSE(trainer.forward_backward(*adapter, {&datum, 1}, Loss{}));
}

TEST(Losses, HaveTheDefaultsOfTheLocalEngine) {  // C-71
    auto const ppo = make_loss("ppo", {}).value();
    EXPECT_EQ(ppo.clip_low, 0.8);
    EXPECT_EQ(ppo.clip_high, 1.2);
    auto const cispo = make_loss("cispo", {}).value();
    EXPECT_EQ(cispo.clip_low, 0.0);
    EXPECT_EQ(cispo.clip_high, 4.0);
    EXPECT_EQ(make_loss("dro", {{"beta", 0.5}}).value().beta, 0.5);
    EXPECT_EQ(make_loss("dro", {}).error().field(), "beta");
    EXPECT_EQ(make_loss("gspo", {}).error().field(), "loss_fn");
    EXPECT_EQ(make_loss("ppo", {{"beta", 1.0}}).error().field(), "beta");
    EXPECT_EQ(make_loss("ppo", {{"clip_low_threshold", 2.0}}).error().field(),
              "clip_low_threshold");
}

TEST(Losses, CountNothingWhereTheAdvantageIsZeroEvenIfTheRatioOverflows) {  // C-71
    Datum const datum{.logprobs = {-2000.0F}, .advantages = {0.0F}};
    for (auto const fn : {LossFn::importance_sampling, LossFn::ppo, LossFn::cispo}) {
        auto const [loss, slope] = token_loss({.fn = fn}, datum, 0, -1.0);
        EXPECT_EQ(loss, 0.0);
        EXPECT_EQ(slope, 0.0);
    }
}

TEST(Optimizer, RefusesAGradientThatIsNotFiniteAndKeepsTheWeights) {
    auto const model = support::random_model(support::small_config(), 3);
    auto const adapter = Adapter::create(model, {.rank = 2}).value();
    auto const before = all_values(adapter->parameters());
    auto const version = adapter->version();
    all_matrices(adapter->gradients()).front()->values()[3] =
        std::numeric_limits<float>::infinity();
    auto const result = optim_step(*adapter, {}, nullptr);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().field(), "gradient");
    EXPECT_EQ(all_values(adapter->parameters()), before);
    EXPECT_EQ(adapter->version(), version);
    EXPECT_TRUE(optim_step(*adapter, {}, nullptr));
}

TEST(Optimizer, RefusesSettingsOutOfRange) {
    auto const model = support::random_model(support::small_config(), 3);
    auto const adapter = Adapter::create(model, {.rank = 2}).value();
    auto const field = [&](AdamParams const& params) {
        auto const result = optim_step(*adapter, params, nullptr);
        return result ? std::string("accepted") : std::string(result.error().field());
    };
    EXPECT_EQ(field({.learning_rate = -1.0}), "learning_rate");
    EXPECT_EQ(field({.beta1 = 1.0}), "beta1");
    EXPECT_EQ(field({.beta2 = -0.1}), "beta2");
    EXPECT_EQ(field({.eps = 0.0}), "eps");
    EXPECT_EQ(field({.weight_decay = -0.1}), "weight_decay");
    EXPECT_EQ(adapter->steps(), 0);
}

TEST(Optimizer, RefusesSettingsThatAreNotFiniteAsFloats) {
    auto const model = support::random_model(support::small_config(), 3);
    auto const adapter = Adapter::create(model, {.rank = 2}).value();
    auto const said = [&](AdamParams const& params) {
        auto const result = optim_step(*adapter, params, nullptr);
        return result ? std::string("accepted") : std::string(result.error().what());
    };
    EXPECT_EQ(said({.learning_rate = 1e308}),
              "optim_step: learning_rate is 1e+308; use a number from 0 to 3.4e38");
    auto const infinity = std::numeric_limits<double>::infinity();
    auto const nan = std::numeric_limits<double>::quiet_NaN();
    for (auto const value : {1e39, infinity, -infinity, nan}) {
        EXPECT_THAT(said({.learning_rate = value}), HasSubstr("learning_rate is "));
        EXPECT_THAT(said({.beta1 = value}), HasSubstr("beta1 is "));
        EXPECT_THAT(said({.beta2 = value}), HasSubstr("beta2 is "));
        EXPECT_THAT(said({.eps = value}), HasSubstr("eps is "));
        EXPECT_THAT(said({.weight_decay = value}), HasSubstr("weight_decay is "));
        EXPECT_THAT(said({.grad_clip_norm = value}), HasSubstr("grad_clip_norm is "));
    }
    // Below 1 and above 0 as they are written, but not as floats.
    EXPECT_THAT(said({.beta1 = 1.0 - 1e-12}), HasSubstr("beta1 is 1; use"));
    EXPECT_THAT(said({.beta2 = 1.0 - 1e-12}), HasSubstr("beta2 is 1; use"));
    EXPECT_THAT(said({.eps = 1e-60}), HasSubstr("eps is 1e-60; use"));
    EXPECT_EQ(adapter->steps(), 0);
}

/// Weights, moments and steps of an adapter.
auto state_of(Adapter& adapter) {
    return std::tuple{all_values(adapter.parameters()), all_values(adapter.moment1()),
                      all_values(adapter.moment2()), adapter.steps(), adapter.version()};
}

void fill_gradients(Adapter& adapter, float value) {
    for (auto* const matrix : all_matrices(adapter.gradients())) {
        for (auto& gradient : matrix->values()) gradient = value *= -1;
    }
}

TEST(Optimizer, KeepsTheStateBeforeAStepThatMakesWeightsInfinite) {
    auto const model = support::random_model(support::small_config(), 3);
    Threads threads{2};
    for (int const rank : {0, 2, 32}) {
        auto const adapter = Adapter::create(model, {.rank = rank}).value();
        fill_gradients(*adapter, 0.01F);
        (void)optim_step(*adapter, {}, &threads).value();
        for (auto const& params :
             {AdamParams{.learning_rate = 3e38}, AdamParams{.learning_rate = 1e20, .eps = 1e-20},
              AdamParams{.learning_rate = 1e30, .weight_decay = 1e30}}) {
            fill_gradients(*adapter, 1.0F);
            if (params.eps < 1e-15) {
                // A single weight is enough: a first gradient, and a moment that is nearly 0.
                fill_gradients(*adapter, 0.0F);
                all_matrices(adapter->gradients()).back()->values().back() = 1e-23F;
                all_matrices(adapter->moment1()).back()->values().back() = 1e5F;
                all_matrices(adapter->moment2()).back()->values().back() = 0.0F;
            }
            auto const expected = state_of(*adapter);
            auto const result = optim_step(*adapter, params, &threads);
            ASSERT_FALSE(result) << rank << " " << params.learning_rate;
            EXPECT_THAT(result.error().what(), HasSubstr("weights that are NaN or infinity"));
            EXPECT_THAT(result.error().what(), HasSubstr("use a smaller learning_rate"));
            EXPECT_EQ(result.error().field(), "learning_rate");
            EXPECT_EQ(state_of(*adapter), expected) << rank;
            for (auto const gradient : all_values(adapter->gradients())) ASSERT_EQ(gradient, 0.0F);
        }
        EXPECT_TRUE(optim_step(*adapter, {}, &threads)) << "training goes on";
    }
}

TEST(Optimizer, KeepsTheStateBeforeAStepThatMakesMomentsInfinite) {
    auto const model = support::random_model(support::small_config(), 3);
    auto const adapter = Adapter::create(model, {.rank = 2}).value();
    fill_gradients(*adapter, 1e25F);
    auto const before = state_of(*adapter);
    auto const result = optim_step(*adapter, {}, nullptr);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().what(), HasSubstr("moments that are infinite"));
    EXPECT_EQ(state_of(*adapter), before);
    fill_gradients(*adapter, 1e25F);
    EXPECT_TRUE(optim_step(*adapter, {.grad_clip_norm = 1.0}, nullptr));
}

TEST(Optimizer, AcceptsLargeStepsThatStayFinite) {
    auto const model = support::random_model(support::small_config(), 3);
    auto const adapter = Adapter::create(model, {.rank = 2}).value();
    fill_gradients(*adapter, 1e10F);
    // The bounds of all numbers together exceed a float; each number by itself does not.
    ASSERT_TRUE(optim_step(*adapter, {.learning_rate = 1e30, .eps = 1e-30}, nullptr));
    for (auto const weight : all_values(adapter->parameters())) ASSERT_TRUE(std::isfinite(weight));
    EXPECT_EQ(adapter->steps(), 1);
}

TEST(Adapter, BeginsWhereTheModelIs) {
    auto const model = support::random_model(support::small_config(), 3);
    Threads threads{1};
    Trainer trainer{model, threads};
    auto const tokens = support::random_tokens(40, 96, 2);
    auto const plain = trainer.logits(nullptr, tokens).value();
    for (int const rank : {0, 8}) {
        auto const adapter = Adapter::create(model, {.rank = rank, .seed = 1}).value();
        EXPECT_EQ(trainer.logits(adapter.get(), tokens).value(), plain) << rank;
    }
}

TEST(Adapter, StartsFromTheSeedAlone) {
    auto const model = support::random_model(support::small_config(), 3);
    auto const values = [&](std::uint64_t seed) {
        auto const adapter = Adapter::create(model, {.rank = 8, .seed = seed}).value();
        return all_values(adapter->parameters());
    };
    EXPECT_EQ(values(1), values(1));
    EXPECT_NE(values(1), values(2));
}

TEST(Adapter, RefusesConfigurationsThatTrainNothing) {
    auto const model = support::random_model(support::small_config(), 3);
    EXPECT_FALSE(Adapter::create(model, {.rank = -1}));
    EXPECT_FALSE(Adapter::create(model, {.rank = 4000}));
    EXPECT_FALSE(Adapter::create(
        model, {.rank = 4, .train_attn = false, .train_mlp = false, .train_unembed = false}));
}

}  // namespace
}  // namespace tinkxx::engine
