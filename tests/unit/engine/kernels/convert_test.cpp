#include "engine/kernels/convert.hpp"

#include "support.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tinkxx::engine {
namespace {

std::vector<std::uint16_t> all_bits() {
    std::vector<std::uint16_t> bits(65536);
    for (std::size_t i = 0; i != bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    return bits;
}

/// The value of a number of sign, `exponent` and `fraction` bits, by the definition.
double defined_value(std::uint16_t bits, int exponent_bits, int fraction_bits) {
    int const bias = (1 << (exponent_bits - 1)) - 1;
    int const exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    double const fraction = bits & ((1 << fraction_bits) - 1);
    double const sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) {
        return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    }
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

/// A float, at and on both sides of the middle between each positive half and the next.
std::vector<float> around_the_middles(int exponent_bits, int fraction_bits) {
    std::vector<float> values;
    for (unsigned bits = 0;; ++bits) {
        auto const here =
            defined_value(static_cast<std::uint16_t>(bits), exponent_bits, fraction_bits);
        if (std::isinf(here)) break;
        auto next =
            defined_value(static_cast<std::uint16_t>(bits + 1), exponent_bits, fraction_bits);
        // Beyond the largest lies what would come next had the exponent more bits.
        if (std::isinf(next)) {
            next = here + (here - defined_value(static_cast<std::uint16_t>(bits - 1), exponent_bits,
                                                fraction_bits));
        }
        auto const middle = static_cast<float>((here + next) / 2);
        values.insert(values.end(), {static_cast<float>(here), middle, std::nextafterf(middle, 0),
                                     std::nextafterf(middle, 3e38F)});
    }
    return values;
}

/// The nearest of the finite values, by trying both neighbours; ties to the even one.
std::uint16_t defined_rounding(float value, int exponent_bits, int fraction_bits) {
    auto const infinite = static_cast<unsigned>(((1 << exponent_bits) - 1) << fraction_bits);
    unsigned low = 0;
    unsigned high = infinite;
    while (high - low > 1) {
        auto const middle = (low + high) / 2;
        auto const at =
            defined_value(static_cast<std::uint16_t>(middle), exponent_bits, fraction_bits);
        (at <= static_cast<double>(value) ? low : high) = middle;
    }
    auto const below = defined_value(static_cast<std::uint16_t>(low), exponent_bits, fraction_bits);
    auto above = defined_value(static_cast<std::uint16_t>(high), exponent_bits, fraction_bits);
    if (std::isinf(above)) {
        above = below + (below - defined_value(static_cast<std::uint16_t>(low - 1), exponent_bits,
                                               fraction_bits));
    }
    auto const down = value - below;
    auto const up = above - value;
    if (down == up) return static_cast<std::uint16_t>(low % 2 == 0 ? low : high);
    return static_cast<std::uint16_t>(down < up ? low : high);
}

class ConvertOnEachIsa : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Convert, ConvertOnEachIsa, all_isas, isa_label);

TEST_P(ConvertOnEachIsa, WideningIsExactForEveryBf16) {
    auto const bits = all_bits();
    std::vector<float> wide(bits.size());
    table().widen_bf16(wide.data(), reinterpret_cast<Bf16 const*>(bits.data()), bits.size());
    for (std::size_t i = 0; i != bits.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), static_cast<std::uint32_t>(i) << 16);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(bf16_to_float(bits[i])),
                  static_cast<std::uint32_t>(i) << 16);
    }
}

TEST_P(ConvertOnEachIsa, WideningIsExactForEveryF16) {
    auto const bits = all_bits();
    std::vector<float> wide(bits.size());
    table().widen_f16(wide.data(), reinterpret_cast<F16 const*>(bits.data()), bits.size());
    for (std::size_t i = 0; i != bits.size(); ++i) {
        auto const expected = defined_value(bits[i], 5, 10);
        if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(wide[i]));
        } else {
            ASSERT_EQ(static_cast<double>(wide[i]), expected);
            ASSERT_EQ(std::signbit(wide[i]), std::signbit(expected));
        }
        auto const scalar = f16_to_float(bits[i]);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(scalar));
    }
}

