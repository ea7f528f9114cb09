#pragma once

// Sixteen floats as the generic kernels see them, in one AVX-512 register.

#include "engine/kernels/isa/vector_x86.hpp"
#include "engine/kernels/kernel_table.hpp"

#include <immintrin.h>

namespace tinkxx::engine::TINKXX_ISA {
namespace {

// Twenty-four registers of sums and four of weights, of thirty-two.
constexpr std::size_t tile_rows = 6;
constexpr std::size_t tile_vectors = 4;
// One panel is four chains; the two units need eight and more to be busy.
constexpr std::size_t row_panels = 4;

struct V16 {
    __m512 v;
};

inline V16 load(float const* p) { return {_mm512_loadu_ps(p)}; }
inline V16 load(Bf16 const* p) {
    auto const bits = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
inline V16 load(F16 const* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(p)))};
}
inline __mmask16 lane_mask(std::size_t n) { return static_cast<__mmask16>((1U << n) - 1U); }
inline V16 load_first(float const* p, std::size_t n, float rest) {
    return {_mm512_mask_loadu_ps(_mm512_set1_ps(rest), lane_mask(n), p)};
}
inline void store(float* p, V16 a) { _mm512_storeu_ps(p, a.v); }
inline void store_first(float* p, V16 a, std::size_t n) {
    _mm512_mask_storeu_ps(p, lane_mask(n), a.v);
}
inline void store_bf16(Bf16* p, V16 a) {
    auto const bits = _mm512_castps_si512(a.v);
    auto const high = _mm512_srli_epi32(bits, 16);
    auto const odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    auto const near = _mm512_srli_epi32(
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    auto const quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    auto const nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
    auto const chosen = _mm512_mask_mov_epi32(near, nan, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(chosen));
}
inline void store_f16(F16* p, V16 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline V16 set1(float a) { return {_mm512_set1_ps(a)}; }
inline V16 operator+(V16 a, V16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline V16 operator-(V16 a, V16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline V16 operator*(V16 a, V16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline V16 operator/(V16 a, V16 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline V16 fma(V16 a, V16 b, V16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline V16 max(V16 a, V16 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline V16 min(V16 a, V16 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline V16 sqrt(V16 a) { return {_mm512_sqrt_ps(a.v)}; }
inline V16 half_power(V16 a) {
    auto const shifted = _mm512_slli_epi32(_mm512_castps_si512(a.v), 23);
    return {_mm512_castsi512_ps(_mm512_add_epi32(shifted, _mm512_set1_epi32(126 << 23)))};
}
inline __m256 lower(V16 a) { return _mm512_castps512_ps256(a.v); }
inline __m256 upper(V16 a) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
}
inline float sum(V16 a) {
    auto const eight = _mm256_add_ps(lower(a), upper(a));
    auto const four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    auto const two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float maximum(V16 a) {
    auto const eight = _mm256_max_ps(lower(a), upper(a));
    auto const four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    auto const two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline float first(V16 a) { return _mm512_cvtss_f32(a.v); }

struct Squares {
    __m512d v[2]{_mm512_setzero_pd(), _mm512_setzero_pd()};
    void add(V16 a) {
        __m256 const halves[2]{lower(a), upper(a)};
        for (int i = 0; i != 2; ++i) {
            auto const wide = _mm512_cvtps_pd(halves[i]);
            v[i] = _mm512_fmadd_pd(wide, wide, v[i]);
        }
    }
    void lanes(double* to) const {
        for (std::size_t i = 0; i != 2; ++i) _mm512_storeu_pd(to + 8 * i, v[i]);
    }
};

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
