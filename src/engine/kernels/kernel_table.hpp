#pragma once

#include "engine/kernels/attention.hpp"
#include "engine/kernels/elementwise.hpp"
#include "engine/kernels/isa/isa.hpp"
#include "engine/kernels/types.hpp"

#include <cstddef>
#include <cstdint>

// What each instruction set implements. The public functions check, split and call these; tests
// call them side by side. Nothing here has an inline function: the files of one instruction set
// include it, and such a function could end up with instructions that an older CPU lacks.

namespace tinkxx::engine {

// Bytes, since a file's elements may lie at any address.
struct Bf16 {
    unsigned char bytes[2];
};
struct F16 {
    unsigned char bytes[2];
};

/// One or several neighbouring panels times some rows: y (=|+=) x · wᵀ (+ bias).
struct ForwardArgs {
    float* y;
    std::size_t y_stride;
    float const* x;
    std::size_t x_stride;
    std::size_t rows;
    ElementType type;
    /// The first panel, and the outputs of all of them.
    void const* panels;
    std::size_t outputs;
    std::size_t inputs;
    /// Of the first of these outputs; may be null.
    float const* bias;
    bool add;
};

/// Some columns [first, first + columns) of dx (=|+=) dy · w over neighbouring panels.
struct BackwardInputArgs {
    /// Column 0 of dx, whatever `first` is.
    float* dx;
    std::size_t dx_stride;
    float const* dy;
    std::size_t dy_stride;
    std::size_t rows;
    ElementType type;
    void const* panels;
    std::size_t outputs;
    std::size_t inputs;
    std::size_t first;
    std::size_t columns;
    bool add;
};

/// c[m×n] (=|+=) a · b of floats. Element (i, r) of a is at a[i * a_row + r * a_step].
struct MultiplyArgs {
    float* c;
    std::size_t c_stride;
    float const* a;
    std::size_t a_row;
    std::size_t a_step;
    /// Element (r, j) is at b[r * b_stride + j], or if `b_transposed` at b[j * b_stride + r].
    float const* b;
    std::size_t b_stride;
    bool b_transposed;
    std::size_t m;
    std::size_t n;
    std::size_t k;
    bool add;
};

struct AdamWConstants {
    float gradient_factor;
    float decay;
    float one_minus_beta1;
    float beta2;
    float one_minus_beta2;
    float root_bias2;
    float eps;
    float step_size;
};

struct KernelTable {
    void (*forward)(ForwardArgs const&);
    void (*backward_input)(BackwardInputArgs const&);
    void (*multiply)(MultiplyArgs const&);

    void (*widen_bf16)(float* to, Bf16 const* from, std::size_t count);
    void (*widen_f16)(float* to, F16 const* from, std::size_t count);
    void (*narrow_bf16)(Bf16* to, float const* from, std::size_t count);
    void (*narrow_f16)(F16* to, float const* from, std::size_t count);

    void (*rms_norm)(float* y, float* inverse_rms, float const* x, float const* weight,
                     std::size_t count, float eps);
    void (*rms_norm_backward)(float* dx, float* dweight, float const* dy, float const* x,
                              float const* weight, float inverse_rms, std::size_t count, bool add);
    void (*rope)(float* x, std::size_t half, float const* cosines, float const* sines, bool back);
    void (*swiglu)(float* y, float const* gate, float const* up, std::size_t count);
    void (*swiglu_backward)(float* dgate, float* dup, float const* dy, float const* gate,
                            float const* up, std::size_t count);
    void (*axpy)(float* y, float a, float const* x, std::size_t count);
    void (*scale)(float* x, float a, std::size_t count);
    void (*add)(float* y, float const* x, std::size_t count);
    float (*dot)(float const* a, float const* b, std::size_t count);
    void (*exp)(float* y, float const* x, std::size_t count);
    void (*softmax_update)(SoftmaxState& state, float const* logits, std::size_t count);
    float (*softmax_log_sum)(SoftmaxState const& state);
    void (*softmax_apply)(float* y, float const* x, std::size_t count, float log_sum_exp,
                          float factor);
    void (*adamw)(AdamWConstants const& constants, float* parameters, float const* gradients,
                  float* moment1, float* moment2, std::size_t count);
    double (*sum_of_squares)(float const* values, std::size_t count);

    void (*attention)(AttentionShape const& shape, float const* q, std::size_t q_stride,
                      KvBlock const* blocks, float* out, std::size_t out_stride, float* log_sums);
    void (*attention_backward)(AttentionShape const& shape, KvBlock const* blocks,
                               AttentionGradient const& gradient);
};

/// The kernels of a set, or null if they are not compiled in. Whether this machine can run them is
/// `isa_supported`.
KernelTable const* kernel_table(Isa isa) noexcept;
/// Those of the chosen set.
KernelTable const& kernels();

}  // namespace tinkxx::engine
