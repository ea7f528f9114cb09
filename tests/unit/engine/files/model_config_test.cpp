#include "engine/files/model_config.hpp"

#include "engine/files/atomic_write.hpp"
#include "engine/model/model.hpp"
#include "support/tiny_models.hpp"

#include "engine/files/safetensors_writer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

namespace tinkxx::engine {
namespace {

namespace fs = std::filesystem;

constexpr char const* good_members = R"("model_type":"llama","hidden_size":32,"vocab_size":64,
    "intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2)";

Result<ModelConfig> with(std::string const& more) {
    return parse_model_config("{" + std::string(good_members) + (more.empty() ? "" : ",") + more +
                              "}");
}

std::string refused(std::string const& more) {
    auto const result = with(more);
    return result ? "accepted" : std::string(result.error().field());
}

TEST(ModelConfigs, HaveTheDefaultsOfTransformers) {
    auto const config = with("").value();
    EXPECT_EQ(config.head_dim, 8);
    EXPECT_EQ(config.rope.theta, 10000.0);
    EXPECT_FALSE(config.rope.llama3);
    EXPECT_FALSE(config.tied_embeddings);
    EXPECT_TRUE(config.eos_tokens.empty());
}

TEST(ModelConfigs, NameTheOptionThatIsNotSupported) {
    EXPECT_EQ(refused(R"("hidden_act":"gelu")"), "hidden_act");
    EXPECT_EQ(refused(R"("attention_dropout":0.1)"), "attention_dropout");
    EXPECT_EQ(refused(R"("attention_bias":true)"), "attention_bias");
    EXPECT_EQ(refused(R"("mlp_bias":true)"), "mlp_bias");
    EXPECT_EQ(refused(R"("sliding_window":4096)"), "sliding_window");
    EXPECT_EQ(refused(R"("use_sliding_window":true)"), "use_sliding_window");
    EXPECT_EQ(refused(R"("layer_types":["full_attention","sliding_attention"])"), "layer_types");
    EXPECT_EQ(refused(R"("quantization_config":{"bits":4})"), "quantization_config");
    EXPECT_EQ(refused(R"("pretraining_tp":2)"), "pretraining_tp");
    EXPECT_EQ(refused(R"("rope_scaling":{"rope_type":"yarn","factor":4.0})"), "rope_type");
    EXPECT_EQ(refused(R"("rope_scaling":{"type":"linear","factor":4.0})"), "rope_type");
    EXPECT_EQ(refused(R"("rope_parameters":{"rope_type":"llama3"})"), "factor");
    EXPECT_EQ(refused(R"("partial_rotary_factor":0.5)"), "partial_rotary_factor");
    EXPECT_EQ(refused(R"("architectures":["LlamaForSequenceClassification"])"), "architectures");
    EXPECT_EQ(refused(R"("sliding_window":null,"rope_scaling":null,"hidden_act":"silu")"),
              "accepted");
}

TEST(ModelConfigs, KeepAQwenWindowThatIsSwitchedOff) {
    auto const config = parse_model_config(
        R"({"model_type":"qwen2","hidden_size":32,"vocab_size":64,"intermediate_size":48,
            "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
            "sliding_window":131072,"use_sliding_window":false,"max_window_layers":28})");
    ASSERT_TRUE(config) << config.error().what();
    EXPECT_TRUE(config->attention_bias);
    EXPECT_FALSE(config->qk_norm);
}

TEST(ModelConfigs, NameTheMemberThatIsWrong) {
    EXPECT_EQ(parse_model_config("{}").error().field(), "model_type");
    EXPECT_EQ(parse_model_config(R"({"model_type":"mixtral"})").error().field(), "model_type");
    EXPECT_EQ(parse_model_config(R"({"model_type":"llama"})").error().field(), "vocab_size");
    EXPECT_FALSE(parse_model_config("[]"));
    EXPECT_FALSE(parse_model_config("{"));
    EXPECT_FALSE(parse_model_config(std::string(2U << 20U, ' ')));
    EXPECT_EQ(refused(R"("head_dim":7)"), "head_dim");
    EXPECT_EQ(refused(R"("head_dim":-8)"), "head_dim");
    EXPECT_EQ(refused(R"("head_dim":"8")"), "head_dim");
    EXPECT_EQ(refused(R"("rms_norm_eps":0)"), "rms_norm_eps");
    EXPECT_EQ(refused(R"("rms_norm_eps":"small")"), "rms_norm_eps");
    EXPECT_EQ(refused(R"("tie_word_embeddings":1)"), "tie_word_embeddings");
    EXPECT_EQ(refused(R"("eos_token_id":64)"), "eos_token_id");
    EXPECT_EQ(refused(R"("eos_token_id":[1,"x"])"), "eos_token_id");
    EXPECT_EQ(refused(R"("max_position_embeddings":0)"), "max_position_embeddings");
    EXPECT_EQ(parse_model_config(
                  R"({"model_type":"llama","hidden_size":32,"vocab_size":64,"intermediate_size":48,
                      "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":3})")
                  .error()
                  .field(),
              "num_key_value_heads");
}

