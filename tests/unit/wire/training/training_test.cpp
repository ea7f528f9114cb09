#include "wire/training/training.hpp"

#include <gtest/gtest.h>

namespace tinkxx::wire {
namespace {

TEST(CreateModel, SendsTheAdapterAndTheOptimizerFamily) {  // R-TRAIN-01, R-TRAIN-02, R-WIRE-03
    CreateModel request{.session_id = "S", .model_seq_id = 2, .base_model = "org/tiny"};
    EXPECT_EQ(encode_create_model(request, Members::newest),
              R"({"session_id":"S","model_seq_id":2,"base_model":"org/tiny","lora_config":)"
              R"({"rank":32,"train_unembed":true,"train_mlp":true,"train_attn":true},)"
              R"("optimizer_config":{"type":"adamw"},"type":"create_model"})");
    request.user_metadata = UserMetadata{{"owner", "ada"}};
    request.lora_config = {.rank = 16, .seed = 7, .train_unembed = false, .train_mlp = false};
    request.optimizer_config = DimuonConfig{};
    EXPECT_EQ(encode_create_model(request, Members::newest),
              R"({"session_id":"S","model_seq_id":2,"base_model":"org/tiny",)"
              R"("user_metadata":{"owner":"ada"},"lora_config":{"rank":16,"seed":7,)"
              R"("train_unembed":false,"train_mlp":false,"train_attn":true},)"
              R"("optimizer_config":{"type":"dimuon","version":1},"type":"create_model"})");
}

TEST(CreateModel, LeavesOutWhatOlderServersDoNotKnow) {  // R-WIRE-10
    EXPECT_EQ(
        encode_create_model({.session_id = "S"}, Members::before_0_26).find("optimizer_config"),
        std::string::npos);
    EXPECT_EQ(encode_save_weights({.user_metadata = UserMetadata{}}, Members::before_0_26)
                  .find("user_metadata"),
              std::string::npos);
    EXPECT_EQ(
        encode_save_weights_for_sampler({.user_metadata = UserMetadata{}}, Members::before_0_26)
            .find("user_metadata"),
        std::string::npos);
    EXPECT_EQ(encode_load_weights({.optimizer_config = AdamConfig{}}, Members::before_0_26)
                  .find("optimizer_config"),
              std::string::npos);
}

TEST(CreateModel, OtherFamiliesTravelAsTheyAre) {  // R-TRAIN-02, R-TRAIN-53
    OpenOptimizer const open{.type = "lion", .members = {{"k", R"([1, "a"])"}, {"rate", "0.5"}}};
    EXPECT_NE(encode_create_model({.optimizer_config = open}, Members::newest)
                  .find(R"("optimizer_config":{"k":[1,"a"],"rate":0.5,"type":"lion"})"),
              std::string::npos);
    EXPECT_EQ(encode_optim_step({.model_id = "m", .seq_id = 1, .params = open}),
              R"({"optimizer_params":{"k":[1,"a"],"rate":0.5,"type":"lion"},"model_id":"m",)"
              R"("seq_id":1,"type":"optim_step"})");
    EXPECT_EQ(decode_weights_info(R"({"base_model": "b", "is_lora": true,
                  "optimizer_config": {"type": "lion", "k": [1, "a"], "rate": 0.5}})")
                  .value()
                  .optimizer_config,
              OptimizerConfig{(OpenOptimizer{.type = "lion",
                                             .members = {{"k", R"([1,"a"])"}, {"rate", "0.5"}}})});
    EXPECT_EQ(optimizer_family(OptimizerConfig{open}), "lion");
    EXPECT_EQ(optimizer_family(OptimizerParams{open}), "lion");
    EXPECT_EQ(optimizer_family(OptimizerParams{AdamParams{}}), "adamw");
    EXPECT_EQ(optimizer_family(OptimizerConfig{DimuonConfig{}}), "dimuon");
}

TEST(CreateModel, AnswersTheIdOfTheModel) {  // R-TRAIN-01
    EXPECT_EQ(
        decode_model_created(R"({"model_id": "m-1", "type": "create_model", "x": 1})").value(),
        "m-1");
    EXPECT_EQ(decode_model_created(R"({"model_id": "m-1"})").value(), "m-1");
    for (auto const* json : {R"({"type": "create_model"})", R"({"model_id": 5})",
                             R"({"model_id": "m", "type": "other"})", "[]", "no"}) {
        EXPECT_FALSE(decode_model_created(json)) << json;
    }
}

TEST(ModelInfo, IsReadWithAndWithoutItsMembers) {  // R-TRAIN-65, R-TRAIN-02, R-WIRE-07
    EXPECT_EQ(encode_get_info("m"), R"({"model_id":"m","type":"get_info"})");
    EXPECT_EQ(
        decode_model_info(R"({"type": "get_info", "model_id": "m", "is_lora": true,
                  "lora_rank": 8, "model_name": "x", "optimizer_config": {"type": "dimuon",
                  "version": 2}, "model_data": {"arch": "llama", "model_name": "x",
                  "tokenizer_id": "org/tok:rev:2"}})")
            .value(),
        (ModelInfo{.model_id = "m",
                   .model_data = {.arch = "llama", .model_name = "x", .tokenizer_id = "org/tok"},
                   .is_lora = true,
                   .lora_rank = 8,
                   .model_name = "x",
                   .optimizer_config = DimuonConfig{.version = 2}}));
    EXPECT_EQ(decode_model_info(R"({"model_id": "m", "model_data": {"base_model": "b"}})").value(),
              (ModelInfo{.model_id = "m"}));
    EXPECT_EQ(decode_model_info(R"({"model_id": "m"})").error().field(), "/model_data");
}

