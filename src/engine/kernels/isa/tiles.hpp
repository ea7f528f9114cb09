#pragma once

// The AMX instructions. Each is written as asm that says it touches memory: g++ 12 has intrinsics
// that do not, and moves or drops the stores of what a tile is about to read.

#include <cstdint>

namespace tinkxx::engine::TINKXX_ISA {
namespace {

/// The shape of each tile: its rows, and the bytes of a row.
struct alignas(64) TileConfig {
    std::uint8_t palette;
    std::uint8_t start_row;
    std::uint8_t reserved[14];
    std::uint16_t row_bytes[16];
    std::uint8_t rows[16];
};

inline void tile_configure(TileConfig const& config) {
    __asm__ volatile("ldtilecfg %0" : : "m"(config) : "memory");
}
inline void tile_release() { __asm__ volatile("tilerelease" : : : "memory"); }

template <int Tile>
inline void tile_load(void const* from, std::int64_t stride_bytes) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(from), "r"(stride_bytes), "i"(Tile)
                     : "memory");
}
template <int Tile>
inline void tile_store(void* to, std::int64_t stride_bytes) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                     :
                     : "r"(to), "r"(stride_bytes), "i"(Tile)
                     : "memory");
}
/// Sum += A · B, A of pairs of bfloat16, B of pairs below each other.
template <int Sum, int A, int B>
inline void tile_multiply() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(A), "i"(B));
}

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