TEST(ModelConfigs, AreReadAsTheyWereWritten) {
    for (auto [name, config] : support::tiny_configs()) {
        config.eos_tokens = {3, 5};
        auto const again = parse_model_config(write_model_config(config, "float32"));
        ASSERT_TRUE(again) << name << again.error().what();
        EXPECT_EQ(*again, config) << name;
    }
}

class ModelFolders : public testing::Test {
protected:
    ModelFolders() {
        fs::remove_all(folder);
        EXPECT_TRUE(
            save_model(folder, config, support::weights_of(config, tensors), ElementType::f32));
    }
    ~ModelFolders() override { fs::remove_all(folder); }

    /// Writes the weights anew, changed.
    void rewrite(support::TensorTable const& table, std::string const& omitted = "",
                 DType dtype = DType::f32) {
        Weights shape;
        std::vector<TensorOut> out;
        for (auto const& slot : weight_slots(config, shape)) {
            if (slot.name == omitted) continue;
            auto const& values = table.at(slot.name);
            out.push_back(
                {.name = slot.name,
                 .dtype = dtype,
                 .shape = slot.vector
                              ? std::vector<std::uint64_t>{values.size()}
                              : std::vector<std::uint64_t>{values.size() / slot.cols, slot.cols},
                 .bytes = std::as_bytes(std::span{values})});
        }
        ASSERT_TRUE(write_safetensors(folder / "model.safetensors", out, {}));
    }
    std::string refused() const {
        auto const result = Model::load(folder);
        return result ? "accepted" : std::string(result.error().field());
    }

    ModelConfig config = support::tiny_configs().back().second;
    support::TensorTable tensors = support::random_tensors(config, 2);
    fs::path folder =
        fs::path(testing::TempDir()) /
        (std::string("model_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ModelFolders, AreReadAsTheyWereWritten) {
    auto const model = Model::load(folder);
    ASSERT_TRUE(model) << model.error().what();
    EXPECT_EQ((*model)->config(), config);
    auto weights = widen_weights(config, (*model)->weights());
    for (auto const& slot : weight_slots(config, weights)) {
        EXPECT_EQ(support::rows_of(*slot.matrix), tensors.at(slot.name)) << slot.name;
    }
    EXPECT_EQ((*model)->bytes(), config.parameters() * 4);
}

TEST_F(ModelFolders, TakeTwoBytesForEachNarrowWeight) {
    ASSERT_TRUE(
        save_model(folder, config, support::weights_of(config, tensors), ElementType::bf16));
    auto const model = Model::load(folder).value();
    // Vectors are widened; they are few.
    EXPECT_LT(model->bytes(), config.parameters() * 3);
    EXPECT_EQ(model->weights().embedding.type(), ElementType::bf16);
}

TEST_F(ModelFolders, NameTheTensorThatIsMissing) {
    rewrite(tensors, "model.layers.1.self_attn.k_norm.weight");
    EXPECT_EQ(refused(), "model.layers.1.self_attn.k_norm.weight");
}

TEST_F(ModelFolders, NameTheTensorOfAnotherShape) {
    auto changed = tensors;
    changed["model.layers.0.mlp.up_proj.weight"].resize(8 * 11);
    rewrite(changed);
    EXPECT_EQ(refused(), "model.layers.0.mlp.up_proj.weight");
}

TEST_F(ModelFolders, NameTheTensorThatHoldsNan) {
    // Our own writer refuses to write it.
    auto const mark = 12345.5F;
    auto changed = tensors;
    changed["lm_head.weight"][17] = mark;
    rewrite(changed);
    auto file = read_text(folder / "model.safetensors", 1U << 20U).value();
    auto const bytes = [](float value) {
        return std::string(reinterpret_cast<char const*>(&value), sizeof value);
    };
    file.replace(file.find(bytes(mark)), sizeof mark,
                 bytes(std::numeric_limits<float>::quiet_NaN()));
    ASSERT_TRUE(write_file(folder / "model.safetensors", file));
    EXPECT_EQ(refused(), "lm_head.weight");
}

TEST_F(ModelFolders, NameTheTensorOfAnotherType) {
    rewrite(tensors, "", DType::i32);
    EXPECT_EQ(refused(), "model.embed_tokens.weight");
}

TEST_F(ModelFolders, AddTheEndTokensOfTheGenerationConfig) {
    ASSERT_TRUE(write_file(folder / "generation_config.json", R"({"eos_token_id":[7,2]})"));
    EXPECT_EQ(Model::load(folder).value()->config().eos_tokens, (std::vector<int>{7, 2}));
    ASSERT_TRUE(write_file(folder / "generation_config.json", "{"));
    EXPECT_EQ(refused(), "generation_config.json");
}

TEST_F(ModelFolders, WithoutAConfigAreRefused) {
    fs::remove(folder / "config.json");
    EXPECT_EQ(refused(), "config.json");
}

}  // namespace
}  // namespace tinkxx::engine
