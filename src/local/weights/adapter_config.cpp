#include "local/weights/adapter_config.hpp"

namespace tinkxx::local {

engine::LoraConfig to_lora(Training const& training) {
    return {.rank = static_cast<int>(training.rank),
            .seed = training.seed,
            .train_attn = training.train_attn,
            .train_mlp = training.train_mlp,
            .train_unembed = training.train_unembed};
}

Training to_training(engine::LoraConfig const& config) {
    return {.rank = config.rank,
            .seed = config.seed,
            .train_attn = config.train_attn,
            .train_mlp = config.train_mlp,
            .train_unembed = config.train_unembed};
}

}  // namespace tinkxx::local
