#pragma once

#include <cstddef>
#include <cstdint>

namespace tinkxx::engine {

/// One step of `torch.optim.AdamW`. Same bits on every instruction set.
struct AdamWStep {
    double learning_rate{1e-4};
    double beta1{0.9};
    double beta2{0.95};
    double eps{1e-12};
    double weight_decay{0};
    /// The number of this step, from 1.
    std::int64_t step{1};
    /// Multiplies each gradient first: min(1, limit / norm) when clipping, else 1.
    double gradient_factor{1};
};

/// Updates `count` parameters and their two moments from their gradients.
void adamw_step(AdamWStep const& step, float* parameters, float const* gradients, float* moment1,
                float* moment2, std::size_t count);

/// The sum of squares in float64, in an order that depends on `count` alone. Add the sums of
/// several tensors in a fixed order; the root of that is the global norm.
[[nodiscard]] double sum_of_squares(float const* values, std::size_t count);

}  // namespace tinkxx::engine
