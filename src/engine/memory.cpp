#include "engine/memory.hpp"

#include "engine/model/pass.hpp"

#include <algorithm>

namespace tinkxx::engine {

std::size_t model_bytes(ModelConfig const& config, ElementType type) {
    Weights shape;
    std::size_t total = 0;
    for (auto const& slot : weight_slots(config, shape)) {
        total += slot.rows * slot.cols * (slot.vector ? sizeof(float) : element_bytes(type));
    }
    return total;
}

std::size_t adapter_bytes(ModelConfig const& config, LoraConfig const& lora) {
    if (lora.rank == 0) return model_bytes(config, ElementType::f32);
    LoraWeights shape;
    std::size_t total = 0;
    for (auto const& slot : lora_slots(config, lora, shape)) {
        total += wide(lora.rank) * (slot.inputs + slot.outputs) * sizeof(float);
    }
    return total;
}

std::size_t training_bytes(ModelConfig const& config, LoraConfig const& lora,
                           TrainOptions const& options, std::size_t threads, std::size_t sequences,
                           std::size_t tokens) {
    if (sequences == 0 || tokens == 0) return 0;
    auto const rank = wide(lora.rank);
    auto const together =
        std::clamp<std::size_t>(options.piece_tokens / tokens, 1, sequences);  // of one piece
    auto const pieces = (sequences + together - 1) / together;
    auto const activations = [&](bool again) {
        return Trainer::activation_bytes(config, rank, together * tokens, together, again);
    };
    auto const kept = activations(false);
    auto const each = kept > options.activation_bytes ? activations(true) : kept;
    // A long piece, a few pieces, or those of all weights are computed by all threads together.
    bool const apart = rank > 0 && together * tokens <= options.piece_tokens && pieces >= threads;
    auto const gradients = rank > 0 ? adapter_bytes(config, lora) : 0;
    return (apart ? threads : 1) * (each + gradients);
}

std::size_t cache_bytes(ModelConfig const& config, std::size_t positions) {
    KvLayout const layout{.layers = wide(config.layers),
                          .kv_heads = wide(config.kv_heads),
                          .head_dim = wide(config.head_dim)};
    auto const pages = (positions + kv_block_positions - 1) / kv_block_positions;
    return pages * layout.page_floats() * sizeof(float);
}

}  // namespace tinkxx::engine
