#pragma once

#include "engine/files/model_config.hpp"
#include "engine/kernels/types.hpp"
#include "engine/model/lora.hpp"
#include "engine/train/trainer.hpp"

#include <cstddef>

// Memory that the engine takes, in bytes, as a function of the model and of what is asked of it.
// Beside this there is what results take, and a few hundred bytes for each request.

namespace tinkxx::engine {

/// The weights of a base model whose matrices are stored as `type`. While it is loaded, the mapped
/// files come on top.
std::size_t model_bytes(ModelConfig const& config, ElementType type);

/// The trainable matrices alone: what an adapter takes that is only sampled from. One that is
/// trained takes four times as much: weights, gradients and two moments.
std::size_t adapter_bytes(ModelConfig const& config, LoraConfig const& lora);

/// What a `Trainer` holds after a batch of `sequences` sequences of `tokens` tokens each, beside
/// the adapter.
std::size_t training_bytes(ModelConfig const& config, LoraConfig const& lora,
                           TrainOptions const& options, std::size_t threads, std::size_t sequences,
                           std::size_t tokens);

/// Keys and values of one sequence of so many positions, which share whole pages.
std::size_t cache_bytes(ModelConfig const& config, std::size_t positions);

}  // namespace tinkxx::engine