TEST(UnloadModel, NamesTheModel) {  // R-TRAIN-65
    EXPECT_EQ(encode_unload_model("m"), R"({"model_id":"m","type":"unload_model"})");
    EXPECT_EQ(decode_model_unloaded(R"({"model_id": "m", "status": "unloaded"})").value(), "m");
}

TEST(OptimStep, SendsAllParametersOfAdam) {  // R-TRAIN-50, R-TRAIN-52
    EXPECT_EQ(encode_optim_step({.model_id = "m", .seq_id = 2, .params = AdamParams{}}),
              R"({"adam_params":{"learning_rate":1e-04,"beta1":0.9,"beta2":0.95,"eps":1e-12,)"
              R"("weight_decay":0,"grad_clip_norm":0},"model_id":"m","seq_id":2,)"
              R"("type":"optim_step"})");
}

TEST(OptimStep, SendsDimuonInTheOtherMember) {  // R-TRAIN-53
    EXPECT_EQ(encode_optim_step(
                  {.model_id = "m", .seq_id = 2, .params = DimuonParams{.learning_rate = 0.02}}),
              R"({"optimizer_params":{"learning_rate":0.02,"beta1":0.9,"grad_clip_norm":0,)"
              R"("type":"dimuon"},"model_id":"m","seq_id":2,"type":"optim_step"})");
}

TEST(OptimStep, AnswersMetricsOrNone) {  // R-TRAIN-52
    EXPECT_EQ(decode_optim_step(R"({"metrics": null})").value(), OptimStepResult{});
    EXPECT_EQ(decode_optim_step("{}").value(), OptimStepResult{});
    EXPECT_EQ(decode_optim_step(R"({"metrics": {"a": "1.5", "skyrl.ai/b": -0.5}})").value(),
              (OptimStepResult{.metrics = MetricValues{{"a", 1.5}, {"skyrl.ai/b", -0.5}}}));
    EXPECT_EQ(decode_optim_step(R"({"metrics": {"a": null}})").error().field(), "/metrics/a");
}

