#include "engine/model/lora.hpp"

#include "engine/common/failure.hpp"
#include "engine/common/random.hpp"

#include <cmath>

namespace tinkxx::engine {

Result<void> check(LoraConfig const& config) {
    if (config.rank < 0 || config.rank > 1024) {
        return invalid("lora: rank " + std::to_string(config.rank) + " is not in 0 … 1024", "rank");
    }
    if (!(config.alpha > 0.0F && config.alpha < 1e6F)) {
        return invalid("lora: alpha must be positive", "alpha");
    }
    if (!config.train_attn && !config.train_mlp && !config.train_unembed) {
        return invalid("lora: one of train_attn, train_mlp and train_unembed must be set",
                       "train_unembed");
    }
    return {};
}

std::vector<LoraSlot> lora_slots(ModelConfig const& model, LoraConfig const& lora,
                                 LoraWeights& weights) {
    std::vector<LoraSlot> slots;
    weights.layers.resize(static_cast<std::size_t>(model.layers));
    for (std::size_t i = 0; i < weights.layers.size(); ++i) {
        for (auto const module : all_modules) {
            if (!lora.trains(module)) continue;
            slots.push_back({.module = "model.layers." + std::to_string(i) + "." +
                                       std::string(module_name(module)),
                             .pair = &weights.layers[i][module],
                             .inputs = module_inputs(model, module),
                             .outputs = module_outputs(model, module)});
        }
    }
    if (lora.train_unembed) {
        slots.push_back({.module = "lm_head",
                         .pair = &weights.head,
                         .inputs = static_cast<std::size_t>(model.hidden_size),
                         .outputs = static_cast<std::size_t>(model.vocab_size)});
    }
    return slots;
}

LoraWeights zero_lora(ModelConfig const& model, LoraConfig const& lora) {
    LoraWeights weights;
    auto const rank = static_cast<std::size_t>(lora.rank);
    auto const slots = lora_slots(model, lora, weights);
    std::size_t count = 0;
    for (auto const& slot : slots) count += rank * (slot.inputs + slot.outputs);
    PanelArena arena{count * sizeof(float), 2 * slots.size()};
    for (auto const& slot : slots) {
        slot.pair->a = PackedMatrix(rank, slot.inputs, &arena);
        slot.pair->b = PackedMatrix(slot.outputs, rank, &arena);
    }
    return weights;
}

LoraWeights fresh_lora(ModelConfig const& model, LoraConfig const& lora) {
    auto weights = zero_lora(model, lora);
    std::uint64_t number = 0;
    std::vector<float> values;
    for (auto const& slot : lora_slots(model, lora, weights)) {
        auto& a = slot.pair->a;
        auto const bound = 1.0 / std::sqrt(static_cast<double>(slot.inputs));
        values.resize(a.outputs() * a.inputs());
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<float>((2.0 * uniform(lora.seed, number, i) - 1.0) * bound);
        }
        a.assign({.type = ElementType::f32,
                  .data = values.data(),
                  .rows = a.outputs(),
                  .cols = a.inputs()});
        ++number;
    }
    return weights;
}

std::vector<PackedMatrix*> all_matrices(LoraWeights& weights) {
    std::vector<PackedMatrix*> result;
    auto const add = [&](LoraPair& pair) {
        if (pair.empty()) return;
        result.push_back(&pair.a);
        result.push_back(&pair.b);
    };
    for (auto& layer : weights.layers) {
        for (auto& pair : layer.modules) add(pair);
    }
    add(weights.head);
    return result;
}

}  // namespace tinkxx::engine
