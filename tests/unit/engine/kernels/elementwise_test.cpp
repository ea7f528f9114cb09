#include "engine/kernels/elementwise.hpp"

#include "support.hpp"

#include <rapidcheck.h>

#include <functional>
#include <limits>

namespace tinkxx::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// ---------------------------------------------------------------------------- exp, log

TEST(Exp, IsWithinAnUlpOrSo) {
    std::vector<float> x;
    for (float v = -86.9F; v < 88.7F; v += 0.00137F) x.push_back(v);
    std::vector<float> y(x.size());
    exp(y.data(), x.data(), x.size());
    double worst = 0;
    for (std::size_t i = 0; i != x.size(); ++i) {
        auto const exact = std::exp(static_cast<double>(x[i]));
        worst = std::max(worst, std::abs(y[i] - exact) / exact);
    }
    EXPECT_LT(worst, 1.3e-7);
}

TEST(Exp, HasTheRightEnds) {
    std::vector<float> x{
        0,        -0.0F, -infinity, -200,  -88,
        infinity, 200,   88.8F,     88.7F, std::numeric_limits<float>::quiet_NaN()};
    exp(x.data(), x.data(), x.size());
    EXPECT_EQ(x[0], 1);
    EXPECT_EQ(x[1], 1);
    EXPECT_EQ(x[2], 0);
    EXPECT_EQ(x[3], 0);
    EXPECT_EQ(x[4], 0);
    EXPECT_EQ(x[5], infinity);
    EXPECT_EQ(x[6], infinity);
    EXPECT_EQ(x[7], infinity);
    EXPECT_LT(x[8], infinity);
    EXPECT_TRUE(std::isnan(x[9]));
}

TEST(PortableLog, AgreesWithTheLibrary) {
    for (double x = 1e-30; x < 1e30; x *= 1.0173) {
        EXPECT_NEAR(portable_log(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x))));
    }
    EXPECT_EQ(portable_log(1), 0);
}

// ---------------------------------------------------------------------------- norm

struct NormGradient {
    std::vector<double> dx;
    std::vector<double> dw;
};

NormGradient defined_norm_gradient(std::span<float const> dy, std::span<float const> x,
                                   std::span<float const> w, double eps) {
    auto const n = static_cast<double>(x.size());
    double squares = 0;
    double along = 0;
    for (auto const value : x) squares += static_cast<double>(value) * value;
    auto const r = 1 / std::sqrt(squares / n + eps);
    for (std::size_t i = 0; i != x.size(); ++i) along += static_cast<double>(dy[i]) * w[i] * x[i];
    NormGradient g{std::vector<double>(x.size()), std::vector<double>(x.size())};
    for (std::size_t i = 0; i != x.size(); ++i) {
        g.dx[i] = r * dy[i] * w[i] - x[i] * r * r * r / n * along;
        g.dw[i] = dy[i] * x[i] * r;
    }
    return g;
}

TEST(RmsNorm, FollowsItsDefinitionForwardAndBackward) {
    for (std::size_t const cols : {1UL, 5UL, 16UL, 100UL, 256UL}) {
        std::size_t const rows = 3;
        auto const x = numbers(rows * cols, 1, 4);
        auto const w = numbers(cols, 2);
        auto const dy = numbers(rows * cols, 3);
        std::vector<float> y(rows * cols);
        std::vector<float> inverse(rows);
        std::vector<float> dx(rows * cols, 0.5F);
        std::vector<float> dw(cols, 0.25F);
        rms_norm({y.data(), rows, cols}, inverse.data(), {x.data(), rows, cols}, w.data(), 1e-5F);
        rms_norm_backward({dx.data(), rows, cols}, dw.data(), {dy.data(), rows, cols},
                          {x.data(), rows, cols}, w.data(), inverse.data(), Write::add);
        std::vector<double> expected_dw(cols, 0.25);
        for (std::size_t r = 0; r != rows; ++r) {
            auto const row = std::span{x}.subspan(r * cols, cols);
            double squares = 0;
            for (double const v : row) squares += v * v;
            auto const scale_by = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-5);
            std::vector<double> expected(cols);
            for (std::size_t i = 0; i != cols; ++i) expected[i] = row[i] * scale_by * w[i];
            EXPECT_LT(relative_error(std::span{y}.subspan(r * cols, cols), expected), 1e-6);
            auto g = defined_norm_gradient(std::span{dy}.subspan(r * cols, cols), row, w, 1e-5);
            for (std::size_t i = 0; i != cols; ++i) {
                EXPECT_NEAR(dx[r * cols + i], g.dx[i] + 0.5, 1e-5);
                expected_dw[i] += g.dw[i];
            }
        }
        EXPECT_LT(relative_error(dw, expected_dw), 1e-6);
    }
}