TEST(SaveWeights, SendsWhatIsSet) {  // R-TRAIN-60, R-TRAIN-66, R-WIRE-03
    EXPECT_EQ(encode_save_weights({.model_id = "m", .seq_id = 3, .name = "n"}, Members::newest),
              R"({"model_id":"m","path":"n","seq_id":3,"overwrite":false,"type":"save_weights"})");
    EXPECT_EQ(encode_save_weights({.model_id = "m",
                                   .seq_id = 3,
                                   .name = "n",
                                   .ttl_seconds = 3600,
                                   .overwrite = true,
                                   .user_metadata = UserMetadata{{"a", "b"}}},
                                  Members::newest),
              R"({"model_id":"m","path":"n","seq_id":3,"ttl_seconds":3600,"overwrite":true,)"
              R"("user_metadata":{"a":"b"},"type":"save_weights"})");
    EXPECT_EQ(
        decode_weights_saved(R"({"path": "tinker://r/weights/n", "size_bytes": null})").value(),
        (SaveResult{.path = "tinker://r/weights/n"}));
    EXPECT_FALSE(decode_weights_saved(R"({"type": "save_weights"})"));
    EXPECT_FALSE(decode_weights_saved(R"({"path": null})"));
}

TEST(SaveWeightsForSampler, HasANameOrACounter) {  // R-TRAIN-62, R-WIRE-03
    EXPECT_EQ(encode_save_weights_for_sampler(
                  {.model_id = "m", .seq_id = 4, .name = "n", .ttl_seconds = 60}, Members::newest),
              R"({"model_id":"m","path":"n","seq_id":4,"ttl_seconds":60,)"
              R"("type":"save_weights_for_sampler"})");
    EXPECT_EQ(encode_save_weights_for_sampler(
                  {.model_id = "m", .seq_id = 5, .sampling_session_seq_id = 0}, Members::newest),
              R"({"model_id":"m","sampling_session_seq_id":0,"seq_id":5,)"
              R"("type":"save_weights_for_sampler"})");
}

TEST(SaveWeightsForSampler, AnAnswerWithoutPathAndSessionIsRefused) {  // R-TRAIN-64
    EXPECT_EQ(
        decode_saved_for_sampler(R"({"path": "p", "sampling_session_id": null})").value().path,
        "p");
    EXPECT_EQ(decode_saved_for_sampler(R"({"path": null, "sampling_session_id": "s"})")
                  .value()
                  .sampling_session_id,
              "s");
    auto const neither = decode_saved_for_sampler(R"({"type": "save_weights_for_sampler"})");
    ASSERT_FALSE(neither);
    EXPECT_EQ(neither.error().kind(), ErrorKind::validation);
    EXPECT_EQ(neither.error().field(), "/path");
}

TEST(SaveWeightsExternal, SendsRecipientsAndNeedsAPath) {  // R-TRAIN-67, R-WIRE-09
    EXPECT_EQ(encode_save_weights_external({.model_id = "m", .seq_id = 1, .name = "n"}),
              R"({"model_id":"m","path":"n","seq_id":1,"type":"save_weights_external"})");
    EXPECT_EQ(encode_save_weights_external({.model_id = "m",
                                            .seq_id = 1,
                                            .name = "n",
                                            .ttl_seconds = 9,
                                            .age_recipients = {"age1a", "age1b"}}),
              R"({"model_id":"m","path":"n","seq_id":1,"ttl_seconds":9,)"
              R"("age_encryption_recipients":["age1a","age1b"],"type":"save_weights_external"})");
    EXPECT_EQ(decode_saved_external(R"({"path": "p", "size_bytes": 5})").value(),
              (SaveResult{.path = "p", .size_bytes = 5}));
    EXPECT_EQ(decode_saved_external(R"({"path": null})").error().field(), "/path");
}

TEST(LoadWeights, GoesIntoAModelThatIsThereOrIntoANewOne) {  // R-TRAIN-61, R-TRAIN-82, R-WIRE-03
    EXPECT_EQ(encode_load_weights({.model_id = "m", .seq_id = 1, .path = "p", .optimizer = true},
                                  Members::newest),
              R"({"model_id":"m","seq_id":1,"path":"p","optimizer":true,"type":"load_weights"})");
    EXPECT_EQ(encode_load_weights({.session_id = "S",
                                   .model_seq_id = 0,
                                   .base_model = "b",
                                   .user_metadata = UserMetadata{{"x", "y"}},
                                   .optimizer_config = DimuonConfig{},
                                   .path = "p",
                                   .weights_access_token = "t"},
                                  Members::newest),
              R"({"session_id":"S","model_seq_id":0,"base_model":"b","user_metadata":{"x":"y"},)"
              R"("path":"p","optimizer":false,"optimizer_config":{"type":"dimuon","version":1},)"
              R"("weights_access_token":"t","type":"load_weights"})");
    EXPECT_EQ(decode_weights_loaded("{}").value(), LoadResult{});
    EXPECT_EQ(
        decode_weights_loaded(R"({"path": "p", "type": "load_weights", "model_id": "m"})").value(),
        (LoadResult{.path = "p", .model_id = "m"}));
}

TEST(WeightsInfo, IsReadWithAndWithoutItsMembers) {  // R-TRAIN-81, R-TRAIN-84, R-WIRE-07
    EXPECT_EQ(encode_weights_info("p"), R"({"tinker_path":"p"})");
    EXPECT_EQ(decode_weights_info(R"({"base_model": "b", "is_lora": true, "lora_rank": 8,
                  "train_unembed": true, "train_mlp": false, "train_attn": null})")
                  .value(),
              (WeightsInfo{.base_model = "b",
                           .is_lora = true,
                           .lora_rank = 8,
                           .train_unembed = true,
                           .train_mlp = false}));
    EXPECT_EQ(decode_weights_info(R"({"base_model": "b", "is_lora": false,
                  "optimizer_config": {"type": "dimuon", "version": 1}})")
                  .value()
                  .optimizer_config,
              OptimizerConfig{DimuonConfig{}});
    EXPECT_EQ(decode_weights_info(R"({"base_model": "b"})").error().field(), "/is_lora");
    EXPECT_FALSE(decode_weights_info(R"({"base_model": "b", "is_lora": true,
                  "optimizer_config": {"version": 1}})"));
}

