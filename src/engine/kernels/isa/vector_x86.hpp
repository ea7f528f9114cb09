#pragma once

// What the vectors of AVX2 and AVX-512 have in common.

#include <immintrin.h>

#include <cstddef>

namespace tinkxx::engine::TINKXX_ISA {
namespace {

inline void prefetch(void const* p) { _mm_prefetch(static_cast<char const*>(p), _MM_HINT_T0); }

inline void transpose8(float* to, std::size_t to_stride, float const* from,
                       std::size_t from_stride) {
    __m256 r[8];
    for (std::size_t i = 0; i != 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_stride);
    __m256 t[8];
    for (int i = 0; i != 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i != 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (std::size_t i = 0; i != 4; ++i) {
        _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
