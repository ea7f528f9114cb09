#pragma once

// Everything that is not a matrix product, over V16.

#include "engine/kernels/kernel_table.hpp"

namespace tinkxx::engine::TINKXX_ISA {
namespace {

/// Calls whole(i) for each sixteen elements, and last(i, n) for the n < 16 that remain.
template <class Whole, class Last>
inline void sixteens(std::size_t count, Whole whole, Last last) {
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) whole(i);
    if (i != count) last(i, count - i);
}

// ---------------------------------------------------------------------------- exp

/// exp in float: 2^n * exp(r), |r| <= ln(2)/2, by the polynomial of Cephes. Zero below -87.
inline V16 exp(V16 x) {
    // The bound comes first: the second operand, so a NaN, is what remains of an unordered pair.
    x = min(set1(89.0F), max(set1(-87.5F), x));
    auto const magic = set1(12582912.0F);
    auto const t = fma(x, set1(1.44269504F), magic);
    auto const n = t - magic;
    auto r = fma(n, set1(-0.693359375F), x);
    r = fma(n, set1(2.12194440e-4F), r);
    auto p = set1(1.9875691500e-4F);
    p = fma(p, r, set1(1.3981999507e-3F));
    p = fma(p, r, set1(8.3334519073e-3F));
    p = fma(p, r, set1(4.1665795894e-2F));
    p = fma(p, r, set1(1.6666665459e-1F));
    p = fma(p, r, set1(5.0000001201e-1F));
    p = fma(p, r * r, r) + set1(1.0F);
    // Half the power twice: 2^128 is no float, but it is needed just below infinity.
    auto const scaled = p * half_power(t);
    return scaled + scaled;
}
inline float exp(float x) { return first(exp(set1(x))); }

void exp_array(float* y, float const* x, std::size_t count) {
    sixteens(
        count, [&](std::size_t i) { store(y + i, exp(load(x + i))); },
        [&](std::size_t i, std::size_t n) { store_first(y + i, exp(load_first(x + i, n, 0)), n); });
}

// ---------------------------------------------------------------------------- conversions

template <class T>
inline void widen(float* to, T const* from, std::size_t count) {
    sixteens(
        count, [&](std::size_t i) { store(to + i, load(from + i)); },
        [&](std::size_t i, std::size_t n) {
            T rest[16] = {};
            for (std::size_t j = 0; j != n; ++j) rest[j] = from[i + j];
            store_first(to + i, load(rest), n);
        });
}
void widen_bf16(float* to, Bf16 const* from, std::size_t count) { widen(to, from, count); }
void widen_f16(float* to, F16 const* from, std::size_t count) { widen(to, from, count); }

void narrow_bf16(Bf16* to, float const* from, std::size_t count) {
    sixteens(
        count, [&](std::size_t i) { store_bf16(to + i, load(from + i)); },
        [&](std::size_t i, std::size_t n) {
            Bf16 rest[16];
            store_bf16(rest, load_first(from + i, n, 0));
            for (std::size_t j = 0; j != n; ++j) to[i + j] = rest[j];
        });
}
void narrow_f16(F16* to, float const* from, std::size_t count) {
    sixteens(
        count, [&](std::size_t i) { store_f16(to + i, load(from + i)); },
        [&](std::size_t i, std::size_t n) {
            F16 rest[16];
            store_f16(rest, load_first(from + i, n, 0));
            for (std::size_t j = 0; j != n; ++j) to[i + j] = rest[j];
        });
}

// ---------------------------------------------------------------------------- simple

void axpy(float* y, float a, float const* x, std::size_t count) {
    auto const factor = set1(a);
    sixteens(
        count, [&](std::size_t i) { store(y + i, fma(factor, load(x + i), load(y + i))); },
        [&](std::size_t i, std::size_t n) {
            store_first(y + i, fma(factor, load_first(x + i, n, 0), load_first(y + i, n, 0)), n);
        });
}

void scale(float* x, float a, std::size_t count) {
    auto const factor = set1(a);
    sixteens(
        count, [&](std::size_t i) { store(x + i, factor * load(x + i)); },
        [&](std::size_t i, std::size_t n) {
            store_first(x + i, factor * load_first(x + i, n, 0), n);
        });
}

void add(float* y, float const* x, std::size_t count) {
    sixteens(
        count, [&](std::size_t i) { store(y + i, load(y + i) + load(x + i)); },
        [&](std::size_t i, std::size_t n) {
            store_first(y + i, load_first(y + i, n, 0) + load_first(x + i, n, 0), n);
        });
}

float dot(float const* a, float const* b, std::size_t count) {
    auto acc = set1(0);
    sixteens(
        count, [&](std::size_t i) { acc = fma(load(a + i), load(b + i), acc); },
        [&](std::size_t i, std::size_t n) {
            acc = fma(load_first(a + i, n, 0), load_first(b + i, n, 0), acc);
        });
    return sum(acc);
}

double sum_of_squares(float const* values, std::size_t count) {
    Squares squares;
    sixteens(
        count, [&](std::size_t i) { squares.add(load(values + i)); },
        [&](std::size_t i, std::size_t n) { squares.add(load_first(values + i, n, 0)); });
    double lanes[16];
    squares.lanes(lanes);
    for (int n = 8; n != 0; n /= 2) {
        for (int i = 0; i != n; ++i) lanes[i] += lanes[i + n];
    }
    return lanes[0];
}

// ---------------------------------------------------------------------------- norm

void rms_norm(float* y, float* inverse_rms, float const* x, float const* weight, std::size_t count,
              float eps) {
    auto const mean = dot(x, x, count) / static_cast<float>(count);
    auto const inverse = first(set1(1) / sqrt(set1(mean + eps)));
    if (inverse_rms != nullptr) *inverse_rms = inverse;
    auto const factor = set1(inverse);
    sixteens(
        count, [&](std::size_t i) { store(y + i, load(x + i) * factor * load(weight + i)); },
        [&](std::size_t i, std::size_t n) {
            store_first(y + i, load_first(x + i, n, 0) * factor * load_first(weight + i, n, 0), n);
        });
}

/// With h = x/rms: dx = (w dy - h mean(w dy h)) / rms, dw += dy h.
void rms_norm_backward(float* dx, float* dweight, float const* dy, float const* x,
                       float const* weight, float inverse_rms, std::size_t count, bool add) {
    auto acc = set1(0);
    sixteens(
        count, [&](std::size_t i) { acc = fma(load(dy + i) * load(weight + i), load(x + i), acc); },
        [&](std::size_t i, std::size_t n) {
            acc = fma(load_first(dy + i, n, 0) * load_first(weight + i, n, 0),
                      load_first(x + i, n, 0), acc);
        });
    auto const inverse = set1(inverse_rms);
    auto const along = set1(-(sum(acc) * inverse_rms * inverse_rms) / static_cast<float>(count));
    auto const gradient = [&](V16 g, V16 w, V16 v) { return fma(along, v, g * w) * inverse; };
    if (dweight != nullptr) {
        sixteens(
            count,
            [&](std::size_t i) {
                auto const h = load(x + i) * inverse;
                store(dweight + i, fma(load(dy + i), h, load(dweight + i)));
            },
            [&](std::size_t i, std::size_t n) {
                auto const h = load_first(x + i, n, 0) * inverse;
                auto const old = load_first(dweight + i, n, 0);
                store_first(dweight + i, fma(load_first(dy + i, n, 0), h, old), n);
            });
    }
    sixteens(
        count,
        [&](std::size_t i) {
            auto const d = gradient(load(dy + i), load(weight + i), load(x + i));
            store(dx + i, add ? load(dx + i) + d : d);
        },
        [&](std::size_t i, std::size_t n) {
            auto const d = gradient(load_first(dy + i, n, 0), load_first(weight + i, n, 0),
                                    load_first(x + i, n, 0));
            store_first(dx + i, add ? load_first(dx + i, n, 0) + d : d, n);
        });
}

// ---------------------------------------------------------------------------- rope

void rope(float* x, std::size_t half, float const* cosines, float const* sines, bool back) {
    auto const sign = set1(back ? -1.0F : 1.0F);
    auto const minus = set1(-1.0F);
    auto* const other = x + half;
    sixteens(
        half,
        [&](std::size_t i) {
            auto const a = load(x + i);
            auto const b = load(other + i);
            auto const c = load(cosines + i);
            auto const s = load(sines + i) * sign;
            store(x + i, fma(a, c, minus * (b * s)));
            store(other + i, fma(b, c, a * s));
        },
        [&](std::size_t i, std::size_t n) {
            auto const a = load_first(x + i, n, 0);
            auto const b = load_first(other + i, n, 0);
            auto const c = load_first(cosines + i, n, 0);
            auto const s = load_first(sines + i, n, 0) * sign;
            store_first(x + i, fma(a, c, minus * (b * s)), n);
            store_first(other + i, fma(b, c, a * s), n);
        });
}

// ---------------------------------------------------------------------------- swiglu

inline V16 sigmoid(V16 x) { return set1(1) / (set1(1) + exp(set1(0) - x)); }

void swiglu(float* y, float const* gate, float const* up, std::size_t count) {
    auto const value = [](V16 g, V16 u) { return g * sigmoid(g) * u; };
    sixteens(
        count, [&](std::size_t i) { store(y + i, value(load(gate + i), load(up + i))); },
        [&](std::size_t i, std::size_t n) {
            store_first(y + i, value(load_first(gate + i, n, 0), load_first(up + i, n, 0)), n);
        });
}

void swiglu_backward(float* dgate, float* dup, float const* dy, float const* gate, float const* up,
                     std::size_t count) {
    struct Both {
        V16 gate;
        V16 up;
    };
    auto const gradients = [](V16 d, V16 g, V16 u) -> Both {
        auto const s = sigmoid(g);
        // silu' = s + g s (1 - s)
        auto const slope = fma(g * s, set1(1) - s, s);
        return {d * u * slope, d * (g * s)};
    };
    sixteens(
        count,
        [&](std::size_t i) {
            auto const both = gradients(load(dy + i), load(gate + i), load(up + i));
            store(dgate + i, both.gate);
            store(dup + i, both.up);
        },
        [&](std::size_t i, std::size_t n) {
            auto const both = gradients(load_first(dy + i, n, 0), load_first(gate + i, n, 0),
                                        load_first(up + i, n, 0));
            store_first(dgate + i, both.gate, n);
            store_first(dup + i, both.up, n);
        });
}

// ---------------------------------------------------------------------------- softmax

constexpr float lowest = -3.402823466e38F;
constexpr float minus_infinity = -__builtin_huge_valf();

void softmax_update(SoftmaxState& state, float const* logits, std::size_t count) {
    auto top = load(state.max);
    auto total = load(state.sum);
    auto const take = [&](V16 a, V16 b, V16 c, V16 d) {
        auto const higher = max(top, max(max(a, b), max(c, d)));
        auto const old = total * exp(top - higher);
        // A fixed shape, so that the four are independent.
        total = old + ((exp(a - higher) + exp(b - higher)) + (exp(c - higher) + exp(d - higher)));
        top = higher;
    };
    std::size_t i = 0;
    for (; i + 64 <= count; i += 64) {
        take(load(logits + i), load(logits + i + 16), load(logits + i + 32), load(logits + i + 48));
    }
    if (i != count) {
        auto const rest = [&](std::size_t skip) {
            auto const left = count - i > skip ? count - i - skip : 0;
            if (left >= 16) return load(logits + i + skip);
            return load_first(logits + i + (left == 0 ? 0 : skip), left, minus_infinity);
        };
        take(rest(0), rest(16), rest(32), rest(48));
    }
    store(state.max, top);
    store(state.sum, total);
}

float softmax_log_sum(SoftmaxState const& state) {
    auto const top = load(state.max);
    auto const highest = maximum(top);
    auto const total = sum(load(state.sum) * exp(top - set1(highest)));
    return static_cast<float>(static_cast<double>(highest) +
                              portable_log(static_cast<double>(total)));
}

void softmax_apply(float* y, float const* x, std::size_t count, float log_sum_exp, float factor) {
    auto const shift = set1(log_sum_exp);
    auto const by = set1(factor);
    sixteens(
        count, [&](std::size_t i) { store(y + i, exp(load(x + i) - shift) * by); },
        [&](std::size_t i, std::size_t n) {
            store_first(y + i, exp(load_first(x + i, n, 0) - shift) * by, n);
        });
}

// ---------------------------------------------------------------------------- adamw

void adamw(AdamWConstants const& k, float* parameters, float const* gradients, float* moment1,
           float* moment2, std::size_t count) {
    auto const factor = set1(k.gradient_factor);
    auto const decay = set1(k.decay);
    auto const one_minus_beta1 = set1(k.one_minus_beta1);
    auto const beta2 = set1(k.beta2);
    auto const one_minus_beta2 = set1(k.one_minus_beta2);
    auto const root_bias2 = set1(k.root_bias2);
    auto const eps = set1(k.eps);
    auto const minus_step = set1(-k.step_size);
    auto const update = [&](V16& p, V16 g, V16& m, V16& v) {
        g = g * factor;
        p = p * decay;
        m = fma(g - m, one_minus_beta1, m);
        v = fma(g * one_minus_beta2, g, v * beta2);
        p = fma(minus_step, m / (sqrt(v) / root_bias2 + eps), p);
    };
    sixteens(
        count,
        [&](std::size_t i) {
            auto p = load(parameters + i);
            auto m = load(moment1 + i);
            auto v = load(moment2 + i);
            update(p, load(gradients + i), m, v);
            store(parameters + i, p);
            store(moment1 + i, m);
            store(moment2 + i, v);
        },
        [&](std::size_t i, std::size_t n) {
            auto p = load_first(parameters + i, n, 0);
            auto m = load_first(moment1 + i, n, 0);
            auto v = load_first(moment2 + i, n, 1);
            update(p, load_first(gradients + i, n, 0), m, v);
            store_first(parameters + i, p, n);
            store_first(moment1 + i, m, n);
            store_first(moment2 + i, v, n);
        });
}

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
