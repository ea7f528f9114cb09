// Numbers of transformers and PEFT, in float64, for tiny models; see data/README.md. Each test goes
// through every model of the folder, prints each figure and compares it with its limit.
#include "golden/models/oracle.hpp"

#include "engine/train/trainer.hpp"

namespace tinkxx::engine::golden {
namespace {

TEST(golden_models, LogitsEqualThoseOfTransformers) {
    Threads threads{2};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Trainer trainer{model, threads};
        auto const adapter = oracle_adapter(oracle, model, lora_config(oracle));
        Figure plain{"logits", 1e-4};
        Figure adapted{"logits with LoRA", 1e-4};
        for (auto const& sequence : oracle.figures.at("sequences").as_array()) {
            auto const tokens = tokens_of(sequence.at("tokens"));
            auto const where = name + ", " + std::to_string(tokens.size()) + " tokens";
            plain.absolute(trainer.logits(nullptr, tokens).value(),
                           oracle.named(sequence.at("logits")), where);
            if (auto const* wanted = sequence.as_object().if_contains("lora_logits")) {
                adapted.absolute(trainer.logits(adapter.get(), tokens).value(),
                                 oracle.named(*wanted), where);
            }
        }
    }
}

TEST(golden_models, ConfigsOfTransformers4And5AreTheSameModel) {
    for (auto const& name : model_names()) {
        SCOPED_TRACE(name);
        auto const folder = root() / name;
        auto const five = parse_model_config(read_text(folder / "config.json", 1U << 20U).value());
        auto const four =
            parse_model_config(read_text(folder / "config.v4.json", 1U << 20U).value());
        ASSERT_TRUE(five) << five.error().what();
        ASSERT_TRUE(four) << four.error().what();
        EXPECT_EQ(*five, *four);
    }
}

TEST(golden_models, LogprobsAndMostLikelyTokensEqualThoseOfTransformers) {
    Threads threads{2};
    for (auto const& name : model_names()) {
        std::printf("  %s\n", name.c_str());
        Oracle const oracle{name};
        auto const model = Model::load(oracle.folder()).value();
        Trainer trainer{model, threads};
        Figure next{"next_logprobs", 1e-4};
        for (auto const& sequence : oracle.figures.at("sequences").as_array()) {
            auto const* wanted = sequence.as_object().if_contains("next_logprobs");
            if (wanted == nullptr) continue;
            auto const tokens = tokens_of(sequence.at("tokens"));
            Datum datum{.tokens = {tokens.begin(), tokens.end() - 1},
                        .targets = {tokens.begin() + 1, tokens.end()},
                        .weights = std::vector<float>(tokens.size() - 1, 1.0F)};
            auto const result = trainer.forward(nullptr, {&datum, 1}, Loss{}).value();
            next.absolute(result.outputs[0].logprobs, oracle.named(*wanted), name);
        }
    }
}

}  // namespace
}  // namespace tinkxx::engine::golden
