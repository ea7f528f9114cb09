#include "engine/kernels/elementwise.hpp"

#include "engine/kernels/kernel_table.hpp"

#include <bit>
#include <cassert>
#include <cstring>

namespace tinkxx::engine {

void rms_norm(MatrixView y, float* inverse_rms, ConstMatrixView x, float const* weight, float eps) {
    assert(y.rows == x.rows && y.cols == x.cols);
    auto const kernel = kernels().rms_norm;
    for (std::size_t r = 0; r != x.rows; ++r) {
        kernel(y.row(r), inverse_rms == nullptr ? nullptr : inverse_rms + r, x.row(r), weight,
               x.cols, eps);
    }
}

void rms_norm_backward(MatrixView dx, float* dweight, ConstMatrixView dy, ConstMatrixView x,
                       float const* weight, float const* inverse_rms, Write write) {
    assert(dx.rows == x.rows && dx.cols == x.cols && dy.rows == x.rows && dy.cols == x.cols);
    auto const kernel = kernels().rms_norm_backward;
    for (std::size_t r = 0; r != x.rows; ++r) {
        kernel(dx.row(r), dweight, dy.row(r), x.row(r), weight, inverse_rms[r], x.cols,
               write == Write::add);
    }
}

void rope(MatrixView x, std::size_t head_dim, std::span<std::int32_t const> positions,
          ConstMatrixView cosines, ConstMatrixView sines, Rotation rotation) {
    assert(positions.size() == x.rows && head_dim % 2 == 0 && x.cols % head_dim == 0);
    assert(cosines.cols == head_dim / 2 && sines.cols == head_dim / 2);
    auto const kernel = kernels().rope;
    for (std::size_t r = 0; r != x.rows; ++r) {
        auto const position = static_cast<std::size_t>(positions[r]);
        assert(position < cosines.rows && position < sines.rows);
        for (std::size_t at = 0; at != x.cols; at += head_dim) {
            kernel(x.row(r) + at, head_dim / 2, cosines.row(position), sines.row(position),
                   rotation == Rotation::backward);
        }
    }
}

void swiglu(MatrixView y, ConstMatrixView gate, ConstMatrixView up) {
    assert(y.rows == gate.rows && y.cols == gate.cols && y.rows == up.rows && y.cols == up.cols);
    auto const kernel = kernels().swiglu;
    for (std::size_t r = 0; r != y.rows; ++r) kernel(y.row(r), gate.row(r), up.row(r), y.cols);
}

void swiglu_backward(MatrixView dgate, MatrixView dup, ConstMatrixView dy, ConstMatrixView gate,
                     ConstMatrixView up) {
    assert(dgate.rows == gate.rows && dgate.cols == gate.cols && dup.rows == gate.rows &&
           dup.cols == gate.cols && dy.rows == gate.rows && dy.cols == gate.cols &&
           up.rows == gate.rows && up.cols == gate.cols);
    auto const kernel = kernels().swiglu_backward;
    for (std::size_t r = 0; r != dy.rows; ++r) {
        kernel(dgate.row(r), dup.row(r), dy.row(r), gate.row(r), up.row(r), dy.cols);
    }
}

void axpy(float* y, float a, float const* x, std::size_t count) { kernels().axpy(y, a, x, count); }

void scale(float* x, float a, std::size_t count) { kernels().scale(x, a, count); }

void copy(float* y, float const* x, std::size_t count, Write write) {
    if (write == Write::add) {
        kernels().add(y, x, count);
    } else if (count != 0) {
        std::memcpy(y, x, count * sizeof(float));
    }
}

float dot(float const* a, float const* b, std::size_t count) { return kernels().dot(a, b, count); }

void exp(float* y, float const* x, std::size_t count) { kernels().exp(y, x, count); }

double portable_log(double value) noexcept {
    auto const bits = std::bit_cast<std::uint64_t>(value);
    auto exponent = static_cast<int>(bits >> 52) - 1023;
    auto mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
    if (mantissa > 1.4142135623730951) {
        mantissa *= 0.5;
        ++exponent;
    }
    // log m = 2 artanh(s), s = (m - 1)/(m + 1), |s| <= 0.172: eleven terms reach 1e-18.
    auto const s = (mantissa - 1) / (mantissa + 1);
    auto const z = s * s;
    double series = 0;
    for (int n = 21; n > 0; n -= 2) series = series * z + 1.0 / n;
    return exponent * 0.6931471805599453 + 2 * s * series;
}

float SoftmaxState::log_sum_exp() const { return kernels().softmax_log_sum(*this); }

void softmax_update(SoftmaxState& state, float const* logits, std::size_t count) {
    kernels().softmax_update(state, logits, count);
}

void softmax_apply(float* y, float const* x, std::size_t count, float log_sum_exp, float factor) {
    kernels().softmax_apply(y, x, count, log_sum_exp, factor);
}

}  // namespace tinkxx::engine
