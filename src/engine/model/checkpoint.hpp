#pragma once

#include <tinkxx/result.hpp>

#include "engine/model/adapter.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace tinkxx::engine {

/// Whether the optimizer's moments, its number of steps and gathered gradients go along.
enum class OptimizerState : std::uint8_t { without, with };

/// Writes an adapter as a folder that PEFT reads (`adapter_config.json`,
/// `adapter_model.safetensors`); at rank 0 as a model folder with float32 weights. The state of the
/// optimizer is a further file, `optimizer.safetensors`, with the gradients that no step has used
/// yet. The folder appears at once and whole, in place of an older one, or not at all.
/// `base_name` is what the PEFT configuration calls the model.
/// Fails without a change on the disk if a number is NaN or infinity: nobody could load the folder.
Result<void> save_adapter(std::filesystem::path const& folder, Adapter const& adapter,
                          std::string_view base_name, OptimizerState state);

/// Reads what `save_adapter` or PEFT wrote. With `OptimizerState::with` training goes on to the
/// last bit as if it had not been interrupted; without, the optimizer begins anew.
///
/// Fails with a validation error that names what is wrong: an option of PEFT that would change the
/// arithmetic (DoRA, patterns of ranks, trained biases, …), a tensor of another shape, another
/// model. Adapted matrices may be any subset; those that are absent are zero.
Result<std::unique_ptr<Adapter>> load_adapter(std::shared_ptr<Model const> model,
                                              std::filesystem::path const& folder,
                                              OptimizerState state);

}  // namespace tinkxx::engine