TEST_P(ConvertOnEachIsa, EveryHalfSurvivesTheRoundTrip) {
    auto const bits = all_bits();
    std::vector<float> wide(bits.size());
    std::vector<std::uint16_t> back(bits.size());
    table().widen_f16(wide.data(), reinterpret_cast<F16 const*>(bits.data()), bits.size());
    table().narrow_f16(reinterpret_cast<F16*>(back.data()), wide.data(), bits.size());
    for (std::size_t i = 0; i != bits.size(); ++i) {
        auto const quiet = std::isnan(wide[i]) ? 0x200 : 0;
        ASSERT_EQ(back[i], bits[i] | quiet);
        ASSERT_EQ(float_to_f16(wide[i]), back[i]);
    }
    table().widen_bf16(wide.data(), reinterpret_cast<Bf16 const*>(bits.data()), bits.size());
    table().narrow_bf16(reinterpret_cast<Bf16*>(back.data()), wide.data(), bits.size());
    for (std::size_t i = 0; i != bits.size(); ++i) {
        auto const quiet = std::isnan(wide[i]) ? 0x40 : 0;
        ASSERT_EQ(back[i], bits[i] | quiet);
        ASSERT_EQ(float_to_bf16(wide[i]), back[i]);
    }
}

TEST_P(ConvertOnEachIsa, NarrowingRoundsToTheNearestAndTiesToEven) {
    for (auto const type : {ElementType::bf16, ElementType::f16}) {
        auto const half = type == ElementType::f16;
        auto const values = around_the_middles(half ? 5 : 8, half ? 10 : 7);
        std::vector<std::uint16_t> rounded(values.size());
        if (half) {
            table().narrow_f16(reinterpret_cast<F16*>(rounded.data()), values.data(),
                               values.size());
        } else {
            table().narrow_bf16(reinterpret_cast<Bf16*>(rounded.data()), values.data(),
                                values.size());
        }
        for (std::size_t i = 0; i != values.size(); ++i) {
            auto const expected = defined_rounding(values[i], half ? 5 : 8, half ? 10 : 7);
            ASSERT_EQ(rounded[i], expected) << values[i];
            auto const negative = half ? float_to_f16(-values[i]) : float_to_bf16(-values[i]);
            ASSERT_EQ(negative, expected | 0x8000);
        }
    }
}

TEST_P(ConvertOnEachIsa, ValuesBeyondTheRangeBecomeInfinite) {
    float const values[]{65520, 1e10F, 3.4e38F, -65520};
    F16 halves[4];
    table().narrow_f16(halves, values, 4);
    std::uint16_t bits[4];
    std::memcpy(bits, halves, sizeof bits);
    EXPECT_EQ(bits[0], 0x7c00);
    EXPECT_EQ(bits[1], 0x7c00);
    EXPECT_EQ(bits[2], 0x7c00);
    EXPECT_EQ(bits[3], 0xfc00);
}

TEST(Convert, AnyAddressAndLengthWillDo) {
    for (auto const type : {ElementType::f32, ElementType::bf16, ElementType::f16}) {
        for (std::size_t count = 0; count != 40; ++count) {
            auto const values = numbers(count, 5);
            std::vector<std::byte> bytes(count * element_bytes(type) + 3, std::byte{7});
            narrow(bytes.data() + 1, type, values.data(), count);
            EXPECT_EQ(bytes.front(), std::byte{7});
            EXPECT_EQ(bytes[bytes.size() - 2], std::byte{7});
            std::vector<float> back(count + 1, 9);
            widen(back.data(), type, bytes.data() + 1, count);
            EXPECT_EQ(back.back(), 9);
            for (std::size_t i = 0; i != count; ++i) {
                EXPECT_NEAR(back[i], values[i], type == ElementType::f32 ? 0 : 0.01);
            }
        }
    }
}

}  // namespace
}  // namespace tinkxx::engine
