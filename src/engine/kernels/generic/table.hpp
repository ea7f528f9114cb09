#pragma once

#include "engine/kernels/generic/attention.hpp"
#include "engine/kernels/generic/elementwise.hpp"
#include "engine/kernels/generic/products.hpp"

namespace tinkxx::engine::TINKXX_ISA {
namespace {

constexpr KernelTable table{
    .forward = forward,
    .backward_input = backward_input,
    .multiply = multiply,
    .widen_bf16 = widen_bf16,
    .widen_f16 = widen_f16,
    .narrow_bf16 = narrow_bf16,
    .narrow_f16 = narrow_f16,
    .rms_norm = rms_norm,
    .rms_norm_backward = rms_norm_backward,
    .rope = rope,
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .axpy = axpy,
    .scale = scale,
    .add = add,
    .dot = dot,
    .exp = exp_array,
    .softmax_update = softmax_update,
    .softmax_log_sum = softmax_log_sum,
    .softmax_apply = softmax_apply,
    .adamw = adamw,
    .sum_of_squares = sum_of_squares,
    .attention = attention,
    .attention_backward = attention_backward,
};

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
