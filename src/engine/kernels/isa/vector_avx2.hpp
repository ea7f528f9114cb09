#pragma once

// Sixteen floats as the generic kernels see them, in two AVX registers.

#include "engine/kernels/isa/vector_x86.hpp"
#include "engine/kernels/kernel_table.hpp"

#include <immintrin.h>

namespace tinkxx::engine::TINKXX_ISA {
namespace {

// Twelve registers of sums, two of weights and one of the row's element, of sixteen.
constexpr std::size_t tile_rows = 6;
constexpr std::size_t tile_vectors = 1;
constexpr std::size_t row_panels = 1;

struct V16 {
    __m256 lo;
    __m256 hi;
};

inline V16 load(float const* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline __m256 load8(Bf16 const* p) {
    auto const bits = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline V16 load(Bf16 const* p) { return {load8(p), load8(p + 8)}; }
inline __m256 load8(F16 const* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p)));
}
inline V16 load(F16 const* p) { return {load8(p), load8(p + 8)}; }

inline __m256i lane_mask(std::size_t n) {
    auto const lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
}
inline V16 load_first(float const* p, std::size_t n, float rest) {
    auto const fill = _mm256_set1_ps(rest);
    auto const lo = lane_mask(n);
    auto const hi = lane_mask(n > 8 ? n - 8 : 0);
    return {_mm256_blendv_ps(fill, _mm256_maskload_ps(p, lo), _mm256_castsi256_ps(lo)),
            _mm256_blendv_ps(fill, _mm256_maskload_ps(p + 8, hi), _mm256_castsi256_ps(hi))};
}
inline void store(float* p, V16 a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
inline void store_first(float* p, V16 a, std::size_t n) {
    _mm256_maskstore_ps(p, lane_mask(n), a.lo);
    _mm256_maskstore_ps(p + 8, lane_mask(n > 8 ? n - 8 : 0), a.hi);
}
inline __m256i rounded_bf16(__m256 a) {
    auto const bits = _mm256_castps_si256(a);
    auto const high = _mm256_srli_epi32(bits, 16);
    auto const odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    auto const near = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    auto const quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    auto const nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(near, quiet, nan);
}
inline void store_bf16(Bf16* p, V16 a) {
    // The pack works inside each half; the permutation puts the four quarters in order.
    auto const packed = _mm256_packus_epi32(rounded_bf16(a.lo), rounded_bf16(a.hi));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
inline void store_f16(F16* p, V16 a) {
    auto* const to = reinterpret_cast<__m128i*>(p);
    _mm_storeu_si128(to, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(to + 1, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}

inline V16 set1(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
inline V16 operator+(V16 a, V16 b) {
    return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline V16 operator-(V16 a, V16 b) {
    return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline V16 operator*(V16 a, V16 b) {
    return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline V16 operator/(V16 a, V16 b) {
    return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline V16 fma(V16 a, V16 b, V16 c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline V16 max(V16 a, V16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline V16 min(V16 a, V16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
inline V16 sqrt(V16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
inline __m256 half_power8(__m256 a) {
    auto const shifted = _mm256_slli_epi32(_mm256_castps_si256(a), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(shifted, _mm256_set1_epi32(126 << 23)));
}
inline V16 half_power(V16 a) { return {half_power8(a.lo), half_power8(a.hi)}; }
inline float sum(V16 a) {
    auto const eight = _mm256_add_ps(a.lo, a.hi);
    auto const four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    auto const two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float maximum(V16 a) {
    auto const eight = _mm256_max_ps(a.lo, a.hi);
    auto const four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    auto const two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline float first(V16 a) { return _mm256_cvtss_f32(a.lo); }

struct Squares {
    __m256d v[4]{_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                 _mm256_setzero_pd()};
    void add(V16 a) {
        __m128 const quarters[4]{_mm256_castps256_ps128(a.lo), _mm256_extractf128_ps(a.lo, 1),
                                 _mm256_castps256_ps128(a.hi), _mm256_extractf128_ps(a.hi, 1)};
        for (int i = 0; i != 4; ++i) {
            auto const wide = _mm256_cvtps_pd(quarters[i]);
            v[i] = _mm256_fmadd_pd(wide, wide, v[i]);
        }
    }
    void lanes(double* to) const {
        for (std::size_t i = 0; i != 4; ++i) _mm256_storeu_pd(to + 4 * i, v[i]);
    }
};

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
