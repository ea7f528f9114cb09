#pragma once

#include <tinkxx/result.hpp>

#include "engine/common/threads.hpp"
#include "engine/model/adapter.hpp"

namespace tinkxx::engine {

/// One step of AdamW; the defaults are the service's.
struct AdamParams {
    double learning_rate{1e-4};
    double beta1{0.9};
    double beta2{0.95};
    double eps{1e-12};
    double weight_decay{0.0};
    /// Global norm that gradients are scaled down to; 0: off.
    double grad_clip_norm{0.0};
};

struct StepResult {
    /// Before clipping.
    double grad_norm{0};
    std::int64_t step{0};
};

/// What one step reads and writes; the four lists run in parallel.
struct OptimizerTensors {
    std::vector<PackedMatrix*> weights{};
    std::vector<PackedMatrix*> gradients{};
    std::vector<PackedMatrix*> moment1{};
    std::vector<PackedMatrix*> moment2{};
};

/// Step number `step` (from 1) of AdamW; clears the gradients. Fails as `optim_step`.
Result<StepResult> adamw(OptimizerTensors const& tensors, std::int64_t step,
                         AdamParams const& params, Threads* threads);

/// Applies the gradients gathered since the last step, as `torch.optim.AdamW` does, and clears
/// them. Fails without a change of weights, moments and the number of steps if a setting is out of
/// range, or if a gradient or what the step would make of it is NaN or infinity. The gradients are
/// cleared in the second case, or no later step could succeed.
Result<StepResult> optim_step(Adapter& adapter, AdamParams const& params, Threads* threads);

}  // namespace tinkxx::engine
