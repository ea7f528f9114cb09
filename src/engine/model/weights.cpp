#include "engine/model/weights.hpp"

namespace tinkxx::engine {

namespace {

constexpr std::array<std::string_view, module_count> module_names{
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

}  // namespace

std::string_view module_name(Module module) noexcept {
    return module_names[static_cast<std::size_t>(module)];
}

std::size_t module_inputs(ModelConfig const& config, Module module) noexcept {
    if (module == Module::o) return wide(config.q_size());
    if (module == Module::down) return wide(config.intermediate_size);
    return wide(config.hidden_size);
}

std::size_t module_outputs(ModelConfig const& config, Module module) noexcept {
    switch (module) {
        case Module::q:
            return wide(config.q_size());
        case Module::k:
        case Module::v:
            return wide(config.kv_size());
        case Module::gate:
        case Module::up:
            return wide(config.intermediate_size);
        case Module::o:
        case Module::down:
            break;
    }
    return wide(config.hidden_size);
}

std::vector<WeightSlot> weight_slots(ModelConfig const& config, Weights& weights) {
    std::vector<WeightSlot> slots;
    auto const hidden = wide(config.hidden_size);
    auto const vocab = wide(config.vocab_size);
    auto const matrix = [&](std::string name, PackedMatrix& to, std::size_t rows,
                            std::size_t cols) {
        slots.push_back({.name = std::move(name), .matrix = &to, .rows = rows, .cols = cols});
    };
    auto const vector = [&](std::string name, PackedVector& to, std::size_t cols) {
        slots.push_back(
            {.name = std::move(name), .matrix = &to, .rows = 1, .cols = cols, .vector = true});
    };
    weights.layers.resize(wide(config.layers));
    matrix("model.embed_tokens.weight", weights.embedding, vocab, hidden);
    for (std::size_t i = 0; i < weights.layers.size(); ++i) {
        auto& layer = weights.layers[i];
        auto const prefix = "model.layers." + std::to_string(i) + ".";
        vector(prefix + "input_layernorm.weight", layer.input_norm, hidden);
        for (auto const module : all_modules) {
            auto const outputs = module_outputs(config, module);
            auto const name = prefix + std::string(module_name(module));
            matrix(name + ".weight", layer[module], outputs, module_inputs(config, module));
            auto const index = static_cast<std::size_t>(module);
            if (config.attention_bias && index < 3) {
                vector(name + ".bias", layer.biases[index], outputs);
            }
        }
        if (config.qk_norm) {
            vector(prefix + "self_attn.q_norm.weight", layer.q_norm, wide(config.head_dim));
            vector(prefix + "self_attn.k_norm.weight", layer.k_norm, wide(config.head_dim));
        }
        vector(prefix + "post_attention_layernorm.weight", layer.post_norm, hidden);
    }
    vector("model.norm.weight", weights.norm, hidden);
    if (!config.tied_embeddings) matrix("lm_head.weight", weights.head, vocab, hidden);
    return slots;
}

PanelArena arena_for(std::span<WeightSlot const> slots, std::size_t element) {
    std::size_t count = 0;
    for (auto const& slot : slots) count += slot.rows * slot.cols;
    return {count * element, slots.size()};
}

Weights zero_weights(ModelConfig const& config) {
    Weights weights;
    auto const slots = weight_slots(config, weights);
    auto arena = arena_for(slots, sizeof(float));
    for (auto const& slot : slots) *slot.matrix = PackedMatrix(slot.rows, slot.cols, &arena);
    return weights;
}

std::vector<PackedMatrix*> all_matrices(Weights& weights) {
    std::vector<PackedMatrix*> result{&weights.embedding};
    for (auto& layer : weights.layers) {
        result.push_back(&layer.input_norm);
        for (std::size_t i = 0; i < module_count; ++i) {
            result.push_back(&layer.modules[i]);
            if (i < 3) result.push_back(&layer.biases[i]);
        }
        for (auto* norm : {&layer.q_norm, &layer.k_norm, &layer.post_norm}) result.push_back(norm);
    }
    result.push_back(&weights.norm);
    result.push_back(&weights.head);
    std::erase_if(result, [](PackedMatrix const* matrix) { return matrix->empty(); });
    return result;
}

}  // namespace tinkxx::engine
