// How fast the engine's matrix products are, beside what the core can do at all and, where it was
// found at build time, beside oneDNN's product of packed float32 weights.
//
//   engine_kernels [--quick] [--check] [ROWSxOUTPUTSxINPUTS]...
//
// One thread, best of several runs in turn, in the CPU time of the thread: a busy neighbour costs
// caches but is not counted. TINKXX_ENGINE_ISA chooses the instruction set. `--check` exits with 1
// if a product reaches less than nine tenths of oneDNN's.

#include "engine/kernels/convert.hpp"
#include "engine/kernels/isa/isa.hpp"
#include "engine/kernels/packed_matrix.hpp"
#include "engine/kernels/products.hpp"
#include "engine_peak.hpp"

#if defined(TINKXX_BENCH_ONEDNN)
#include <dlfcn.h>

#include <oneapi/dnnl/dnnl.hpp>

#include <unordered_map>
#endif

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

using namespace tinkxx::engine;

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int runs = 15;

/// A call that is measured: the best of several runs of a few milliseconds.
struct Measured {
    std::function<void()> call{};
    int calls{1};
    double seconds{1e9};
};

/// All of them in turn, so that what disturbs the machine for a while disturbs all alike.
void measure_all(std::vector<Measured*> const& all) {
    for (auto* const one : all) {
        one->call();
        auto const start = cpu_seconds();
        one->call();
        one->calls = std::max(1, static_cast<int>(3e-3 / std::max(1e-9, cpu_seconds() - start)));
    }
    for (int r = 0; r != runs; ++r) {
        for (auto* const one : all) {
            auto const start = cpu_seconds();
            for (int i = 0; i != one->calls; ++i) one->call();
            one->seconds = std::min(one->seconds, (cpu_seconds() - start) / one->calls);
        }
    }
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

/// "16x768x256"
std::optional<Shape> parse_shape(std::string_view text) {
    Shape shape{};
    auto const* at = text.data();
    auto const* const end = at + text.size();
    for (auto* const number : {&shape.rows, &shape.outputs, &shape.inputs}) {
        if (number != &shape.rows && (at == end || *at++ != 'x')) return std::nullopt;
        auto const [after, error] = std::from_chars(at, end, *number);
        if (error != std::errc{} || *number == 0) return std::nullopt;
        at = after;
    }
    return at == end ? std::optional{shape} : std::nullopt;
}

#if defined(TINKXX_BENCH_ONEDNN)
/// oneDNN's product for exactly this shape, its weights in the layout it likes best.
std::function<void()> onednn_product(Shape s, std::vector<float>& x, std::vector<float>& w,
                                     std::vector<float>& y) {
    using Desc = dnnl::memory::desc;
    using Tag = dnnl::memory::format_tag;
    constexpr auto f32 = dnnl::memory::data_type::f32;
    auto const m = static_cast<dnnl_dim_t>(s.rows);
    auto const n = static_cast<dnnl_dim_t>(s.outputs);
    auto const k = static_cast<dnnl_dim_t>(s.inputs);
    // One thread too, of the OpenMP library that it may have brought with it.
    if (auto* const set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) {
        reinterpret_cast<void (*)(int)>(set_threads)(1);
    }
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
    return [product, arguments] {
        product.execute(stream, arguments);
        stream.wait();
    };
}
#else
std::function<void()> onednn_product(Shape, std::vector<float>&, std::vector<float>&,
                                     std::vector<float>&) {
    return {};
}
#endif

/// How the product compares with oneDNN's, where that is.
std::optional<double> measure(Shape s) {
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

    Measured other{onednn_product(s, x, w, y)};
    Measured own{[&] { forward(ym, xm, floats); }};
    Measured own16{[&] { forward(ym, xm, bf16); }};
    Measured back{[&] { backward_input(dxm, ym, floats); }};
    Measured back16{[&] { backward_input(dxm, ym, bf16); }};
    Measured weight{[&] { backward_weight(dw, ym, xm); }};
    std::vector<Measured*> all{&own, &own16, &back, &back16, &weight};
    if (other.call) all.insert(all.begin(), &other);
    measure_all(all);
    std::printf("%5zu x %5zu x %5zu  %7.1f %7.1f  %7.1f %7.1f  %7.1f", s.rows, s.outputs, s.inputs,
                flops / own.seconds, flops / own16.seconds, flops / back.seconds,
                flops / back16.seconds, flops / weight.seconds);
    if (other.call) {
        std::printf("  %7.1f  %5.2f", flops / other.seconds, other.seconds / own.seconds);
    }
    std::printf("\n");
    return other.call ? std::optional{other.seconds / own.seconds} : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
    bool quick = false;
    bool check = false;
    std::vector<Shape> shapes;
    for (std::string_view const option : std::vector(argv + 1, argv + argc)) {
        if (option == "--quick") {
            quick = true;
        } else if (option == "--check") {
            check = true;
        } else if (auto const shape = parse_shape(option)) {
            shapes.push_back(*shape);
        } else {
            std::fprintf(stderr,
                         "engine_kernels: unknown argument %s; usage: engine_kernels [--quick] "
                         "[--check] [ROWSxOUTPUTSxINPUTS]...\n",
                         option.data());
            return 2;
        }
    }
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
    if (shapes.empty()) {
        shapes = {{1, 768, 256},   {4, 768, 256},  {16, 768, 256},  {64, 768, 256},
                  {256, 768, 256}, {1, 2048, 768}, {16, 2048, 768}, {256, 2048, 768},
                  {1, 32000, 768}, {256, 32, 768}, {256, 768, 32},  {1024, 4096, 1024}};
    }
    double least = 1;
    for (auto const shape : shapes) {
        if (quick && shape.outputs * shape.inputs > 2'000'000) continue;
        least = std::min(least, measure(shape).value_or(least));
    }
    return check && least < 0.9 ? 1 : 0;
}
