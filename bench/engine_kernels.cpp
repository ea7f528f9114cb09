// How fast the engine's matrix products are, beside what the core can do at all and, where it was
// found at build time, beside oneDNN's product of packed float32 weights.
//
//   engine_kernels [--quick]
//
// One thread, best of several runs, in the CPU time of the thread: a busy neighbour costs caches
// but is not counted. TINKXX_ENGINE_ISA chooses the instruction set.

#include "engine/kernels/convert.hpp"
#include "engine/kernels/isa.hpp"
#include "engine/kernels/packed_matrix.hpp"
#include "engine/kernels/products.hpp"
#include "engine_peak.hpp"

#if defined(TINKXX_BENCH_ONEDNN)
#include <oneapi/dnnl/dnnl.hpp>

#include <unordered_map>
#endif

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

namespace {

using namespace tinkxx::engine;

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int runs = 15;

/// Seconds of one call, the best of several runs of a few milliseconds.
template <class Fn>
double best(Fn fn) {
    fn();
    auto start = cpu_seconds();
    fn();
    auto const once = std::max(1e-9, cpu_seconds() - start);
    auto const calls = std::max(1, static_cast<int>(3e-3 / once));
    auto result = once;
    for (int r = 0; r != runs; ++r) {
        start = cpu_seconds();
        for (int i = 0; i != calls; ++i) fn();
        result = std::min(result, (cpu_seconds() - start) / calls);
    }
    return result;
}

std::vector<float> numbers(std::size_t count) {
    std::vector<float> values(count);
    std::uint32_t state = 1;
    for (auto& value : values) {
        state = state * 1664525U + 1013904223U;
        value = static_cast<float>(state >> 8) * 0x1p-23F - 1;
    }
    return values;
}

struct Shape {
    std::size_t rows;
    std::size_t outputs;
    std::size_t inputs;
};

#if defined(TINKXX_BENCH_ONEDNN)
/// oneDNN's product for exactly this shape, its weights in the layout it likes best.
std::optional<double> onednn_seconds(Shape s, std::vector<float>& x, std::vector<float>& w,
                                     std::vector<float>& y) {
    using Desc = dnnl::memory::desc;
    using Tag = dnnl::memory::format_tag;
    constexpr auto f32 = dnnl::memory::data_type::f32;
    auto const m = static_cast<dnnl_dim_t>(s.rows);
    auto const n = static_cast<dnnl_dim_t>(s.outputs);
    auto const k = static_cast<dnnl_dim_t>(s.inputs);
    static dnnl::engine const engine{dnnl::engine::kind::cpu, 0};
    static dnnl::stream stream{engine};
    Desc const x_desc{{m, k}, f32, Tag::ab};
    Desc const y_desc{{m, n}, f32, Tag::ab};
    dnnl::matmul::primitive_desc const chosen{
        dnnl::matmul::desc{x_desc, Desc{{k, n}, f32, Tag::any}, y_desc}, engine};
    dnnl::matmul const product{chosen};
    dnnl::memory rows{Desc{{k, n}, f32, Tag::ba}, engine, w.data()};
    dnnl::memory packed{chosen.weights_desc(), engine};
    dnnl::reorder{rows, packed}.execute(stream, rows, packed);
    stream.wait();
    std::unordered_map<int, dnnl::memory> const arguments{
        {DNNL_ARG_SRC, {x_desc, engine, x.data()}},
        {DNNL_ARG_WEIGHTS, packed},
        {DNNL_ARG_DST, {y_desc, engine, y.data()}}};
    return best([&] {
        product.execute(stream, arguments);
        stream.wait();
    });
}
#else
std::optional<double> onednn_seconds(Shape, std::vector<float>&, std::vector<float>&,
                                     std::vector<float>&) {
    return std::nullopt;
}
#endif

void measure(Shape s) {
    auto x = numbers(s.rows * s.inputs);
    auto w = numbers(s.outputs * s.inputs);
    auto y = std::vector<float>(s.rows * s.outputs);
    auto dx = std::vector<float>(s.rows * s.inputs);
    std::vector<std::uint16_t> halves(w.size());
    narrow(halves.data(), ElementType::bf16, w.data(), w.size());
    PackedMatrix const floats{{ElementType::f32, w.data(), s.outputs, s.inputs}};
    PackedMatrix const bf16{{ElementType::bf16, halves.data(), s.outputs, s.inputs}};
    PackedMatrix dw{s.outputs, s.inputs};
    MatrixView const ym{y.data(), s.rows, s.outputs};
    MatrixView const dxm{dx.data(), s.rows, s.inputs};
    ConstMatrixView const xm{x.data(), s.rows, s.inputs};
    auto const flops =
        2e-9 * static_cast<double>(s.rows * s.outputs) * static_cast<double>(s.inputs);

    auto const other = onednn_seconds(s, x, w, y);
    auto const own = best([&] { forward(ym, xm, floats); });
    auto const own16 = best([&] { forward(ym, xm, bf16); });
    auto const back = best([&] { backward_input(dxm, ym, floats); });
    auto const back16 = best([&] { backward_input(dxm, ym, bf16); });
    auto const weight = best([&] { backward_weight(dw, ym, xm); });
    std::printf("%5zu x %5zu x %5zu  %7.1f %7.1f  %7.1f %7.1f  %7.1f", s.rows, s.outputs, s.inputs,
                flops / own, flops / own16, flops / back, flops / back16, flops / weight);
    if (other) std::printf("  %7.1f  %5.2f", flops / *other, *other / own);
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    auto const quick = argc > 1 && std::string_view{argv[1]} == "--quick";
    if (quick) runs = 3;
    auto const& choice = chosen_isa();
    if (!choice.warning.empty()) std::printf("%s\n", choice.warning.c_str());
    std::printf("instruction set %s, one thread, GFLOP/s\n", isa_name().data());
    auto const peak = [] {
        double top = 0;
        for (int r = 0; r != 20; ++r) {
            auto const start = cpu_seconds();
            auto const flops =
                peak_work(chosen_isa().isa >= Isa::avx512, chosen_isa().isa >= Isa::avx2);
            top = std::max(top, flops / (cpu_seconds() - start) * 1e-9);
        }
        return top;
    }();
    std::printf("peak of fused multiply-adds %.1f\n", peak);
    std::printf(
        "rows x outputs x inputs  forward    bf16  dx          bf16       dw   oneDNN  ratio\n");
    for (auto const shape : {Shape{1, 768, 256}, Shape{4, 768, 256}, Shape{16, 768, 256},
                             Shape{64, 768, 256}, Shape{256, 768, 256}, Shape{1, 2048, 768},
                             Shape{16, 2048, 768}, Shape{256, 2048, 768}, Shape{1, 32000, 768},
                             Shape{256, 32, 768}, Shape{256, 768, 32}, Shape{1024, 4096, 1024}}) {
        if (quick && shape.outputs * shape.inputs > 2'000'000) continue;
        measure(shape);
    }
}
