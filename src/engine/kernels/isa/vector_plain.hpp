#pragma once

// Sixteen floats as the generic kernels see them, in plain C++. Every operation is exactly rounded,
// so it gives what the instructions of the other sets give.

#include "engine/kernels/kernel_table.hpp"

namespace tinkxx::engine::TINKXX_ISA {
namespace {

/// Row tiles of a product: rows, and vectors of sixteen outputs, that stay in registers.
constexpr std::size_t tile_rows = 6;
constexpr std::size_t tile_vectors = 1;
/// Panels that one row is multiplied with at a time.
constexpr std::size_t row_panels = 1;

struct V16 {
    float v[16];
};

template <class Fn>
inline V16 each(Fn fn) {
    V16 r;
    for (int i = 0; i != 16; ++i) r.v[i] = fn(i);
    return r;
}

template <class T>
inline std::uint16_t bits_of(T half) {
    return __builtin_bit_cast(std::uint16_t, half);
}

inline V16 load(float const* p) {
    return each([=](int i) { return p[i]; });
}
inline V16 load(Bf16 const* p) {
    return each([=](int i) {
        return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits_of(p[i])) << 16);
    });
}
inline V16 load(F16 const* p) {
    return each([=](int i) {
        std::uint32_t const bits = bits_of(p[i]);
        std::uint32_t const sign = (bits & 0x8000U) << 16;
        std::uint32_t const exponent = bits >> 10 & 31U;
        std::uint32_t const fraction = bits & 0x3ffU;
        if (exponent == 31) {
            auto const quiet = fraction == 0 ? 0U : 0x400000U;
            return __builtin_bit_cast(float, sign | 0x7f800000U | quiet | fraction << 13);
        }
        if (exponent != 0) {
            return __builtin_bit_cast(float, sign | (exponent + 112) << 23 | fraction << 13);
        }
        auto const tiny = static_cast<float>(fraction) * 0x1p-24F;
        return sign == 0 ? tiny : -tiny;
    });
}
inline V16 load_first(float const* p, std::size_t n, float rest) {
    return each([=](int i) { return static_cast<std::size_t>(i) < n ? p[i] : rest; });
}
inline void store(float* p, V16 a) {
    for (int i = 0; i != 16; ++i) p[i] = a.v[i];
}
inline void store_first(float* p, V16 a, std::size_t n) {
    for (std::size_t i = 0; i != n; ++i) p[i] = a.v[i];
}
inline void store_bf16(Bf16* p, V16 a) {
    for (int i = 0; i != 16; ++i) {
        auto const bits = __builtin_bit_cast(std::uint32_t, a.v[i]);
        auto const nan = (bits & 0x7fffffffU) > 0x7f800000U;
        auto const half = static_cast<std::uint16_t>(
            nan ? (bits >> 16 | 0x40U) : (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
        p[i] = __builtin_bit_cast(Bf16, half);
    }
}
inline void store_f16(F16* p, V16 a) {
    for (int i = 0; i != 16; ++i) {
        auto const bits = __builtin_bit_cast(std::uint32_t, a.v[i]);
        auto const sign = bits >> 16 & 0x8000U;
        auto const magnitude = bits & 0x7fffffffU;
        std::uint32_t half = 0;
        if (magnitude > 0x7f800000U) {
            half = 0x7e00U | (magnitude >> 13 & 0x3ffU);
        } else if (magnitude >= 0x477ff000U) {
            half = 0x7c00U;
        } else if (magnitude >= 0x38800000U) {
            half = (magnitude - 0x38000000U + 0xfffU + (magnitude >> 13 & 1U)) >> 13;
        } else {
            // Adding 0.5 leaves a multiple of 2^-24, rounded to even, in the last bits.
            auto const sum = __builtin_bit_cast(float, magnitude) + 0.5F;
            half = __builtin_bit_cast(std::uint32_t, sum) - 0x3f000000U;
        }
        p[i] = __builtin_bit_cast(F16, static_cast<std::uint16_t>(sign | half));
    }
}

inline V16 set1(float a) {
    return each([=](int) { return a; });
}
inline V16 operator+(V16 const& a, V16 const& b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
}
inline V16 operator-(V16 const& a, V16 const& b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
}
inline V16 operator*(V16 const& a, V16 const& b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
}
inline V16 operator/(V16 const& a, V16 const& b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
}
/// a * b + c, rounded once.
inline V16 fma(V16 const& a, V16 const& b, V16 const& c) {
    return each([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
/// The second if either is NaN, as the instructions have it.
inline V16 max(V16 const& a, V16 const& b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline V16 min(V16 const& a, V16 const& b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline V16 sqrt(V16 const& a) {
    return each([&](int i) { return __builtin_sqrtf(a.v[i]); });
}
/// 2^(n-1) of a float that is 1.5 * 2^23 + n.
inline V16 half_power(V16 const& a) {
    return each([&](int i) {
        auto const bits = __builtin_bit_cast(std::uint32_t, a.v[i]);
        return __builtin_bit_cast(float, (bits << 23) + (126U << 23));
    });
}
/// Sums the lanes: i with i + 8, then + 4, + 2, + 1.
inline float sum(V16 a) {
    for (int n = 8; n != 0; n /= 2) {
        for (int i = 0; i != n; ++i) a.v[i] = a.v[i] + a.v[i + n];
    }
    return a.v[0];
}
inline float maximum(V16 a) {
    for (int n = 8; n != 0; n /= 2) {
        for (int i = 0; i != n; ++i) a.v[i] = a.v[i] > a.v[i + n] ? a.v[i] : a.v[i + n];
    }
    return a.v[0];
}
inline float first(V16 const& a) { return a.v[0]; }

/// Sixteen running sums of squares in float64.
struct Squares {
    double v[16]{};
    void add(V16 const& a) {
        for (int i = 0; i != 16; ++i) {
            // The square of a float is exact in a double, so a fused operation changes nothing.
            v[i] += static_cast<double>(a.v[i]) * static_cast<double>(a.v[i]);
        }
    }
    void lanes(double* to) const {
        for (int i = 0; i != 16; ++i) to[i] = v[i];
    }
};

inline void prefetch(void const*) {}

/// to[j * to_stride + i] = from[i * from_stride + j] for eight by eight floats.
inline void transpose8(float* to, std::size_t to_stride, float const* from,
                       std::size_t from_stride) {
    for (std::size_t i = 0; i != 8; ++i) {
        for (std::size_t j = 0; j != 8; ++j) to[j * to_stride + i] = from[i * from_stride + j];
    }
}

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
