#include "engine/kernels/packed_matrix.hpp"

#include "engine/common/threads.hpp"
#include "engine/kernels/convert.hpp"

#include "support.hpp"

#include <rapidcheck.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

namespace tinkxx::engine {
namespace {

constexpr ElementType all_types[]{ElementType::f32, ElementType::bf16, ElementType::f16};

std::vector<std::byte> stored(std::span<float const> values, ElementType type) {
    std::vector<std::byte> bytes(values.size() * element_bytes(type));
    narrow(bytes.data(), type, values.data(), values.size());
    return bytes;
}

TEST(PackedMatrix, GivesBackWhatItWasMadeFrom) {
    EXPECT_TRUE(rc::check([] {
        auto const n = *rc::gen::inRange<std::size_t>(1, 200);
        auto const k = *rc::gen::inRange<std::size_t>(1, 300);
        auto const type =
            *rc::gen::elementOf(std::vector(std::begin(all_types), std::end(all_types)));
        auto const bytes = stored(numbers(n * k, 1), type);
        // A file's tensors may begin at any address.
        std::vector<std::byte> shifted(bytes.size() + 1);
        std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
        PackedMatrix const packed{{type, shifted.data() + 1, n, k}};
        RC_ASSERT(packed.bytes() == bytes.size());
        std::vector<std::byte> back(bytes.size());
        packed.unpack(back.data());
        RC_ASSERT(back == bytes);

        std::vector<float> wide(n * k);
        widen(wide.data(), type, bytes.data(), wide.size());
        std::vector<float> row(k);
        for (std::size_t i = 0; i != n; ++i) {
            packed.gather_row(i, row.data());
            RC_ASSERT(differing(row, std::span{wide}.subspan(i * k, k)) == 0U);
        }
    }));
}

TEST(PackedMatrix, TakesNoMoreBytesThanTheFile) {
    std::vector<std::byte> const bytes(1001 * 7 * 2);
    EXPECT_EQ(PackedMatrix({ElementType::bf16, bytes.data(), 1001, 7}).bytes(), 1001U * 7 * 2);
    EXPECT_TRUE(PackedMatrix{}.empty());
}

TEST(PackedMatrix, PanelsHoldSixtyFourOutputsInputAfterInput) {
    std::size_t const n = 70;
    std::size_t const k = 3;
    std::vector<float> values(n * k);
    for (std::size_t i = 0; i != values.size(); ++i) values[i] = static_cast<float>(i);
    PackedMatrix const packed{{ElementType::f32, values.data(), n, k}};
    auto const at = packed.values();
    for (std::size_t i = 0; i != n; ++i) {
        for (std::size_t j = 0; j != k; ++j) {
            auto const panel = i / 64;
            EXPECT_EQ(at[panel * 64 * k + j * packed.width(panel) + i % 64], values[i * k + j]);
        }
    }
}

TEST(PackedMatrix, AssigningRoundsFloatsToItsOwnType) {
    auto const values = numbers(130 * 300, 3);
    for (auto const type : {ElementType::bf16, ElementType::f16}) {
        auto const bytes = stored(values, type);
        Threads threads{2};
        PackedMatrix packed{{type, std::vector<std::byte>(bytes.size()).data(), 130, 300}};
        packed.assign({ElementType::f32, values.data(), 130, 300}, &threads);
        std::vector<std::byte> back(bytes.size());
        packed.unpack(back.data(), &threads);
        EXPECT_EQ(back, bytes);
    }
}

TEST(PackedMatrix, AssigningAnotherShapeOrTypeIsRefused) {
    std::vector<float> const values(64);
    PackedMatrix packed{{ElementType::f32, values.data(), 8, 8}};
    EXPECT_THROW(packed.assign({ElementType::f32, values.data(), 4, 16}), std::invalid_argument);
    EXPECT_THROW(packed.assign({ElementType::bf16, values.data(), 8, 8}), std::invalid_argument);
}

TEST(PackedMatrix, ZerosAreFloats) {
    PackedMatrix packed{3, 5};
    ASSERT_EQ(packed.values().size(), 15U);
    for (float const value : packed.values()) EXPECT_EQ(value, 0);
}

TEST(PackedMatrix, ThoseOfAnArenaLieSideBySideAndOutliveIt) {
    auto const inputs = std::size_t{1} << 14U;
    auto const address = [](PackedMatrix const& matrix) {
        return reinterpret_cast<std::uintptr_t>(matrix.panel(0));
    };
    auto const values = numbers(20 * inputs, 1);
    PackedMatrix second;
    {
        std::optional<PanelArena> arena{std::in_place, 39 * inputs * sizeof(float), 2};
        PackedMatrix const first{19, inputs, &*arena};
        second = PackedMatrix{{ElementType::f32, values.data(), 20, inputs}, nullptr, &*arena};
        EXPECT_EQ(address(first) % (std::size_t{2} << 20U), 0U) << "the begin of a large page";
        EXPECT_EQ(address(second), address(first) + first.bytes());
        // There is no room for more; it has memory of its own.
        PackedMatrix const third{1, inputs, &*arena};
        EXPECT_EQ(third.values()[inputs - 1], 0.0F);
        arena.reset();
    }
    std::vector<float> back(values.size());
    second.unpack(back.data());
    EXPECT_EQ(back, values);
    second = {};
}

TEST(PackedMatrix, AnArenaThatIsTooSmallForLargePagesTakesNothing) {
    PanelArena arena{1000, 2};
    EXPECT_EQ(arena.take(100), nullptr);
    PackedMatrix const matrix{3, 5, &arena};
    EXPECT_EQ(matrix.values()[14], 0.0F);
}

}  // namespace
}  // namespace tinkxx::engine
