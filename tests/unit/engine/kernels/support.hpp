#pragma once

#include "engine/kernels/isa.hpp"
#include "engine/kernels/kernel_table.hpp"
#include "engine/kernels/types.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::engine {

/// A test that runs once for each instruction set, and is skipped where the machine lacks it.
class EachIsa : public testing::TestWithParam<Isa> {
protected:
    void SetUp() override {
        if (!isa_supported(GetParam())) {
            GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
        }
    }
    [[nodiscard]] static KernelTable const& table() { return *kernel_table(GetParam()); }
    [[nodiscard]] static KernelTable const& plain() { return *kernel_table(Isa::plain); }
};

inline auto const all_isas = testing::Values(Isa::plain, Isa::avx2, Isa::avx512, Isa::amx);

inline std::string isa_label(testing::TestParamInfo<Isa> const& info) {
    return std::string{isa_name(info.param)};
}

/// Numbers of a seed: normal, so that sums cancel and roundings differ if the order does.
inline std::vector<float> numbers(std::size_t count, unsigned seed, float spread = 1) {
    std::mt19937 source{seed};
    std::vector<float> values(count);
    for (auto& value : values) {
        // Not std::normal_distribution, whose numbers depend on the standard library.
        float sum = 0;
        for (int i = 0; i != 4; ++i) sum += static_cast<float>(source() >> 8) * 0x1p-24F - 0.5F;
        value = sum * spread;
    }
    return values;
}

inline std::vector<double> doubles(std::span<float const> values) {
    return {values.begin(), values.end()};
}

/// The places at which two arrays differ in a bit.
inline std::size_t differing(std::span<float const> a, std::span<float const> b) {
    if (a.size() != b.size()) return std::max(a.size(), b.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i != a.size(); ++i) count += std::memcmp(&a[i], &b[i], 4) != 0;
    return count;
}

/// The root of the mean square of a - b over that of b.
inline double relative_error(std::span<float const> a, std::span<double const> b) {
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i != a.size(); ++i) {
        error += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return std::sqrt(error / size);
}

}  // namespace tinkxx::engine
