#include "golden/models/oracle.hpp"

#include "engine/model/checkpoint.hpp"
#include "engine/train/trainer.hpp"

namespace tinkxx::engine::golden {
namespace {

std::filesystem::path scratch(std::string const& name) {
    auto folder = std::filesystem::path(testing::TempDir()) / ("golden_models_" + name);
    std::filesystem::remove_all(folder);
    return folder;
}

TEST(golden_models, AdaptersOfPeftAreReadAndWrittenBack) {
    auto const expected = read_json(root() / "peft/expected.json");
    auto const logits_file = SafetensorsFile::open(root() / "peft/expected.safetensors").value();
    Threads threads{2};
    Figure logits{"logits of a PEFT folder", 1e-4};
    for (auto const& entry : expected.at("adapters").as_array()) {
        auto const name = std::string(entry.at("adapter").as_string());
        SCOPED_TRACE(name);
        auto const model = Model::load(root() / std::string(entry.at("model").as_string())).value();
        Trainer trainer{model, threads};
        auto const read = load_adapter(model, root() / "peft" / name, OptimizerState::without);
        ASSERT_TRUE(read) << read.error().what();
        auto const& adapter = **read;
        EXPECT_EQ(adapter.config().train_attn, entry.at("train_attn").as_bool());
        EXPECT_EQ(adapter.config().train_mlp, entry.at("train_mlp").as_bool());
        EXPECT_EQ(adapter.config().train_unembed, entry.at("train_unembed").as_bool());
        auto const tokens = tokens_of(entry.at("tokens"));
        auto const key = std::string(entry.at("logits").as_string());
        auto const wanted = widen_tensor(logits_file.tensors().at(key), key).value();
        logits.absolute(trainer.logits(&adapter, tokens).value(), wanted, name);

        // What we write has the tensors that PEFT wrote, bit for bit.
        auto const folder = scratch(name);
        auto const base = std::string(entry.at("model").as_string());
        auto const saved = save_adapter(folder, adapter, base, OptimizerState::without);
        ASSERT_TRUE(saved) << saved.error().what();
        auto const ours = SafetensorsFile::open(folder / "adapter_model.safetensors").value();
        auto const theirs =
            SafetensorsFile::open(root() / "peft" / name / "adapter_model.safetensors").value();
        std::size_t compared = 0;
        for (auto const& [tensor, description] : entry.at("tensors").as_object()) {
            std::string const tensor_name{std::string_view(tensor)};
            if (tensor_name.ends_with(".base_layer.weight")) continue;
            auto const& a = ours.tensors().at(tensor_name);
            auto const& b = theirs.tensors().at(tensor_name);
            EXPECT_EQ(a.dtype, b.dtype);
            EXPECT_EQ(a.shape, b.shape);
            EXPECT_TRUE(std::ranges::equal(a.bytes, b.bytes)) << tensor_name;
            ++compared;
        }
        EXPECT_EQ(compared, ours.tensors().size());
        // Every option that we write has the value that PEFT wrote.
        auto const our_config = read_json(folder / "adapter_config.json");
        auto const their_config = read_json(root() / "peft" / name / "adapter_config.json");
        for (auto const& [option, value] : our_config.as_object()) {
            auto const* other = their_config.as_object().if_contains(option);
            ASSERT_NE(other, nullptr) << std::string_view(option);
            if (value.is_number()) {
                EXPECT_EQ(value.to_number<double>(), other->to_number<double>())
                    << std::string_view(option);
            } else {
                EXPECT_EQ(value, *other) << std::string_view(option);
            }
        }
        std::filesystem::remove_all(folder);
    }
}

}  // namespace
}  // namespace tinkxx::engine::golden