TEST(CopyWeights, NamesSourceAndProject) {  // R-TRAIN-85, R-WIRE-09
    EXPECT_EQ(encode_copy_weights({.source_path = "p", .destination_project_id = "d"}),
              R"({"source_path":"p","destination_project_id":"d"})");
    EXPECT_EQ(
        encode_copy_weights({.source_path = "p", .destination_project_id = "d", .ttl_seconds = 60}),
        R"({"source_path":"p","destination_project_id":"d","ttl_seconds":60})");
    EXPECT_EQ(decode_weights_copied(R"({"tinker_path": "q"})").value(), "q");
}

TEST(Loss, IsNamedByItsTypeOrByText) {  // R-TRAIN-31
    for (auto const fn :
         {LossFn::cross_entropy, LossFn::importance_sampling, LossFn::ppo, LossFn::cispo,
          LossFn::dro, LossFn::gspo, LossFn::stable_reinforce, LossFn::custom}) {
        EXPECT_EQ(parse_loss_fn(to_string(fn)), fn);
        EXPECT_EQ(Loss{fn}.name(), to_string(fn));
        EXPECT_EQ(Loss{fn}.known(), fn);
    }
    EXPECT_EQ(to_string(LossFn::stable_reinforce), "stable_reinforce");
    EXPECT_FALSE(parse_loss_fn("nope"));
    Loss const text = "cross_entropy";
    EXPECT_EQ(text.name(), "cross_entropy");
    EXPECT_FALSE(text.known());
}