TEST(RmsNorm, MayWorkInPlace) {
    auto const x = numbers(40, 4);
    auto const w = numbers(40, 5);
    std::vector<float> y(40);
    auto z = x;
    rms_norm({y.data(), 1, 40}, nullptr, {x.data(), 1, 40}, w.data(), 1e-6F);
    rms_norm({z.data(), 1, 40}, nullptr, {z.data(), 1, 40}, w.data(), 1e-6F);
    EXPECT_EQ(y, z);
    float const inverse = 1.5F;
    auto const dy = numbers(40, 6);
    auto in_place = dy;
    std::vector<float> dx(40, 9.0F);
    rms_norm_backward({dx.data(), 1, 40}, nullptr, {dy.data(), 1, 40}, {x.data(), 1, 40}, w.data(),
                      &inverse, Write::set);
    rms_norm_backward({in_place.data(), 1, 40}, nullptr, {in_place.data(), 1, 40},
                      {x.data(), 1, 40}, w.data(), &inverse, Write::set);
    EXPECT_EQ(dx, in_place);
}

// ---------------------------------------------------------------------------- rope

TEST(Rope, RotatesEachHeadByTheAnglesOfItsPosition) {
    std::size_t const head_dim = 36;
    std::size_t const heads = 3;
    std::size_t const positions_known = 11;
    std::vector<float> cosines;
    std::vector<float> sines;
    for (std::size_t p = 0; p != positions_known; ++p) {
        for (std::size_t i = 0; i != head_dim / 2; ++i) {
            auto const angle =
                static_cast<double>(p) / std::pow(100.0, 2.0 * static_cast<double>(i) / head_dim);
            cosines.push_back(static_cast<float>(std::cos(angle)));
            sines.push_back(static_cast<float>(std::sin(angle)));
        }
    }
    std::vector<std::int32_t> const positions{10, 0, 3};
    auto const before = numbers(3 * heads * head_dim, 7);
    auto x = before;
    MatrixView const view{x.data(), 3, heads * head_dim};
    ConstMatrixView const c{cosines.data(), positions_known, head_dim / 2};
    ConstMatrixView const s{sines.data(), positions_known, head_dim / 2};
    rope(view, head_dim, positions, c, s, Rotation::forward);
    for (std::size_t r = 0; r != 3; ++r) {
        auto const position = static_cast<std::size_t>(positions[r]);
        for (std::size_t h = 0; h != heads; ++h) {
            for (std::size_t i = 0; i != head_dim / 2; ++i) {
                auto const at = r * heads * head_dim + h * head_dim + i;
                double const cosine = c.row(position)[i];
                double const sine = s.row(position)[i];
                double const a = before[at];
                double const b = before[at + head_dim / 2];
                EXPECT_NEAR(x[at], a * cosine - b * sine, 1e-6);
                EXPECT_NEAR(x[at + head_dim / 2], b * cosine + a * sine, 1e-6);
            }
        }
    }
    rope(view, head_dim, positions, c, s, Rotation::backward);
    for (std::size_t i = 0; i != x.size(); ++i) EXPECT_NEAR(x[i], before[i], 1e-6);
}

// ---------------------------------------------------------------------------- swiglu

TEST(SwiGlu, FollowsItsDefinitionForwardAndBackward) {
    std::size_t const cols = 107;
    auto gate = numbers(2 * cols, 8, 5);
    gate[0] = 60;
    gate[1] = -60;
    gate[2] = -120;
    auto const up = numbers(2 * cols, 9);
    auto const dy = numbers(2 * cols, 10);
    std::vector<float> y(2 * cols);
    std::vector<float> dgate(2 * cols);
    std::vector<float> dup(2 * cols);
    swiglu({y.data(), 2, cols}, {gate.data(), 2, cols}, {up.data(), 2, cols});
    swiglu_backward({dgate.data(), 2, cols}, {dup.data(), 2, cols}, {dy.data(), 2, cols},
                    {gate.data(), 2, cols}, {up.data(), 2, cols});
    for (std::size_t i = 0; i != 2 * cols; ++i) {
        double const g = gate[i];
        auto const s = 1 / (1 + std::exp(-g));
        EXPECT_NEAR(y[i], g * s * up[i], 1e-6 * std::max(1.0, std::abs(g)));
        EXPECT_NEAR(dup[i], dy[i] * g * s, 1e-6 * std::max(1.0, std::abs(g)));
        EXPECT_NEAR(dgate[i], dy[i] * up[i] * (s + g * s * (1 - s)), 2e-6);
    }
    // In place of the inputs.
    auto a = gate;
    auto b = up;
    swiglu_backward({a.data(), 2, cols}, {b.data(), 2, cols}, {dy.data(), 2, cols},
                    {a.data(), 2, cols}, {b.data(), 2, cols});
    EXPECT_EQ(a, dgate);
    EXPECT_EQ(b, dup);
    swiglu({b.data(), 2, cols}, {gate.data(), 2, cols}, {up.data(), 2, cols});
    EXPECT_EQ(b, y);
}

