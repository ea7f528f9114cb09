#pragma once

// What "engine/kernels/isa/tiles.hpp" offers, in plain C++: eight tiles per thread.

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tinkxx::engine::TINKXX_ISA {
namespace {

struct alignas(64) TileConfig {
    std::uint8_t palette;
    std::uint8_t start_row;
    std::uint8_t reserved[14];
    std::uint16_t row_bytes[16];
    std::uint8_t rows[16];
};

struct Tile {
    std::size_t rows{0};
    std::size_t row_bytes{0};
    unsigned char bytes[16][64]{};
};
thread_local Tile tile_registers[8];

inline void tile_configure(TileConfig const& config) {
    for (int t = 0; t != 8; ++t) {
        tile_registers[t] = Tile{};
        tile_registers[t].rows = config.rows[t];
        tile_registers[t].row_bytes = config.row_bytes[t];
    }
}
inline void tile_release() { tile_configure(TileConfig{}); }

template <int T>
inline void tile_load(void const* from, std::int64_t stride_bytes) {
    auto& tile = tile_registers[T];
    std::memset(tile.bytes, 0, sizeof tile.bytes);
    for (std::size_t r = 0; r != tile.rows; ++r) {
        auto const* const row =
            static_cast<unsigned char const*>(from) + static_cast<std::int64_t>(r) * stride_bytes;
        std::memcpy(tile.bytes[r], row, tile.row_bytes);
    }
}
template <int T>
inline void tile_store(void* to, std::int64_t stride_bytes) {
    auto const& tile = tile_registers[T];
    for (std::size_t r = 0; r != tile.rows; ++r) {
        auto* const row =
            static_cast<unsigned char*>(to) + static_cast<std::int64_t>(r) * stride_bytes;
        std::memcpy(row, tile.bytes[r], tile.row_bytes);
    }
}

/// Two sums, over the first and over the second of each pair; subnormal inputs count as zero.
template <int Sum, int A, int B>
inline void tile_multiply() {
    auto const element = [](Tile const& tile, std::size_t row, std::size_t i) {
        std::uint16_t half = 0;
        std::memcpy(&half, tile.bytes[row] + 2 * i, 2);
        auto const bits = static_cast<std::uint32_t>(half) << 16;
        float value = 0;
        std::memcpy(&value, &bits, 4);
        return std::fpclassify(value) == FP_SUBNORMAL ? 0.0F : value;
    };
    auto& sum = tile_registers[Sum];
    auto const& a = tile_registers[A];
    auto const& b = tile_registers[B];
    for (std::size_t m = 0; m != sum.rows; ++m) {
        for (std::size_t n = 0; n != sum.row_bytes / 4; ++n) {
            float first = 0;
            float second = 0;
            for (std::size_t k = 0; k != a.row_bytes / 4; ++k) {
                first = std::fma(element(a, m, 2 * k), element(b, k, 2 * n), first);
                second = std::fma(element(a, m, 2 * k + 1), element(b, k, 2 * n + 1), second);
            }
            float old = 0;
            std::memcpy(&old, sum.bytes[m] + 4 * n, 4);
            old += first + second;
            std::memcpy(sum.bytes[m] + 4 * n, &old, 4);
        }
    }
}

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
