#include "engine/model/checkpoint.hpp"

#include "engine/files/atomic_write.hpp"
#include "engine/train/optimizer.hpp"
#include "engine/train/trainer.hpp"
#include "support/tiny_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

namespace tinkxx::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Checkpoints : public testing::Test {
protected:
    Checkpoints() {
        fs::remove_all(folder);
        fs::create_directories(folder);
    }
    ~Checkpoints() override { fs::remove_all(folder); }

    void train(Adapter& adapter, int steps) {
        Trainer trainer{model, threads};
        for (int i = 0; i < steps; ++i) {
            auto const tokens = support::random_tokens(
                40, model->config().vocab_size, 100 + static_cast<std::uint64_t>(adapter.steps()));
            Datum const datum{
                .tokens = tokens, .targets = tokens, .weights = std::vector<float>(40, 1.0F)};
            (void)trainer.forward_backward(adapter, {&datum, 1}, Loss{}).value();
            (void)optim_step(adapter, {.learning_rate = 1e-2, .weight_decay = 0.1}, &threads)
                .value();
        }
    }
    static std::vector<std::vector<float>> values(Parameters& parameters) {
        std::vector<std::vector<float>> result;
        for (auto const* matrix : all_matrices(parameters)) {
            result.push_back(support::rows_of(*matrix));
        }
        return result;
    }

    fs::path folder = fs::path(testing::TempDir()) /
                      (std::string("checkpoint_") +
                       testing::UnitTest::GetInstance()->current_test_info()->name());
    std::shared_ptr<Model const> model = support::random_model(support::small_config(), 3);
    Threads threads{2};
};

TEST_F(Checkpoints, ContinueToTheLastBitWithTheOptimizersState) {
    for (int const rank : {0, 4}) {
        auto const straight = Adapter::create(model, {.rank = rank, .seed = 7}).value();
        train(*straight, 6);
        auto const begun = Adapter::create(model, {.rank = rank, .seed = 7}).value();
        train(*begun, 3);
        auto const saved = save_adapter(folder / "a", *begun, "base", OptimizerState::with);
        ASSERT_TRUE(saved) << saved.error().what();
        auto const restored = load_adapter(model, folder / "a", OptimizerState::with);
        ASSERT_TRUE(restored) << restored.error().what();
        EXPECT_EQ((*restored)->steps(), 3);
        train(**restored, 3);
        EXPECT_EQ(values((*restored)->parameters()), values(straight->parameters())) << rank;
        EXPECT_EQ(values((*restored)->moment2()), values(straight->moment2())) << rank;
    }
}

TEST_F(Checkpoints, KeepGradientsThatNoStepHasUsed) {
    auto const tokens = support::random_tokens(40, model->config().vocab_size, 8);
    Datum const datum{.tokens = tokens, .targets = tokens, .weights = std::vector<float>(40, 1.0F)};
    Trainer trainer{model, threads};
    for (int const rank : {0, 4}) {
        auto const adapter = Adapter::create(model, {.rank = rank, .seed = 7}).value();
        train(*adapter, 1);
        (void)trainer.forward_backward(*adapter, {&datum, 1}, Loss{}).value();
        ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::with));
        auto const restored = load_adapter(model, folder / "a", OptimizerState::with).value();
        EXPECT_EQ(values(restored->gradients()), values(adapter->gradients())) << rank;
        (void)optim_step(*adapter, {.learning_rate = 1e-2}, nullptr).value();
        (void)optim_step(*restored, {.learning_rate = 1e-2}, nullptr).value();
        EXPECT_EQ(values(restored->parameters()), values(adapter->parameters())) << rank;
    }
}

TEST_F(Checkpoints, ForgetTheOptimizerWhenAskedTo) {
    auto const adapter = Adapter::create(model, {.rank = 4}).value();
    train(*adapter, 2);
    ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::with));
    auto const restored = load_adapter(model, folder / "a", OptimizerState::without).value();
    EXPECT_EQ(restored->steps(), 0);
    EXPECT_FALSE(restored->has_moments());
    EXPECT_EQ(values(restored->parameters()), values(adapter->parameters()));
}

TEST_F(Checkpoints, WithoutAStateCannotBeContinued) {
    auto const adapter = Adapter::create(model, {.rank = 4}).value();
    ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::without));
    auto const restored = load_adapter(model, folder / "a", OptimizerState::with);
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().field(), "optimizer.safetensors");
}