TEST(Simple, DotAxpyScaleAndCopyDoWhatTheySay) {
    auto const x = numbers(101, 11);
    auto y = numbers(101, 12);
    auto const before = y;
    double exact = 0;
    for (std::size_t i = 0; i != x.size(); ++i) exact += static_cast<double>(x[i]) * y[i];
    EXPECT_NEAR(dot(x.data(), y.data(), x.size()), exact, 1e-5);
    axpy(y.data(), 0.3F, x.data(), x.size());
    for (std::size_t i = 0; i != x.size(); ++i) EXPECT_EQ(y[i], std::fma(0.3F, x[i], before[i]));
    y = before;
    scale(y.data(), 0.3F, y.size());
    for (std::size_t i = 0; i != x.size(); ++i) EXPECT_EQ(y[i], 0.3F * before[i]);
    y = before;
    copy(y.data(), x.data(), x.size(), Write::add);
    for (std::size_t i = 0; i != x.size(); ++i) EXPECT_EQ(y[i], before[i] + x[i]);
    copy(y.data(), x.data(), x.size());
    EXPECT_EQ(y, x);
}

// ---------------------------------------------------------------------------- same bits

class ElementwiseOnEachIsa : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Elementwise, ElementwiseOnEachIsa, all_isas, isa_label);

/// What every elementwise kernel makes of some inputs, one after the other.
std::vector<float> everything(KernelTable const& table, std::size_t count, unsigned seed) {
    auto const x = numbers(count, seed, 3);
    auto const y = numbers(count, seed + 1);
    auto const w = numbers(count, seed + 2);
    std::vector<float> all;
    std::vector<float> a(count);
    std::vector<float> b(count);
    auto const keep = [&] {
        all.insert(all.end(), a.begin(), a.end());
        all.insert(all.end(), b.begin(), b.end());
    };
    float inverse = 0;
    table.rms_norm(a.data(), &inverse, x.data(), w.data(), count, 1e-6F);
    all.push_back(inverse);
    keep();
    table.rms_norm_backward(a.data(), b.data(), y.data(), x.data(), w.data(), inverse, count, true);
    keep();
    table.rms_norm_backward(a.data(), nullptr, y.data(), x.data(), w.data(), inverse, count, false);
    keep();
    table.swiglu(a.data(), x.data(), y.data(), count);
    keep();
    table.swiglu_backward(a.data(), b.data(), w.data(), x.data(), y.data(), count);
    keep();
    a = x;
    table.rope(a.data(), count / 2, y.data(), w.data(), false);
    keep();
    table.rope(a.data(), count / 2, w.data(), y.data(), true);
    keep();
    table.axpy(a.data(), 0.7F, y.data(), count);
    keep();
    table.scale(a.data(), 0.7F, count);
    keep();
    table.add(a.data(), y.data(), count);
    keep();
    table.exp(a.data(), x.data(), count);
    keep();
    all.push_back(table.dot(x.data(), y.data(), count));
    return all;
}

TEST_P(ElementwiseOnEachIsa, HasTheBitsOfThePlainOneForEveryLength) {
    for (std::size_t count = 1; count != 100; ++count) {
        ASSERT_EQ(differing(everything(table(), count, 100), everything(plain(), count, 100)), 0U)
            << count << " elements";
    }
}

TEST_P(ElementwiseOnEachIsa, NothingBeyondTheEndIsWritten) {
    for (std::size_t count = 1; count != 40; ++count) {
        auto const x = numbers(count, 13);
        std::vector<float> guarded(count + 32, 7.0F);
        table().swiglu(guarded.data() + 16, x.data(), x.data(), count);
        table().rms_norm(guarded.data() + 16, nullptr, x.data(), x.data(), count, 1e-6F);
        table().exp(guarded.data() + 16, x.data(), count);
        for (std::size_t i = 0; i != 16; ++i) {
            ASSERT_EQ(guarded[i], 7);
            ASSERT_EQ(guarded[count + 16 + i], 7);
        }
    }
}

}  // namespace
}  // namespace tinkxx::engine
