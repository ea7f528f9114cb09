#include "engine/kernels/optimizer.hpp"

#include "engine/kernels/kernel_table.hpp"

#include <cmath>

namespace tinkxx::engine {

namespace {

/// base^n by products alone: libm's pow differs from machine to machine.
double power(double base, std::int64_t n) {
    double result = 1;
    for (; n > 0; n /= 2, base *= base) {
        if (n % 2 != 0) result *= base;
    }
    return result;
}

}  // namespace

void adamw_step(AdamWStep const& step, float* parameters, float const* gradients, float* moment1,
                float* moment2, std::size_t count) {
    // In float64 as PyTorch has them, rounded once.
    AdamWConstants const constants{
        .gradient_factor = static_cast<float>(step.gradient_factor),
        .decay = static_cast<float>(1 - step.learning_rate * step.weight_decay),
        .one_minus_beta1 = static_cast<float>(1 - step.beta1),
        .beta2 = static_cast<float>(step.beta2),
        .one_minus_beta2 = static_cast<float>(1 - step.beta2),
        .root_bias2 = static_cast<float>(std::sqrt(1 - power(step.beta2, step.step))),
        .eps = static_cast<float>(step.eps),
        .step_size = static_cast<float>(step.learning_rate / (1 - power(step.beta1, step.step)))};
    kernels().adamw(constants, parameters, gradients, moment1, moment2, count);
}

double sum_of_squares(float const* values, std::size_t count) {
    return kernels().sum_of_squares(values, count);
}

}  // namespace tinkxx::engine
