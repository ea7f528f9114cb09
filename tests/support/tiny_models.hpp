#pragma once

#include "engine/common/random.hpp"
#include "engine/kernels/convert.hpp"
#include "engine/model/model.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::engine::support {

/// Tensors by their names in a model file, row by row.
using TensorTable = std::map<std::string, std::vector<float>>;

/// The variants of the architectures, each as small as it can be and still differ.
inline std::vector<std::pair<std::string, ModelConfig>> tiny_configs() {
    ModelConfig base{.vocab_size = 13,
                     .hidden_size = 8,
                     .intermediate_size = 12,
                     .layers = 2,
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = 4,
                     .max_positions = 256,
                     .rms_norm_eps = 1e-5F};
    std::vector<std::pair<std::string, ModelConfig>> result;
    auto llama = base;
    llama.rope = {.theta = 100.0,
                  .llama3 = true,
                  .factor = 4.0,
                  .low_freq_factor = 1.0,
                  .high_freq_factor = 4.0,
                  .original_max_positions = 16.0};
    result.emplace_back("llama3 with RoPE scaling", llama);
    auto tied = base;
    tied.tied_embeddings = true;
    tied.kv_heads = 2;
    result.emplace_back("llama tied, no groups", tied);
    auto qwen2 = base;
    qwen2.architecture = Architecture::qwen2;
    qwen2.attention_bias = true;
    qwen2.tied_embeddings = true;
    result.emplace_back("qwen2 tied", qwen2);
    auto qwen3 = base;
    qwen3.architecture = Architecture::qwen3;
    qwen3.qk_norm = true;
    qwen3.heads = 4;
    qwen3.kv_heads = 2;
    qwen3.head_dim = 6;
    result.emplace_back("qwen3 untied", qwen3);
    return result;
}

/// A larger one for tests of batching, with several pages of context.
inline ModelConfig small_config() {
    return {.architecture = Architecture::qwen3,
            .vocab_size = 96,
            .hidden_size = 48,
            .intermediate_size = 80,
            .layers = 2,
            .heads = 4,
            .kv_heads = 2,
            .head_dim = 16,
            .max_positions = 512,
            .qk_norm = true,
            .tied_embeddings = true};
}

/// Random tensors large enough that every part of the model matters.
inline TensorTable random_tensors(ModelConfig const& config, std::uint64_t seed) {
    TensorTable tensors;
    Weights shape;
    std::uint64_t number = 0;
    for (auto const& slot : weight_slots(config, shape)) {
        ++number;
        bool const norm = slot.name.ends_with("norm.weight");
        std::vector<float> values(slot.rows * slot.cols);
        for (std::size_t i = 0; i < values.size(); ++i) {
            auto const noise = static_cast<float>(2.0 * uniform(seed, number, i) - 1.0);
            values[i] = norm ? 1.0F + 0.3F * noise : 0.6F * noise;
        }
        tensors[slot.name] = std::move(values);
    }
    return tensors;
}

inline Weights weights_of(ModelConfig const& config, TensorTable const& tensors) {
    Weights weights;
    for (auto const& slot : weight_slots(config, weights)) {
        *slot.matrix = PackedMatrix({.type = ElementType::f32,
                                     .data = tensors.at(slot.name).data(),
                                     .rows = slot.rows,
                                     .cols = slot.cols});
    }
    return weights;
}

inline std::shared_ptr<Model const> model_of(ModelConfig const& config,
                                             TensorTable const& tensors) {
    return std::make_shared<Model const>(config, weights_of(config, tensors));
}

inline std::shared_ptr<Model const> random_model(ModelConfig const& config, std::uint64_t seed) {
    return model_of(config, random_tensors(config, seed));
}

/// The same with matrices rounded to bfloat16, whose products may take another path.
inline std::shared_ptr<Model const> random_bf16_model(ModelConfig const& config,
                                                      std::uint64_t seed) {
    auto weights = weights_of(config, random_tensors(config, seed));
    for (auto const& slot : weight_slots(config, weights)) {
        if (slot.vector) continue;
        std::vector<float> values(slot.rows * slot.cols);
        slot.matrix->unpack(values.data());
        std::vector<std::uint16_t> rounded(values.size());
        narrow(rounded.data(), ElementType::bf16, values.data(), values.size());
        *slot.matrix = PackedMatrix({.type = ElementType::bf16,
                                     .data = rounded.data(),
                                     .rows = slot.rows,
                                     .cols = slot.cols});
    }
    return std::make_shared<Model const>(config, std::move(weights));
}

inline std::vector<std::int32_t> random_tokens(std::size_t count, int vocab, std::uint64_t seed) {
    std::vector<std::int32_t> tokens(count);
    for (std::size_t i = 0; i < count; ++i) {
        tokens[i] = static_cast<std::int32_t>(uniform(seed, 77, i) * vocab);
    }
    return tokens;
}

inline std::vector<float> rows_of(PackedMatrix const& matrix) {
    std::vector<float> values(matrix.outputs() * matrix.inputs());
    matrix.unpack(values.data());
    return values;
}

}  // namespace tinkxx::engine::support
