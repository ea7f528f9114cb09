#include "engine/train/optimizer.hpp"

#include "engine/failure.hpp"
#include "engine/kernels/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace tinkxx::engine {

namespace {

Result<void> check(AdamParams const& params) {
    auto const fail = [](char const* name, char const* why) {
        return invalid(std::string("adam: ") + name + " must be " + why, name);
    };
    auto const at_least_zero = [](double value) { return value >= 0.0 && std::isfinite(value); };
    if (!at_least_zero(params.learning_rate)) return fail("learning_rate", "at least 0");
    if (!(params.beta1 >= 0.0 && params.beta1 < 1.0)) return fail("beta1", "in [0, 1)");
    if (!(params.beta2 >= 0.0 && params.beta2 < 1.0)) return fail("beta2", "in [0, 1)");
    if (!(params.eps > 0.0 && std::isfinite(params.eps))) return fail("eps", "positive");
    if (!at_least_zero(params.weight_decay)) return fail("weight_decay", "at least 0");
    if (std::isnan(params.grad_clip_norm)) return fail("grad_clip_norm", "a number");
    return {};
}

void clear(std::vector<PackedMatrix*> const& matrices) {
    for (auto* const matrix : matrices) std::ranges::fill(matrix->values(), 0.0F);
}

}  // namespace

Result<StepResult> adamw(OptimizerTensors const& tensors, std::int64_t step,
                         AdamParams const& params, Threads* threads) {
    if (auto const possible = check(params); !possible) return possible.error();
    auto const& weights = tensors.weights;
    auto const& gradients = tensors.gradients;
    double squares = 0.0;
    for (auto const* const matrix : gradients) {
        auto const values = matrix->values();
        squares += sum_of_squares(values.data(), values.size());
    }
    auto const norm = std::sqrt(squares);
    if (!std::isfinite(norm)) {
        clear(gradients);
        return invalid("optim_step: the gradient is not finite; it was dropped", "gradient");
    }
    double factor = 1.0;
    if (params.grad_clip_norm > 0.0) {
        factor = std::min(1.0, params.grad_clip_norm / (norm + 1e-6));  // torch adds the same
    }
    AdamWStep const kernel{
        .learning_rate = static_cast<float>(params.learning_rate),
        .beta1 = static_cast<float>(params.beta1),
        .beta2 = static_cast<float>(params.beta2),
        .eps = static_cast<float>(params.eps),
        .weight_decay = static_cast<float>(params.weight_decay),
        .step = step,
        .gradient_factor = static_cast<float>(factor),
    };
    auto const update = [&](std::size_t i, std::size_t begin, std::size_t end) {
        adamw_step(kernel, tensors.weights[i]->values().data() + begin,
                   tensors.gradients[i]->values().data() + begin,
                   tensors.moment1[i]->values().data() + begin,
                   tensors.moment2[i]->values().data() + begin, end - begin);
    };
    constexpr std::size_t chunk = 1U << 14U;  // elements; each is updated by itself
    for (std::size_t i = 0; i < weights.size(); ++i) {
        auto const count = weights[i]->values().size();
        if (threads == nullptr || count <= chunk) {
            update(i, 0, count);
            continue;
        }
        threads->run((count + chunk - 1) / chunk, [&](std::size_t index, unsigned) {
            update(i, index * chunk, std::min(count, (index + 1) * chunk));
        });
    }
    clear(gradients);
    return StepResult{.grad_norm = norm, .step = step};
}

Result<StepResult> optim_step(Adapter& adapter, AdamParams const& params, Threads* threads) {
    auto result = adamw({.weights = all_matrices(adapter.parameters()),
                         .gradients = all_matrices(adapter.gradients()),
                         .moment1 = all_matrices(adapter.moment1()),
                         .moment2 = all_matrices(adapter.moment2())},
                        adapter.steps() + 1, params, threads);
    if (!result) return result;
    adapter.set_steps(result->step);
    adapter.touch();
    return result;
}

}  // namespace tinkxx::engine