TEST_F(Checkpoints, ReplaceAnOlderOneWhole) {
    auto const first = Adapter::create(model, {.rank = 4, .seed = 1}).value();
    auto const second = Adapter::create(model, {.rank = 2, .seed = 2}).value();
    ASSERT_TRUE(save_adapter(folder / "a", *first, "base", OptimizerState::with));
    ASSERT_TRUE(save_adapter(folder / "a", *second, "base", OptimizerState::without));
    EXPECT_FALSE(fs::exists(folder / "a/optimizer.safetensors"));
    auto const restored = load_adapter(model, folder / "a", OptimizerState::without).value();
    EXPECT_EQ(restored->config().rank, 2);
    // Nothing temporary is left.
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}), 1);
}

TEST_F(Checkpoints, LeaveTheOldOneIfWritingFails) {
    auto const kept = write_file(folder / "sentinel", "old");
    ASSERT_TRUE(kept);
    auto const failed = replace_folder(folder / "b", [](fs::path const& to) -> Result<void> {
        (void)write_file(to / "half", "x");
        return Error{ErrorDetails{.message = "disk full"}};
    });
    EXPECT_FALSE(failed);
    EXPECT_FALSE(fs::exists(folder / "b"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}), 1);
}

TEST_F(Checkpoints, NeverHoldNumbersThatAreNotFinite) {
    for (int const rank : {0, 4}) {
        auto const adapter = Adapter::create(model, {.rank = rank}).value();
        train(*adapter, 1);
        ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::with));
        auto const good = values(adapter->parameters());
        (void)adapter->gradients();
        for (auto* const part : {&adapter->parameters(), &adapter->moment1(), &adapter->moment2(),
                                 &adapter->gradients()}) {
            auto& last = all_matrices(*part).back()->values().back();
            for (auto const bad : {std::numeric_limits<float>::quiet_NaN(),
                                   -std::numeric_limits<float>::infinity()}) {
                auto const kept = std::exchange(last, bad);
                auto const saved =
                    save_adapter(folder / "a", *adapter, "base", OptimizerState::with);
                last = kept;
                ASSERT_FALSE(saved);
                EXPECT_THAT(saved.error().what(), HasSubstr("NaN or infinity"));
                EXPECT_EQ(saved.error().kind(), ErrorKind::request_failed);
            }
        }
        // The older one is there, and nothing else.
        auto const restored = load_adapter(model, folder / "a", OptimizerState::with).value();
        EXPECT_EQ(values(restored->parameters()), good);
        EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}), 1);
        fs::remove_all(folder / "a");
    }
}

TEST_F(Checkpoints, OfWholeModelsAreModelFolders) {
    auto const adapter = Adapter::create(model, {.rank = 0}).value();
    train(*adapter, 1);
    ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::with));
    auto const loaded = Model::load(folder / "a");
    ASSERT_TRUE(loaded) << loaded.error().what();
    Trainer ours{model, threads};
    Trainer theirs{*loaded, threads};
    auto const tokens = support::random_tokens(50, 96, 4);
    EXPECT_EQ(ours.logits(adapter.get(), tokens).value(), theirs.logits(nullptr, tokens).value());
}

TEST_F(Checkpoints, OfAnotherModelAreRefused) {
    auto config = support::small_config();
    config.hidden_size = 32;
    auto const other = support::random_model(config, 3);
    for (int const rank : {0, 4}) {
        auto const adapter = Adapter::create(other, {.rank = rank}).value();
        ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::without));
        EXPECT_FALSE(load_adapter(model, folder / "a", OptimizerState::without)) << rank;
    }
}

