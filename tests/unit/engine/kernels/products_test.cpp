#include "engine/kernels/products.hpp"

#include "engine/common/threads.hpp"
#include "engine/kernels/convert.hpp"

#include "support.hpp"

#include <rapidcheck.h>

#include <algorithm>

namespace tinkxx::engine {
namespace {

std::vector<std::byte> stored(std::span<float const> values, ElementType type) {
    std::vector<std::byte> bytes(values.size() * element_bytes(type));
    narrow(bytes.data(), type, values.data(), values.size());
    return bytes;
}

/// A weight matrix in some type, packed, and its values as floats.
struct Weights {
    std::size_t outputs;
    std::size_t inputs;
    std::vector<float> values;
    PackedMatrix packed;

    Weights(std::size_t n, std::size_t k, ElementType type, unsigned seed)
        : outputs{n}, inputs{k}, values{numbers(n * k, seed)} {
        auto const bytes = stored(values, type);
        widen(values.data(), type, bytes.data(), values.size());
        packed = PackedMatrix{{type, bytes.data(), n, k}};
    }
};

/// The definition: one chain over the ascending index, from `start`.
float chain(float start, std::size_t steps, auto a, auto b) {
    for (std::size_t i = 0; i != steps; ++i) start = std::fma(a(i), b(i), start);
    return start;
}

std::vector<float> defined_forward(Weights const& w, std::span<float const> x, std::size_t rows,
                                   std::span<float const> start) {
    std::vector<float> y(rows * w.outputs);
    for (std::size_t m = 0; m != rows; ++m) {
        for (std::size_t n = 0; n != w.outputs; ++n) {
            y[m * w.outputs + n] = chain(
                start.empty() ? 0 : start[m * w.outputs + n], w.inputs,
                [&](std::size_t k) { return x[m * w.inputs + k]; },
                [&](std::size_t k) { return w.values[n * w.inputs + k]; });
        }
    }
    return y;
}

std::vector<float> defined_backward(Weights const& w, std::span<float const> dy, std::size_t rows,
                                    std::span<float const> start) {
    std::vector<float> dx(rows * w.inputs);
    for (std::size_t m = 0; m != rows; ++m) {
        for (std::size_t k = 0; k != w.inputs; ++k) {
            dx[m * w.inputs + k] = chain(
                start.empty() ? 0 : start[m * w.inputs + k], w.outputs,
                [&](std::size_t n) { return dy[m * w.outputs + n]; },
                [&](std::size_t n) { return w.values[n * w.inputs + k]; });
        }
    }
    return dx;
}

std::vector<float> forward_on(KernelTable const& table, Weights const& w, std::span<float const> x,
                              std::size_t rows, std::vector<float> y, bool add,
                              float const* bias = nullptr) {
    y.resize(rows * w.outputs);
    table.forward({.y = y.data(),
                   .y_stride = w.outputs,
                   .x = x.data(),
                   .x_stride = w.inputs,
                   .rows = rows,
                   .type = w.packed.type(),
                   .panels = w.packed.panel(0),
                   .outputs = w.outputs,
                   .inputs = w.inputs,
                   .bias = bias,
                   .add = add});
    return y;
}

std::vector<float> backward_on(KernelTable const& table, Weights const& w,
                               std::span<float const> dy, std::size_t rows, std::vector<float> dx,
                               bool add) {
    dx.resize(rows * w.inputs);
    table.backward_input({.dx = dx.data(),
                          .dx_stride = w.inputs,
                          .dy = dy.data(),
                          .dy_stride = w.outputs,
                          .rows = rows,
                          .type = w.packed.type(),
                          .panels = w.packed.panel(0),
                          .outputs = w.outputs,
                          .inputs = w.inputs,
                          .first = 0,
                          .columns = w.inputs,
                          .add = add});
    return dx;
}

std::span<float const> first_rows(std::span<float const> values, std::size_t rows,
                                  std::size_t cols) {
    return values.first(rows * cols);
}

bool same_bits_as_chains(Subject subject, ElementType type) {
    return subject.isa != Isa::amx || type != ElementType::bf16;
}

constexpr ElementType all_types[]{ElementType::f32, ElementType::bf16, ElementType::f16};

class ProductsOnEachIsa : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Products, ProductsOnEachIsa, all_isas, isa_label);

TEST_P(ProductsOnEachIsa, ForwardHasNoDifferingBitForAnyNumberOfRowsUpTo200) {
    for (auto const type : all_types) {
        // A whole panel, a whole vector and a part of one.
        Weights const w{64 + 16 + 3, 45, type, 1};
        auto const x = numbers(200 * w.inputs, 2);
        auto const expected = same_bits_as_chains(GetParam(), type)
                                  ? defined_forward(w, x, 200, {})
                                  : forward_on(table(), w, x, 200, {}, false);
        for (std::size_t rows = 1; rows <= 200; ++rows) {
            auto const y = forward_on(table(), w, x, rows, {}, false);
            ASSERT_EQ(differing(y, first_rows(expected, rows, w.outputs)), 0U) << rows << " rows";
        }
    }
}

TEST_P(ProductsOnEachIsa, BackwardInputHasNoDifferingBitForAnyNumberOfRowsUpTo200) {
    for (auto const type : all_types) {
        Weights const w{64 + 16 + 3, 45, type, 3};
        auto const dy = numbers(200 * w.outputs, 4);
        auto const expected = same_bits_as_chains(GetParam(), type)
                                  ? defined_backward(w, dy, 200, {})
                                  : backward_on(table(), w, dy, 200, {}, false);
        for (std::size_t rows = 1; rows <= 200; ++rows) {
            auto const dx = backward_on(table(), w, dy, rows, {}, false);
            ASSERT_EQ(differing(dx, first_rows(expected, rows, w.inputs)), 0U) << rows << " rows";
        }
    }
}

TEST_P(ProductsOnEachIsa, ChainsThatSpanSeveralBlocksKeepTheirBits) {
    for (auto const type : all_types) {
        if (!same_bits_as_chains(GetParam(), type)) continue;
        // More inputs and outputs than a staged block has steps, more rows than a block.
        Weights const w{266, 300, type, 5};
        auto const x = numbers(198 * w.inputs, 6);
        auto const dy = numbers(198 * w.outputs, 7);
        auto const y = defined_forward(w, x, 198, {});
        auto const dx = defined_backward(w, dy, 198, {});
        for (std::size_t const rows : {1UL, 2UL, 5UL, 11UL, 198UL}) {
            EXPECT_EQ(differing(forward_on(table(), w, x, rows, {}, false),
                                first_rows(y, rows, w.outputs)),
                      0U);
            EXPECT_EQ(differing(backward_on(table(), w, dy, rows, {}, false),
                                first_rows(dx, rows, w.inputs)),
                      0U);
        }
    }
}

TEST_P(ProductsOnEachIsa, OddShapesStartsAndBiasesAgreeWithTheDefinition) {
    auto const& kernels_here = table();
    auto const subject = GetParam();
    EXPECT_TRUE(rc::check([&] {
        auto const n = *rc::gen::inRange<std::size_t>(1, 150);
        auto const k = *rc::gen::inRange<std::size_t>(1, 70);
        auto const m = *rc::gen::inRange<std::size_t>(1, 20);
        auto const type =
            *rc::gen::elementOf(std::vector(std::begin(all_types), std::end(all_types)));
        auto const add = *rc::gen::arbitrary<bool>();
        auto const biased = *rc::gen::arbitrary<bool>();
        if (!same_bits_as_chains(subject, type)) return;
        Weights const w{n, k, type, 11};
        auto const x = numbers(m * k, 12);
        auto const dy = numbers(m * n, 13);
        auto const old = numbers(m * n, 14);
        auto const old_dx = numbers(m * k, 15);
        auto const bias = numbers(n, 16);
        std::vector<float> start(m * n, 0.0F);
        for (std::size_t i = 0; i != m * n; ++i) {
            if (add) start[i] = old[i];
            if (biased) start[i] = add ? old[i] + bias[i % n] : bias[i % n];
        }
        auto const y = forward_on(kernels_here, w, x, m, old, add, biased ? bias.data() : nullptr);
        RC_ASSERT(differing(y, defined_forward(w, x, m, start)) == 0U);
        auto const dx = backward_on(kernels_here, w, dy, m, old_dx, add);
        auto const from = add ? std::span<float const>{old_dx} : std::span<float const>{};
        RC_ASSERT(differing(dx, defined_backward(w, dy, m, from)) == 0U);
    }));
}

TEST_P(ProductsOnEachIsa, GeneralProductsAgreeWithTheDefinitionAndStayInsideTheirRows) {
    auto const& kernels_here = table();
    EXPECT_TRUE(rc::check([&] {
        auto const m = *rc::gen::inRange<std::size_t>(1, 80);
        auto const n = *rc::gen::inRange<std::size_t>(1, 90);
        auto const k = *rc::gen::inRange<std::size_t>(0, 40);
        auto const a_transposed = *rc::gen::arbitrary<bool>();
        auto const b_transposed = *rc::gen::arbitrary<bool>();
        auto const add = *rc::gen::arbitrary<bool>();
        auto const gap = *rc::gen::inRange<std::size_t>(0, 5);
        auto const a_stride = (a_transposed ? m : k) + gap;
        auto const b_stride = (b_transposed ? k : n) + gap;
        auto const c_stride = n + gap;
        auto const a = numbers((a_transposed ? k : m) * a_stride + 1, 21);
        auto const b = numbers((b_transposed ? n : k) * b_stride + 1, 22);
        auto c = numbers(m * c_stride, 23);
        auto expected = c;
        for (std::size_t i = 0; i != m; ++i) {
            for (std::size_t j = 0; j != n; ++j) {
                auto& e = expected[i * c_stride + j];
                e = chain(
                    add ? e : 0, k,
                    [&](std::size_t r) {
                        return a_transposed ? a[r * a_stride + i] : a[i * a_stride + r];
                    },
                    [&](std::size_t r) {
                        return b_transposed ? b[j * b_stride + r] : b[r * b_stride + j];
                    });
            }
        }
        kernels_here.multiply({.c = c.data(),
                               .c_stride = c_stride,
                               .a = a.data(),
                               .a_row = a_transposed ? 1 : a_stride,
                               .a_step = a_transposed ? a_stride : 1,
                               .b = b.data(),
                               .b_stride = b_stride,
                               .b_transposed = b_transposed,
                               .m = m,
                               .n = n,
                               .k = k,
                               .add = add});
        RC_ASSERT(differing(c, expected) == 0U);
    }));
}

TEST_P(ProductsOnEachIsa, ResultsAreCloseToTheExactOnes) {
    for (auto const type : all_types) {
        Weights const w{128, 768, type, 31};
        std::size_t const rows = 16;
        auto const x = numbers(rows * w.inputs, 32);
        auto const dy = numbers(rows * w.outputs, 33);
        std::vector<double> y(rows * w.outputs);
        std::vector<double> dx(rows * w.inputs);
        for (std::size_t m = 0; m != rows; ++m) {
            for (std::size_t n = 0; n != w.outputs; ++n) {
                for (std::size_t k = 0; k != w.inputs; ++k) {
                    double const v = w.values[n * w.inputs + k];
                    y[m * w.outputs + n] += v * x[m * w.inputs + k];
                    dx[m * w.inputs + k] += v * dy[m * w.outputs + n];
                }
            }
        }
        EXPECT_LT(relative_error(forward_on(table(), w, x, rows, {}, false), y), 1e-6);
        EXPECT_LT(relative_error(backward_on(table(), w, dy, rows, {}, false), dx), 1e-6);
    }
}

// ---------------------------------------------------------------------------- public functions

TEST(Products, ThreadsDoNotChangeABit) {
    Threads two{2};
    Threads three{3};
    for (auto const type : all_types) {
        Weights const w{452, 300, type, 41};
        for (std::size_t const rows : {1UL, 3UL, 17UL, 250UL}) {
            auto const x = numbers(rows * w.inputs, 42);
            auto const dy = numbers(rows * w.outputs, 43);
            auto const run = [&](Threads* threads) {
                std::vector<float> all(rows * w.outputs + rows * w.inputs);
                forward({all.data(), rows, w.outputs}, {x.data(), rows, w.inputs}, w.packed,
                        Write::set, nullptr, threads);
                backward_input({all.data() + rows * w.outputs, rows, w.inputs},
                               {dy.data(), rows, w.outputs}, w.packed, Write::set, threads);
                PackedMatrix dw{w.outputs, w.inputs};
                backward_weight(dw, {dy.data(), rows, w.outputs}, {x.data(), rows, w.inputs},
                                threads);
                all.insert(all.end(), dw.values().begin(), dw.values().end());
                return all;
            };
            auto const alone = run(nullptr);
            EXPECT_EQ(differing(alone, run(&two)), 0U);
            EXPECT_EQ(differing(alone, run(&three)), 0U);
        }
    }
}

TEST(Products, JoinedProductsHaveTheBitsOfEachAlone) {
    Threads one{1};
    Threads two{2};
    Threads three{3};
    // What a layer joins: wide ones and those of an adapter, with and without a bias.
    Weights const all[]{{700, 200, ElementType::f32, 44},
                        {32, 200, ElementType::f32, 45},
                        {129, 200, ElementType::bf16, 46},
                        {8, 200, ElementType::f32, 47}};
    for (std::size_t const rows : {0UL, 1UL, 5UL, 230UL}) {
        auto const x = numbers(rows * 200, 48);
        auto const bias = numbers(700, 49);
        ForwardProducts joined;
        auto const run = [&](Threads* threads, bool join) {
            std::vector<std::vector<float>> y;
            for (auto const& w : all) y.push_back(numbers(rows * w.outputs, 50));
            for (std::size_t i = 0; i != y.size(); ++i) {
                auto const& w = all[i];
                MatrixView const to{y[i].data(), rows, w.outputs};
                ConstMatrixView const from{x.data(), rows, w.inputs};
                auto const write = i % 2 == 0 ? Write::add : Write::set;
                auto const* const b = i < 2 ? bias.data() : nullptr;
                if (join) {
                    joined.add(to, from, w.packed, write, b);
                } else {
                    forward(to, from, w.packed, write, b, threads);
                }
            }
            joined.run(threads);
            EXPECT_EQ(joined.work(), 0U);
            return y;
        };
        auto const alone = run(nullptr, false);
        for (auto* const threads : {static_cast<Threads*>(nullptr), &one, &two, &three}) {
            auto const together = run(threads, true);
            for (std::size_t i = 0; i != together.size(); ++i) {
                EXPECT_EQ(differing(alone[i], together[i]), 0U) << rows << " rows, product " << i;
            }
        }
    }
}

TEST(Products, LowRankPairsAreAddedAsByProductsOfTheirOwn) {
    Threads two{2};
    Threads three{3};
    Weights const w{700, 200, ElementType::bf16, 51};
    // Ranks within one panel and beyond it.
    for (std::size_t const rank : {8UL, 100UL}) {
        Weights const a{rank, w.inputs, ElementType::f32, 52};
        Weights const b{w.outputs, rank, ElementType::f32, 53};
        for (std::size_t const rows : {1UL, 9UL, 310UL}) {
            auto const x = numbers(rows * w.inputs, 54);
            auto const bias = numbers(w.outputs, 55);
            ConstMatrixView const from{x.data(), rows, w.inputs};
            std::vector<float> expected(rows * w.outputs);
            std::vector<float> expected_hidden(rows * rank);
            MatrixView const to{expected.data(), rows, w.outputs};
            forward(to, from, w.packed, Write::set, bias.data());
            // The first and the last rows have pairs, those between have none.
            auto const first = rows / 3;
            auto const last = rows - 2 * first;
            auto const by_two_pairs = [&](float* hidden, auto const& add) {
                if (first != 0) add(0UL, MatrixView{hidden, first, rank}, 0.5F);
                add(rows - last, MatrixView{hidden + first * rank, last, rank}, 2.0F);
            };
            by_two_pairs(expected_hidden.data(), [&](std::size_t row, MatrixView h, float factor) {
                forward(h, {from.row(row), h.rows, w.inputs}, a.packed);
                for (std::size_t i = 0; i != h.rows * h.cols; ++i) h.data[i] *= factor;
                forward({to.row(row), h.rows, w.outputs}, h, b.packed, Write::add);
            });
            for (auto* const threads : {static_cast<Threads*>(nullptr), &two, &three}) {
                std::vector<float> y(rows * w.outputs);
                std::vector<float> hidden(rows * rank);
                ForwardProducts products;
                products.add({y.data(), rows, w.outputs}, from, w.packed, Write::set, bias.data());
                by_two_pairs(hidden.data(), [&](std::size_t row, MatrixView h, float factor) {
                    products.add_low_rank(row, h, {from.row(row), h.rows, w.inputs}, a.packed,
                                          b.packed, factor);
                });
                products.run(threads);
                EXPECT_EQ(differing(expected, y), 0U) << rows << " rows of rank " << rank;
                EXPECT_EQ(differing(expected_hidden, hidden), 0U);
            }
        }
    }
}

TEST(Products, WeightGradientIsTheSameWhetherRowsComeAtOnceOrInPieces) {
    std::size_t const outputs = 150;
    std::size_t const inputs = 77;
    std::size_t const rows = 400;
    auto const x = numbers(rows * inputs, 51);
    auto const dy = numbers(rows * outputs, 52);
    PackedMatrix whole{outputs, inputs};
    backward_weight(whole, {dy.data(), rows, outputs}, {x.data(), rows, inputs});
    PackedMatrix pieces{outputs, inputs};
    for (std::size_t at = 0; at != rows;) {
        auto const some = std::min<std::size_t>(rows - at, at % 7 * 10 + 3);
        backward_weight(pieces, {dy.data() + at * outputs, some, outputs},
                        {x.data() + at * inputs, some, inputs});
        at += some;
    }
    EXPECT_EQ(differing(whole.values(), pieces.values()), 0U);

    std::vector<float> rows_first(outputs * inputs);
    whole.unpack(rows_first.data());
    for (std::size_t n = 0; n != outputs; ++n) {
        for (std::size_t k = 0; k != inputs; ++k) {
            auto const expected = chain(
                0, rows, [&](std::size_t m) { return x[m * inputs + k]; },
                [&](std::size_t m) { return dy[m * outputs + n]; });
            ASSERT_EQ(rows_first[n * inputs + k], expected);
        }
    }
}

TEST(Products, RangesOfOutputsGiveTheBitsOfTheWhole) {
    Weights const w{64 * 5 + 9, 50, ElementType::bf16, 61};
    std::size_t const rows = 13;
    auto const x = numbers(rows * w.inputs, 62);
    auto const dy = numbers(rows * w.outputs, 63);
    auto const bias = numbers(w.outputs, 64);
    std::vector<float> y(rows * w.outputs);
    std::vector<float> dx(rows * w.inputs);
    PackedMatrix dw{w.outputs, w.inputs};
    forward({y.data(), rows, w.outputs}, {x.data(), rows, w.inputs}, w.packed, Write::set,
            bias.data());
    backward_input({dx.data(), rows, w.inputs}, {dy.data(), rows, w.outputs}, w.packed);
    backward_weight(dw, {dy.data(), rows, w.outputs}, {x.data(), rows, w.inputs});

    std::vector<float> y_parts(y.size());
    std::vector<float> dx_parts(dx.size());
    PackedMatrix dw_parts{w.outputs, w.inputs};
    for (std::size_t first = 0; first < w.outputs; first += 128) {
        auto const some = std::min<std::size_t>(128, w.outputs - first);
        ConstMatrixView const part{dy.data() + first, rows, some, w.outputs};
        forward_outputs({y_parts.data() + first, rows, some, w.outputs}, {x.data(), rows, w.inputs},
                        w.packed, first, Write::set, bias.data());
        backward_input_outputs({dx_parts.data(), rows, w.inputs}, part, w.packed, first,
                               first == 0 ? Write::set : Write::add);
        backward_weight_outputs(dw_parts, part, {x.data(), rows, w.inputs}, first);
    }
    EXPECT_EQ(differing(y, y_parts), 0U);
    EXPECT_EQ(differing(dx, dx_parts), 0U);
    EXPECT_EQ(differing(dw.values(), dw_parts.values()), 0U);
}

TEST(Products, MultiplyFunctionsTransposeWhatTheirNamesSay) {
    std::vector<float> const a{1, 2, 3, 4, 5, 6};  // 2×3
    std::vector<float> const b{1, 0, 2, 0, 1, 0};  // 2×3
    std::vector<float> c(9);
    multiply_nt({c.data(), 2, 2}, {a.data(), 2, 3}, {b.data(), 2, 3});
    EXPECT_EQ((std::vector<float>{c.begin(), c.begin() + 4}), (std::vector<float>{7, 2, 16, 5}));
    multiply_nn({c.data(), 2, 2}, {a.data(), 2, 3}, {b.data(), 3, 2}, Write::add);
    EXPECT_EQ((std::vector<float>{c.begin(), c.begin() + 4}), (std::vector<float>{15, 2, 36, 5}));
    multiply_tn({c.data(), 3, 3}, {a.data(), 2, 3}, {b.data(), 2, 3});
    EXPECT_EQ(c, (std::vector<float>{1, 4, 2, 2, 5, 4, 3, 6, 6}));
}

}  // namespace
}  // namespace tinkxx::engine
