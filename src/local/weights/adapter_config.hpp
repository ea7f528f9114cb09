#pragma once

#include "engine/model/lora.hpp"
#include "local/store/rows.hpp"

namespace tinkxx::local {

/// How a model is trained, in the words of the engine and in those of rows.
[[nodiscard]] engine::LoraConfig to_lora(Training const& training);
[[nodiscard]] Training to_training(engine::LoraConfig const& config);

}  // namespace tinkxx::local
