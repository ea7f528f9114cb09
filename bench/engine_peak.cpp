#include "engine_peak.hpp"

#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

constexpr int rounds = 20'000;
// Chains enough for two units of latency four.
constexpr int chains = 12;
float volatile sink = 0.5F;

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double peak_avx2() {
    auto const m = _mm256_set1_ps(sink);
    __m256 c[chains];
    for (int j = 0; j != chains; ++j) c[j] = m;
    for (int i = 0; i != rounds; ++i) {
#pragma GCC unroll 12
        for (int j = 0; j != chains; ++j) c[j] = _mm256_fmadd_ps(c[j], m, m);
    }
    float sum = 0;
    for (int j = 0; j != chains; ++j) sum += _mm256_cvtss_f32(c[j]);
    sink = sum > 0 ? 0.5F : 0.25F;
    return 16.0 * rounds * chains;
}

__attribute__((target("avx512f"))) double peak_avx512() {
    auto const m = _mm512_set1_ps(sink);
    __m512 c[chains];
    for (int j = 0; j != chains; ++j) c[j] = m;
    for (int i = 0; i != rounds; ++i) {
#pragma GCC unroll 12
        for (int j = 0; j != chains; ++j) c[j] = _mm512_fmadd_ps(c[j], m, m);
    }
    float sum = 0;
    for (int j = 0; j != chains; ++j) sum += _mm512_cvtss_f32(c[j]);
    sink = sum > 0 ? 0.5F : 0.25F;
    return 32.0 * rounds * chains;
}
#endif

double peak_plain() {
    float c[chains];
    for (auto& value : c) value = sink;
    for (int i = 0; i != rounds; ++i) {
        for (auto& value : c) value = std::fma(value, 0.5F, 0.5F);
    }
    float sum = 0;
    for (auto const value : c) sum += value;
    sink = sum > 0 ? 0.5F : 0.25F;
    return 2.0 * rounds * chains;
}

}  // namespace

double peak_work([[maybe_unused]] bool avx512, [[maybe_unused]] bool avx2) {
#if defined(__x86_64__)
    if (avx512) return peak_avx512();
    if (avx2) return peak_avx2();
#endif
    return peak_plain();
}