TEST_F(Checkpoints, OfPeftWithUnsupportedOptionsAreRefusedByName) {
    auto const adapter = Adapter::create(model, {.rank = 4}).value();
    ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::without));
    auto const load_with = [&](std::string const& text) {
        (void)write_file(folder / "a/adapter_config.json", text);
        auto const result = load_adapter(model, folder / "a", OptimizerState::without);
        return result ? std::string("accepted") : std::string(result.error().field());
    };
    std::string const good = R"("peft_type":"LORA","r":4,"lora_alpha":32)";
    EXPECT_EQ(load_with("{" + good + "}"), "accepted");
    EXPECT_EQ(load_with("{" + good + R"(,"use_dora":true})"), "use_dora");
    EXPECT_EQ(load_with("{" + good + R"(,"use_rslora":true})"), "use_rslora");
    EXPECT_EQ(load_with("{" + good + R"(,"rank_pattern":{"x":2}})"), "rank_pattern");
    EXPECT_EQ(load_with("{" + good + R"(,"bias":"all"})"), "bias");
    EXPECT_EQ(load_with("{" + good + R"(,"modules_to_save":["lm_head"]})"), "modules_to_save");
    EXPECT_EQ(load_with(R"({"peft_type":"IA3"})"), "peft_type");
    EXPECT_EQ(load_with(R"({"peft_type":"LORA","r":0,"lora_alpha":32})"), "r");
    EXPECT_EQ(load_with(R"({"peft_type":"LORA","r":4})"), "lora_alpha");
    EXPECT_EQ(load_with("[1"), "file");
}

TEST_F(Checkpoints, OfPeftWithTensorsTooManyOrTooFewAreRefusedByName) {
    auto const adapter = Adapter::create(model, {.rank = 4}).value();
    ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::with));
    auto const load_with = [&](std::string const& names, std::size_t count) {
        std::string header = "{" + names + "}";
        std::string size(8, '\0');
        size[0] = static_cast<char>(header.size() % 256);
        size[1] = static_cast<char>(header.size() / 256);
        (void)write_file(folder / "a/adapter_model.safetensors",
                         size + header + std::string(4 * count, '\0'));
        auto const result = load_adapter(model, folder / "a", OptimizerState::without);
        return result ? std::string("accepted") : std::string(result.error().what());
    };
    auto const hidden = static_cast<std::size_t>(model->config().hidden_size);
    std::string const layer = "base_model.model.model.layers.0.self_attn.q_proj.";
    auto const tensor = [](std::string const& name, std::string const& shape, std::size_t begin,
                           std::size_t count) {
        return "\"" + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[)" +
               std::to_string(4 * begin) + "," + std::to_string(4 * (begin + count)) + "]}";
    };
    auto const outputs = static_cast<std::size_t>(model->config().q_size());
    auto const a =
        tensor(layer + "lora_A.weight", "[4," + std::to_string(hidden) + "]", 0, 4 * hidden);
    auto const b = tensor(layer + "lora_B.weight", "[" + std::to_string(outputs) + ",4]",
                          4 * hidden, 4 * outputs);
    auto const both = 4 * (hidden + outputs);
    EXPECT_EQ(load_with(a + "," + b, both), "accepted");
    EXPECT_THAT(load_with(a, 4 * hidden), HasSubstr(layer + "lora_B.weight is missing"));
    EXPECT_THAT(load_with(a + "," + b + "," + tensor("extra", "[1]", both, 1), both + 1),
                HasSubstr("tensor extra belongs to nothing in this model"));
    EXPECT_THAT(load_with(tensor("extra", "[1]", 0, 1), 1), HasSubstr("holds no LoRA matrices"));
}

TEST_F(Checkpoints, WithAStateThatLacksSomethingAreRefusedByName) {
    auto const adapter = Adapter::create(model, {.rank = 4}).value();
    train(*adapter, 1);
    ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::with));
    auto const state = [&] {
        for (auto const& entry : fs::directory_iterator(folder / "a")) {
            if (entry.path().extension() == ".safetensors" &&
                entry.path().filename() != "adapter_model.safetensors") {
                return entry.path();
            }
        }
        return fs::path{};
    }();
    std::ifstream file{state, std::ios::binary};
    std::string const whole{std::istreambuf_iterator<char>{file}, {}};
    auto const load_without = [&](std::string const& name, std::string const& instead) {
        auto changed = whole;
        changed.replace(changed.find(name), name.size(), instead);
        (void)write_file(state, changed);
        auto const result = load_adapter(model, folder / "a", OptimizerState::with);
        return result ? std::string("accepted") : std::string(result.error().what());
    };
    EXPECT_EQ(load_without("\"step\"", "\"step\""), "accepted");
    EXPECT_THAT(load_without("\"step\"", "\"stop\""), HasSubstr("step is missing"));
    EXPECT_THAT(load_without("\"moment2.", "\"moment3."), HasSubstr("moment2."));
}

}  // namespace
}  // namespace tinkxx::engine
