#pragma once

#include "engine/kernels/isa/isa.hpp"
#include "engine/kernels/kernel_table.hpp"
#include "engine/kernels/types.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::engine {

#if defined(TINKXX_ENGINE_EMULATED)
extern KernelTable const emulated_avx512_kernels;
void emulated_amx_forward(ForwardArgs const& args);
void emulated_amx_backward_input(BackwardInputArgs const& args);
#endif

/// Kernels under test: those of an instruction set, or the same code on emulated instructions.
struct Subject {
    Isa isa;
    bool emulated;
};

inline bool can_run(Subject subject) {
#if defined(TINKXX_ENGINE_EMULATED)
    // Where the instructions exist, the same code runs on them.
    if (subject.emulated) return isa_supported(Isa::avx2) && !isa_supported(subject.isa);
#endif
    return !subject.emulated && isa_supported(subject.isa);
}

inline KernelTable const& kernels_of(Subject subject) {
#if defined(TINKXX_ENGINE_EMULATED)
    if (subject.emulated) {
        static KernelTable const tiles = [] {
            auto table = emulated_avx512_kernels;
            table.forward = &emulated_amx_forward;
            table.backward_input = &emulated_amx_backward_input;
            return table;
        }();
        return subject.isa == Isa::amx ? tiles : emulated_avx512_kernels;
    }
#endif
    return *kernel_table(subject.isa);
}

inline std::string name_of(Subject subject) {
    return std::string{isa_name(subject.isa)} + (subject.emulated ? "_emulated" : "");
}

/// A test that runs once for each instruction set, and is skipped where the machine lacks it.
class EachIsa : public testing::TestWithParam<Subject> {
protected:
    void SetUp() override {
        if (!can_run(GetParam())) GTEST_SKIP() << "this machine has no " << name_of(GetParam());
    }
    [[nodiscard]] static KernelTable const& table() { return kernels_of(GetParam()); }
    [[nodiscard]] static KernelTable const& plain() { return *kernel_table(Isa::plain); }
};

inline auto const all_isas = testing::Values(Subject{Isa::plain, false}, Subject{Isa::avx2, false},
                                             Subject{Isa::avx512, false}, Subject{Isa::amx, false},
                                             Subject{Isa::avx512, true}, Subject{Isa::amx, true});

inline std::string isa_label(testing::TestParamInfo<Subject> const& info) {
    return name_of(info.param);
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
    for (std::size_t i = 0; i != a.size(); ++i) {
        if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) ++count;
    }
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
