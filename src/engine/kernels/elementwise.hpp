#pragma once

#include "engine/kernels/types.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

// What a transformer computes besides matrix products. Each row depends on its own inputs only, and
// every result has the same bits on every instruction set: sums run in sixteen interleaved lanes
// folded in one fixed order, and exp is our own. Single-threaded; split rows by `Threads`.
// No call allocates. Where it says so, output and input may be the same memory.

namespace tinkxx::engine {

/// y = x / rms(x) * weight, rms over the row with `eps` inside the root. Writes 1/rms of each row
/// to `inverse_rms` unless null. y may be x.
void rms_norm(MatrixView y, float* inverse_rms, ConstMatrixView x, float const* weight, float eps);

/// dx (=|+=) the gradient of `rms_norm`; dweight (unless null) gains its gradient, rows ascending.
/// With `Write::set` dx may be dy.
void rms_norm_backward(MatrixView dx, float* dweight, ConstMatrixView dy, ConstMatrixView x,
                       float const* weight, float const* inverse_rms, Write write);

enum class Rotation : std::uint8_t { forward, backward };

/// Rotates, in place, each head of each row by the angles of the row's position: element i with
/// element i + head_dim/2 (the "rotate half" convention). Rows hold x.cols / head_dim heads. The
/// tables have a row of head_dim/2 values for each position. `backward` turns gradients back.
void rope(MatrixView x, std::size_t head_dim, std::span<std::int32_t const> positions,
          ConstMatrixView cosines, ConstMatrixView sines, Rotation rotation);

/// y = silu(gate) * up. y may be either input.
void swiglu(MatrixView y, ConstMatrixView gate, ConstMatrixView up);
/// Sets the gradients of `swiglu`. dgate may be gate or dy, dup may be up or dy, not both dy.
void swiglu_backward(MatrixView dgate, MatrixView dup, ConstMatrixView dy, ConstMatrixView gate,
                     ConstMatrixView up);

/// y += a * x
void axpy(float* y, float a, float const* x, std::size_t count);
/// x *= a
void scale(float* x, float a, std::size_t count);
/// y (=|+=) x
void copy(float* y, float const* x, std::size_t count, Write write = Write::set);
[[nodiscard]] float dot(float const* a, float const* b, std::size_t count);
/// y = exp(x), within 1 ulp or so; exactly 0 below about -87.3, infinite above about 88.7. y may be
/// x.
void exp(float* y, float const* x, std::size_t count);
/// The natural logarithm of a positive finite value, the same bits everywhere (libm's are not).
[[nodiscard]] double portable_log(double value) noexcept;

/// What of a row of logits has been seen: in each of sixteen lanes the maximum and, relative to it,
/// the sum of the exponentials.
struct SoftmaxState {
    float max[16];
    float sum[16];

    SoftmaxState() noexcept { reset(); }
    void reset() noexcept {
        for (float& m : max) m = -3.402823466e38F;
        for (float& s : sum) s = 0;
    }
    /// log of the sum of exp(logit): a token's logprob is its logit minus this.
    [[nodiscard]] float log_sum_exp() const;
};

/// Takes the next logits of a row into account, in one pass over them. The result depends on how a
/// row is cut into calls only if a cut is not at a multiple of 64. Minus infinity is allowed.
void softmax_update(SoftmaxState& state, float const* logits, std::size_t count);
/// y = exp(x - log_sum_exp) * factor: probabilities, or with a factor of -coefficient the gradient
/// of coefficient * logprob(target), to whose target the caller adds the coefficient. y may be x.
void softmax_apply(float* y, float const* x, std::size_t count, float log_sum_exp, float factor);

}  // namespace tinkxx::engine
