#pragma once

// The AVX-512 intrinsics that the kernels use, in plain C++, so that a machine without AVX-512 can
// still run the code written with them. Included before that code; AVX2 stays what it is.

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tinkxx::engine::emulation {

union alignas(64) Vector {
    float f[16];
    double d[8];
    std::uint32_t u[16];
    std::uint16_t h[32];
};
using Mask = std::uint16_t;

template <class Fn>
Vector floats(Fn fn) {
    Vector r;
    for (int i = 0; i != 16; ++i) r.f[i] = fn(i);
    return r;
}
template <class Fn>
Vector words(Fn fn) {
    Vector r;
    for (int i = 0; i != 16; ++i) r.u[i] = fn(i);
    return r;
}
inline bool has(Mask mask, int lane) { return (mask >> lane & 1) != 0; }

inline Vector load(void const* from) {
    Vector r;
    std::memcpy(&r, from, sizeof r);
    return r;
}
inline void store(void* to, Vector const& a) { std::memcpy(to, &a, sizeof a); }
inline Vector mask_load(Vector const& other, Mask mask, void const* from) {
    auto const* const p = static_cast<float const*>(from);
    return floats([&](int i) { return has(mask, i) ? p[i] : other.f[i]; });
}
inline void mask_store(void* to, Mask mask, Vector const& a) {
    for (int i = 0; i != 16; ++i) {
        if (has(mask, i)) static_cast<float*>(to)[i] = a.f[i];
    }
}
inline Vector set1(float a) {
    return floats([=](int) { return a; });
}
inline Vector set1_word(int a) {
    return words([=](int) { return static_cast<std::uint32_t>(a); });
}
inline Vector zero() { return set1(0); }
inline Vector same(Vector const& a) { return a; }
inline Vector add(Vector const& a, Vector const& b) {
    return floats([&](int i) { return a.f[i] + b.f[i]; });
}
inline Vector sub(Vector const& a, Vector const& b) {
    return floats([&](int i) { return a.f[i] - b.f[i]; });
}
inline Vector mul(Vector const& a, Vector const& b) {
    return floats([&](int i) { return a.f[i] * b.f[i]; });
}
inline Vector div(Vector const& a, Vector const& b) {
    return floats([&](int i) { return a.f[i] / b.f[i]; });
}
inline Vector fma(Vector const& a, Vector const& b, Vector const& c) {
    return floats([&](int i) { return std::fma(a.f[i], b.f[i], c.f[i]); });
}
inline Vector max(Vector const& a, Vector const& b) {
    return floats([&](int i) { return a.f[i] > b.f[i] ? a.f[i] : b.f[i]; });
}
inline Vector min(Vector const& a, Vector const& b) {
    return floats([&](int i) { return a.f[i] < b.f[i] ? a.f[i] : b.f[i]; });
}
inline Vector sqrt(Vector const& a) {
    return floats([&](int i) { return std::sqrt(a.f[i]); });
}
inline Mask unordered(Vector const& a, Vector const& b, int) {
    unsigned mask = 0;
    for (int i = 0; i != 16; ++i) {
        if (std::isnan(a.f[i]) || std::isnan(b.f[i])) mask |= 1U << i;
    }
    return static_cast<Mask>(mask);
}
inline Vector add_words(Vector const& a, Vector const& b) {
    return words([&](int i) { return a.u[i] + b.u[i]; });
}
inline Vector and_words(Vector const& a, Vector const& b) {
    return words([&](int i) { return a.u[i] & b.u[i]; });
}
inline Vector or_words(Vector const& a, Vector const& b) {
    return words([&](int i) { return a.u[i] | b.u[i]; });
}
inline Vector shift_left(Vector const& a, int n) {
    return words([&](int i) { return a.u[i] << n; });
}
inline Vector shift_right(Vector const& a, int n) {
    return words([&](int i) { return a.u[i] >> n; });
}
inline Vector mask_move(Vector const& other, Mask mask, Vector const& a) {
    return words([&](int i) { return has(mask, i) ? a.u[i] : other.u[i]; });
}
inline Vector widen_words(__m256i halves) {
    std::uint16_t h[16];
    std::memcpy(h, &halves, sizeof h);
    return words([&](int i) { return std::uint32_t{h[i]}; });
}
inline __m256i low_halves(Vector const& a) {
    std::uint16_t h[16];
    for (int i = 0; i != 16; ++i) h[i] = static_cast<std::uint16_t>(a.u[i]);
    __m256i r;
    std::memcpy(&r, h, sizeof r);
    return r;
}
inline Vector from_f16(__m256i halves) {
    Vector r;
    _mm256_store_ps(r.f, _mm256_cvtph_ps(_mm256_castsi256_si128(halves)));
    _mm256_store_ps(r.f + 8, _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)));
    return r;
}
inline __m256i to_f16(Vector const& a, int) {
    auto const low = _mm256_cvtps_ph(_mm256_load_ps(a.f), _MM_FROUND_TO_NEAREST_INT);
    auto const high = _mm256_cvtps_ph(_mm256_load_ps(a.f + 8), _MM_FROUND_TO_NEAREST_INT);
    return _mm256_set_m128i(high, low);
}
inline Vector to_doubles(__m256 a) {
    float f[8];
    _mm256_storeu_ps(f, a);
    Vector r;
    for (int i = 0; i != 8; ++i) r.d[i] = static_cast<double>(f[i]);
    return r;
}
inline Vector fma_doubles(Vector const& a, Vector const& b, Vector const& c) {
    Vector r;
    for (int i = 0; i != 8; ++i) r.d[i] = std::fma(a.d[i], b.d[i], c.d[i]);
    return r;
}
inline __m256 low_floats(Vector const& a) { return _mm256_load_ps(a.f); }
inline __m256d half_doubles(Vector const& a, int which) { return _mm256_load_pd(a.d + 4 * which); }
inline float first(Vector const& a) { return a.f[0]; }
/// Lane i is that of `a`, or from 32 on of `b`, which the index names.
inline Vector pick_halves(Vector const& a, Vector const& index, Vector const& b) {
    Vector r;
    for (int i = 0; i != 32; ++i) {
        auto const from = index.h[i] & 63;
        r.h[i] = from < 32 ? a.h[from] : b.h[from - 32];
    }
    return r;
}
/// The same of sixteen floats.
inline Vector pick_floats(Vector const& a, Vector const& index, Vector const& b) {
    return floats([&](int i) {
        auto const from = index.u[i] & 31;
        return from < 16 ? a.f[from] : b.f[from - 16];
    });
}
/// Four halves of a and of b in turn, of each eight from `first` on.
inline Vector interleave(Vector const& a, Vector const& b, int first) {
    Vector r;
    for (int i = 0; i != 32; ++i) {
        auto const from = i / 8 * 8 + first + i % 8 / 2;
        r.h[i] = i % 2 == 0 ? a.h[from] : b.h[from];
    }
    return r;
}
inline Vector interleave_low(Vector const& a, Vector const& b) { return interleave(a, b, 0); }
inline Vector interleave_high(Vector const& a, Vector const& b) { return interleave(a, b, 4); }

}  // namespace tinkxx::engine::emulation

