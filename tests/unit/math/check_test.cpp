#include "math/check.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tinkxx::math {
namespace {

using Integers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

constexpr auto nan = std::numeric_limits<double>::quiet_NaN();

Datum likelihood() {
    return {.model_input = ModelInput::from_tokens({1, 2, 3}),
            .loss_fn_inputs = {{"target_tokens", {2, 3, 4}}, {"weights", {0, 1, 1}}}};
}
Datum policy() {
    return {.model_input = ModelInput::from_tokens({1, 2}),
            .loss_fn_inputs = {
                {"target_tokens", {2, 3}}, {"logprobs", {-0.5, -1}}, {"advantages", {1, -1}}}};
}

// The problem with the second of two data.
std::optional<ErrorDetails> problem(Datum bad, Loss const& loss) {
    std::vector<Datum> const data{loss.known() == LossFn::cross_entropy ? likelihood() : policy(),
                                  std::move(bad)};
    return data_problem("forward_backward", data, loss);
}

void expect_refused(std::optional<ErrorDetails> const& found, std::string_view field,
                    std::string_view words) {
    ASSERT_TRUE(found) << field;
    EXPECT_EQ(found->kind, ErrorKind::validation);
    EXPECT_EQ(found->category, ErrorCategory::user);
    EXPECT_EQ(found->field, field) << found->message;
    EXPECT_NE(found->message.find(words), std::string::npos) << found->message;
}

TEST(Check, NoDataIsRefused) {  // R-TRAIN-23
    expect_refused(no_data_problem("forward", {}), "data", "forward: no data");
    std::vector<Datum> const one(1);
    EXPECT_FALSE(no_data_problem("forward", one));
}

TEST(Check, DataThatFitTheirLossPass) {  // R-TRAIN-31
    EXPECT_FALSE(problem(likelihood(), LossFn::cross_entropy));
    for (auto const fn :
         {LossFn::importance_sampling, LossFn::ppo, LossFn::cispo, LossFn::dro, LossFn::gspo}) {
        EXPECT_FALSE(problem(policy(), fn)) << to_string(fn);
    }
    auto soft = likelihood();
    soft.loss_fn_inputs = {{"target_tokens", std::vector<Integers>{{1, 2}, {3, 4}, {5, 6}}},
                           {"weights", std::vector<Floats>{{1, 0}, {0, 1}, {1, 1}}}};
    EXPECT_FALSE(problem(soft, LossFn::cross_entropy));
    soft.loss_fn_inputs.set("weights", to_csr(to_tensor_data(soft.loss_fn_inputs.at("weights"))));
    EXPECT_FALSE(problem(soft, LossFn::cross_entropy));
    auto image = likelihood();
    image.model_input.chunks.emplace_back(ImageChunk{});  // nobody knows its length
    EXPECT_FALSE(problem(image, LossFn::cross_entropy));
}

TEST(Check, InputsOfATypedLossMustBeThere) {  // R-TRAIN-31
    auto bad = likelihood();
    bad.loss_fn_inputs.erase("weights");
    expect_refused(problem(bad, LossFn::cross_entropy), "data/1/loss_fn_inputs/weights",
                   "forward_backward: datum 1 has no weights; the loss cross_entropy needs: "
                   "target_tokens, weights");
    auto rl = policy();
    rl.loss_fn_inputs.erase("advantages");
    for (auto const fn : {LossFn::importance_sampling, LossFn::ppo, LossFn::cispo, LossFn::dro,
                          LossFn::gspo, LossFn::stable_reinforce}) {
        auto const found = data_problem("forward", std::vector{rl}, fn);
        expect_refused(found, "data/0/loss_fn_inputs/advantages", "datum 0 has no advantages");
    }
}

TEST(Check, ANameGivenAsTextPassesUnchecked) {  // R-TRAIN-31
    auto bad = likelihood();
    bad.loss_fn_inputs = {{"weights", TensorData{.data = Integers{1}}}};
    EXPECT_FALSE(problem(bad, Loss{"cross_entropy", {{"what", "ever"}}}));
    expect_refused(problem(likelihood(), Loss{""}), "loss_fn", "no name");
}

TEST(Check, SettingsOfATypedLossAreItsOwnFiniteNumbers) {  // R-TRAIN-31, R-TRAIN-39
    expect_refused(problem(policy(), {LossFn::ppo, {{"beta", 1.0}}}), "loss_fn_config/beta",
                   "it has: clip_low_threshold, clip_high_threshold");
    expect_refused(problem(likelihood(), {LossFn::cross_entropy, {{"beta", 1.0}}}),
                   "loss_fn_config/beta", "it has: none");
    expect_refused(problem(policy(), {LossFn::dro, {{"beta", "1"}}}), "loss_fn_config/beta",
                   "is text; it is a number");
    expect_refused(problem(policy(), {LossFn::dro, {{"beta", nan}}}), "loss_fn_config/beta",
                   "is nan; it is a finite number");
    EXPECT_FALSE(problem(policy(), PpoConfig{.clip_low_threshold = 0.8, .clip_high_threshold = 1}));
    EXPECT_FALSE(problem(policy(), DroConfig{.beta = 0.1}));
    expect_refused(problem(policy(), LossFn::custom), "loss_fn_config/loss_id", "loss_id");
    EXPECT_FALSE(problem(policy(), {LossFn::custom, {{"loss_id", "l"}}}));
}

TEST(Check, StableReinforceNeedsSpans) {  // R-TRAIN-31, R-TRAIN-38
    auto const with = policy().with_provenance({{.sequence_id = "s", .length = 2}},
                                               {{.sequence_id = "s", .length = 2}});
    Loss const loss{LossFn::stable_reinforce, {{"kl_coeff", "text"}}};
    EXPECT_FALSE(data_problem("forward", std::vector{with}, loss));
    expect_refused(data_problem("forward", std::vector{with, policy()}, loss),
                   "data/1/model_input_spans", "has no provenance spans");
}

TEST(Check, LengthsAndShapesMustAgree) {  // R-TRAIN-31
    auto bad = likelihood();
    bad.loss_fn_inputs.set("target_tokens", Integers{1, 2});
    expect_refused(problem(bad, LossFn::cross_entropy), "data/1/loss_fn_inputs/target_tokens",
                   "has the shape [2] and the model_input has 3 tokens");
    bad = likelihood();
    bad.loss_fn_inputs.set("weights", Floats{1, 2});
    expect_refused(problem(bad, LossFn::cross_entropy), "data/1/loss_fn_inputs/weights",
                   "has the shape [2] and target_tokens has [3]");
    bad = policy();
    bad.loss_fn_inputs.set("sequence_ratio_mask", Floats{1});
    expect_refused(problem(bad, LossFn::gspo), "data/1/loss_fn_inputs/sequence_ratio_mask",
                   "[1] and target_tokens has [2]");
    bad = policy();
    bad.loss_fn_inputs.set("target_tokens", std::vector<Integers>{{1}, {2}});
    expect_refused(problem(bad, LossFn::ppo), "data/1/loss_fn_inputs/target_tokens",
                   "must have one dimension");
    bad = likelihood();
    bad.loss_fn_inputs.set("target_tokens", TensorData{.data = Integers{1, 2}, .shape = {{3}}});
    expect_refused(problem(bad, LossFn::cross_entropy), "data/1/loss_fn_inputs/target_tokens",
                   "has 2 elements in the shape [3]");
    bad = likelihood();
    bad.model_input.chunks.clear();
    expect_refused(problem(bad, LossFn::cross_entropy), "data/1/model_input", "empty model_input");
}

TEST(Check, ElementTypesAndNumbersMustBeRight) {  // R-TRAIN-31, R-TRAIN-35
    auto bad = likelihood();
    bad.loss_fn_inputs.set("target_tokens", TensorData{.data = Floats{1, 2, 3}});
    expect_refused(problem(bad, LossFn::cross_entropy), "data/1/loss_fn_inputs/target_tokens",
                   "is a tensor of float32; it must be one of int64");
    for (auto const value :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        bad = likelihood();
        bad.loss_fn_inputs.set("weights", Floats{1, value, 1});
        expect_refused(problem(bad, LossFn::cross_entropy), "data/1/loss_fn_inputs/weights",
                       "weights of datum 1 has at 1 the value");
    }
}

TEST(Check, SpansAreCheckedWhateverTheLoss) {  // R-TRAIN-38
    auto bad = policy();
    bad.model_input_spans = {{.sequence_id = "s", .length = 1}};
    bad.loss_fn_input_spans = {{.sequence_id = "s", .length = 2}};
    expect_refused(problem(bad, Loss{"text"}), "data/1/model_input_spans", "datum 1");
}

TEST(Check, ACustomLossNeedsTargetsOnly) {  // R-TRAIN-72
    auto one = likelihood();
    one.loss_fn_inputs.erase("weights");
    one.loss_fn_inputs.set("extra", Floats{1, 2, 3, 4, 5});
    EXPECT_FALSE(custom_data_problem("forward_backward_custom", std::vector{one}));
    one.loss_fn_inputs.erase("target_tokens");
    expect_refused(custom_data_problem("forward_backward_custom", std::vector{one}),
                   "data/0/loss_fn_inputs/target_tokens", "has no target_tokens");
}

TEST(Check, ACustomLossGivesAGradientForEachNumber) {  // R-TRAIN-72
    std::vector<TensorData> const logprobs{{.data = Floats{-1, -2}}, {.data = Floats{-3}}};
    auto const found = [&](CustomLossValue const& value) {
        return custom_value_problem("forward_backward_custom", value, logprobs);
    };
    EXPECT_FALSE(found({.gradient = {{1, 2}, {3}}}));
    expect_refused(found({}), "gradient", "gradients for 0 data; there are 2");
    expect_refused(found({.gradient = {{1, 2}, {}}}), "gradient/1",
                   "datum 1 a gradient of 0 numbers; the datum has 1");
    expect_refused(found({.gradient = {{1, std::numeric_limits<float>::quiet_NaN()}, {3}}}),
                   "gradient/0/1", "at 1 the derivative");
    expect_refused(found({.loss = nan, .gradient = {{1, 2}, {3}}}), "loss", "must be finite");
}

TEST(Check, AdamParamsHaveRanges) {  // R-TRAIN-50, R-TRAIN-51
    AdamParams const defaults;
    EXPECT_EQ(defaults.learning_rate, 1e-4);
    EXPECT_EQ(defaults.beta1, 0.9);
    EXPECT_EQ(defaults.beta2, 0.95);
    EXPECT_EQ(defaults.eps, 1e-12);
    EXPECT_EQ(defaults.weight_decay, 0);
    EXPECT_EQ(defaults.grad_clip_norm, 0);
    EXPECT_NO_THROW(defaults.validate());
    EXPECT_NO_THROW(AdamParams{.learning_rate = 0}.validate());
    EXPECT_NO_THROW(AdamParams{.beta1 = 0}.validate());
    struct Case {
        AdamParams params;
        std::string field;
    };
    for (auto const& [params, field] :
         {Case{{.learning_rate = -1e-9}, "learning_rate"},
          Case{{.learning_rate = nan}, "learning_rate"}, Case{{.beta1 = 1}, "beta1"},
          Case{{.beta1 = -0.1}, "beta1"}, Case{{.beta2 = 1}, "beta2"}, Case{{.eps = 0}, "eps"},
          Case{{.weight_decay = -1}, "weight_decay"},
          Case{{.grad_clip_norm = -1}, "grad_clip_norm"},
          Case{{.grad_clip_norm = 1 / 0.0}, "grad_clip_norm"}}) {
        expect_refused(optimizer_problem("optim_step", params, std::nullopt), field,
                       "optim_step: AdamParams::" + field);
        EXPECT_THROW(params.validate(), ValidationError) << field;
    }
}

TEST(Check, DimuonParamsHaveRanges) {  // R-TRAIN-53
    EXPECT_NO_THROW((DimuonParams{.learning_rate = 0, .grad_clip_norm = -1}.validate()));
    expect_refused(optimizer_problem("optim_step", DimuonParams{}, std::nullopt), "learning_rate",
                   "is not set");
    EXPECT_THROW((DimuonParams{.learning_rate = -1}.validate()), ValidationError);
    EXPECT_THROW((DimuonParams{.learning_rate = 1, .beta1 = 1}.validate()), ValidationError);
    EXPECT_THROW((DimuonParams{.learning_rate = 1, .grad_clip_norm = nan}.validate()),
                 ValidationError);
}

TEST(Check, AStepOfAnotherFamilyIsRefused) {  // R-TRAIN-53
    expect_refused(optimizer_problem("optim_step", AdamParams{}, OptimizerConfig{DimuonConfig{}}),
                   "optimizer_params", "those of adamw; the model was created with dimuon");
    EXPECT_FALSE(optimizer_problem("optim_step", AdamParams{}, OptimizerConfig{AdamConfig{}}));
    EXPECT_FALSE(optimizer_problem("optim_step", AdamParams{}, std::nullopt));
}

TEST(Check, OpenFamiliesHaveANameAndJsonMembers) {  // R-TRAIN-02, R-TRAIN-53
    OpenOptimizer const good{.type = "lion", .members = {{"a", "1"}}};
    EXPECT_FALSE(optimizer_problem("create_model", OptimizerConfig{good}));
    EXPECT_FALSE(optimizer_problem("optim_step", good, OptimizerConfig{good}));
    expect_refused(optimizer_problem("create_model", OptimizerConfig{OpenOptimizer{}}), "type",
                   "is empty");
    expect_refused(
        optimizer_problem("optim_step", OpenOptimizer{.type = "x", .members = {{"a", "text"}}},
                          std::nullopt),
        "members/a", "which is no JSON");
}

TEST(Check, AnAdapterTrainsSomething) {  // R-TRAIN-01
    EXPECT_NO_THROW(LoraConfig{}.validate());
    EXPECT_EQ(LoraConfig{}.rank, 32);
    expect_refused(lora_problem("create_lora_training_client",
                                {.train_unembed = false, .train_mlp = false, .train_attn = false}),
                   "train_mlp", "at least one of");
    EXPECT_THROW(LoraConfig{.rank = -1}.validate(), ValidationError);
}

TEST(Check, ATimeToLiveIsPositive) {  // R-TRAIN-60, R-TRAIN-66
    EXPECT_FALSE(ttl_problem("save_state", std::nullopt));
    EXPECT_FALSE(ttl_problem("save_state", 1));
    expect_refused(ttl_problem("save_state", 0), "ttl_seconds", "save_state: ttl_seconds is 0");
}

}  // namespace
}  // namespace tinkxx::math