TEST(Loss, TypedConfigsSendWhatIsSet) {  // R-TRAIN-31, R-TRAIN-39
    EXPECT_EQ(Loss{PpoConfig{.clip_low_threshold = 0.8}}.config(),
              (LossConfig{{"clip_low_threshold", 0.8}}));
    EXPECT_EQ((Loss{CispoConfig{.clip_low_threshold = 0, .clip_high_threshold = 4}}.config()),
              (LossConfig{{"clip_low_threshold", 0.0}, {"clip_high_threshold", 4.0}}));
    EXPECT_EQ(Loss{CispoConfig{}}.known(), LossFn::cispo);
    EXPECT_EQ(Loss{GspoConfig{.clip_high_threshold = 2}}.known(), LossFn::gspo);
    EXPECT_EQ(Loss{DroConfig{.beta = 0.05}}.config(), (LossConfig{{"beta", 0.05}}));
    EXPECT_EQ(Loss{StableReinforceConfig{.kl_coeff = 0.01}}.config(),
              (LossConfig{{"kl_coeff", 0.01}}));
    EXPECT_TRUE(Loss{DroConfig{}}.config().empty());
}

TEST(TokenizerId, FollowsFromTheModelsName) {  // R-TRAIN-90
    EXPECT_EQ(tokenizer_id("Qwen/Qwen3-8B"), (TokenizerId{.repository = "Qwen/Qwen3-8B"}));
    EXPECT_EQ(tokenizer_id("Qwen/Qwen3-8B:rev"), (TokenizerId{.repository = "Qwen/Qwen3-8B"}));
    EXPECT_EQ(tokenizer_id("org/model/variant/x"), (TokenizerId{.repository = "org/model"}));
    EXPECT_EQ(tokenizer_id("plain"), (TokenizerId{.repository = "plain"}));
    EXPECT_EQ(tokenizer_id("meta-llama/Llama-3.1-8B").repository,
              "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer");
    EXPECT_EQ(tokenizer_id("meta-llama/Llama-2-7b").repository, "meta-llama/Llama-2-7b");
    EXPECT_EQ(tokenizer_id("meta-llama/Llama-3.1-8B", "org/own:rev"),
              (TokenizerId{.repository = "org/own"}));
    EXPECT_EQ(tokenizer_id("org/a", "").repository, "org/a");
}

TEST(TokenizerId, PinsTheRevisionsOfKimi) {  // R-TRAIN-90, R-TRAIN-91
    for (auto const& [name, revision] :
         {std::pair{"moonshotai/Kimi-K2-Thinking", "612681931a8c906ddb349f8ad0f582cb552189cd"},
          std::pair{"moonshotai/Kimi-K2.5", "4d01dfe0332d63057c186e0b262165819efb6611"},
          std::pair{"moonshotai/Kimi-K2.5-text-only", "4d01dfe0332d63057c186e0b262165819efb6611"},
          std::pair{"moonshotai/Kimi-K2.6:x", "b5aabbfb20227ed42becbf5541dbffd213942c58"},
          std::pair{"moonshotai/Kimi-K3", "f831ab66814297da540d832a5235f8e904f29d06"}}) {
        EXPECT_EQ(tokenizer_id(name).revision, revision) << name;
        EXPECT_EQ(tokenizer_id("org/a", name).revision, revision) << name;
    }
    EXPECT_FALSE(tokenizer_id("moonshotai/Kimi-K2-Instruct").revision);
}

TEST(TokenizerId, ModelsWithoutOneSaySo) {  // R-TRAIN-91
    for (auto const* name : {"TML/a", "thinkingmachines/b:c"}) {
        try {
            (void)tokenizer_id(name);
            FAIL() << name;
        } catch (ValidationError const& error) {
            EXPECT_NE(std::string{error.what()}.find("renderer"), std::string::npos);
        }
    }
    EXPECT_EQ(tokenizer_id("TML/a", "org/own").repository, "org/own");
}

}  // namespace
}  // namespace tinkxx::wire