// NOLINTBEGIN(bugprone-reserved-identifier): they stand for the names of the compiler
#define __m512 ::tinkxx::engine::emulation::Vector
#define __m512d ::tinkxx::engine::emulation::Vector
#define __mmask16 ::tinkxx::engine::emulation::Mask
#define _mm512_add_epi32 ::tinkxx::engine::emulation::add_words
#define _mm512_add_ps ::tinkxx::engine::emulation::add
#define _mm512_and_si512 ::tinkxx::engine::emulation::and_words
#define _mm512_castps512_ps256 ::tinkxx::engine::emulation::low_floats
#define _mm512_castps_pd ::tinkxx::engine::emulation::same
#define _mm512_castps_si512 ::tinkxx::engine::emulation::same
#define _mm512_castsi512_ps ::tinkxx::engine::emulation::same
#undef _mm512_cmp_ps_mask
#define _mm512_cmp_ps_mask ::tinkxx::engine::emulation::unordered
#define _mm512_cvtepi32_epi16 ::tinkxx::engine::emulation::low_halves
#define _mm512_cvtepu16_epi32 ::tinkxx::engine::emulation::widen_words
#define _mm512_cvtph_ps ::tinkxx::engine::emulation::from_f16
#define _mm512_cvtps_pd ::tinkxx::engine::emulation::to_doubles
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph ::tinkxx::engine::emulation::to_f16
#define _mm512_cvtss_f32 ::tinkxx::engine::emulation::first
#define _mm512_div_ps ::tinkxx::engine::emulation::div
#undef _mm512_extractf64x4_pd
#define _mm512_extractf64x4_pd ::tinkxx::engine::emulation::half_doubles
#define _mm512_fmadd_pd ::tinkxx::engine::emulation::fma_doubles
#define _mm512_fmadd_ps ::tinkxx::engine::emulation::fma
#define _mm512_loadu_ps ::tinkxx::engine::emulation::load
#define _mm512_loadu_si512 ::tinkxx::engine::emulation::load
#define _mm512_mask_loadu_ps ::tinkxx::engine::emulation::mask_load
#define _mm512_mask_mov_epi32 ::tinkxx::engine::emulation::mask_move
#define _mm512_mask_storeu_ps ::tinkxx::engine::emulation::mask_store
#define _mm512_max_ps ::tinkxx::engine::emulation::max
#define _mm512_min_ps ::tinkxx::engine::emulation::min
#define _mm512_mul_ps ::tinkxx::engine::emulation::mul
#define _mm512_or_si512 ::tinkxx::engine::emulation::or_words
#define _mm512_permutex2var_epi16 ::tinkxx::engine::emulation::pick_halves
#define _mm512_permutex2var_ps ::tinkxx::engine::emulation::pick_floats
#define _mm512_set1_epi32 ::tinkxx::engine::emulation::set1_word
#define _mm512_set1_ps ::tinkxx::engine::emulation::set1
#define _mm512_setzero_pd ::tinkxx::engine::emulation::zero
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 ::tinkxx::engine::emulation::shift_left
#define _mm512_sqrt_ps ::tinkxx::engine::emulation::sqrt
#undef _mm512_srli_epi32
#define _mm512_srli_epi32 ::tinkxx::engine::emulation::shift_right
#define _mm512_storeu_pd ::tinkxx::engine::emulation::store
#define _mm512_storeu_ps ::tinkxx::engine::emulation::store
#define _mm512_storeu_si512 ::tinkxx::engine::emulation::store
#define _mm512_sub_ps ::tinkxx::engine::emulation::sub
#define _mm512_unpackhi_epi16 ::tinkxx::engine::emulation::interleave_high
#define _mm512_unpacklo_epi16 ::tinkxx::engine::emulation::interleave_low
// NOLINTEND(bugprone-reserved-identifier)
