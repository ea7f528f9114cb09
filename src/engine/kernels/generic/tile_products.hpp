#pragma once

// Products with bfloat16 weights in AMX tiles. The other factor is split into three bfloat16 parts
// whose sum it is, all but its last bit or so; a tile multiplies 16 rows of a part by 16 columns
// over 32 steps. A row's order of additions is fixed: 32 steps after 32 steps, in each of them the
// small part first. Neither rows nor threads change it, so every number of rows has the same bits.

#include "engine/kernels/kernel_table.hpp"

namespace tinkxx::engine::TINKXX_ISA {
namespace {

/// Steps of one tile, rows of one tile, columns of four.
constexpr std::size_t tile_steps = 32;
constexpr std::size_t tile_side = 16;
constexpr std::size_t wide = 64;
/// What is split and staged at a time: 288 KB of parts and 64 KB of weights, for the L2 cache.
constexpr std::size_t split_rows = 96;
constexpr std::size_t split_steps = 512;

constexpr std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }

/// Sixteen floats to the nearest bfloat16, and what is missing.
inline V16 take_part(Bf16* to, V16 value) {
    store_bf16(to, value);
    return value - load(to);
}

/// The three parts of some rows, padded with zeros to whole tiles.
struct Parts {
    alignas(64) Bf16 high[split_rows * split_steps];
    alignas(64) Bf16 middle[split_rows * split_steps];
    alignas(64) Bf16 low[split_rows * split_steps];

    void split(float const* x, std::size_t stride, std::size_t rows, std::size_t steps) {
        auto const padded = (steps + tile_steps - 1) / tile_steps * tile_steps;
        for (std::size_t r = 0; r != rows; ++r) {
            for (std::size_t k = 0; k < padded; k += 16) {
                auto const left = steps > k ? steps - k : 0;
                auto const* const from = x + r * stride + (left == 0 ? 0 : k);
                auto rest = left >= 16 ? load(from) : load_first(from, left, 0);
                auto const at = r * split_steps + k;
                rest = take_part(high + at, rest);
                rest = take_part(middle + at, rest);
                store_bf16(low + at, rest);
            }
        }
    }
};

/// Weights as tiles read them: step 2i and step 2i + 1 of a column side by side.
struct alignas(64) Staged {
    Bf16 pairs[split_steps / 2 * wide * 2];
};

/// From `steps` rows of `cols` weights, cols <= 64; zeros beyond.
inline void stage_pairs(Staged& to, Bf16 const* from, std::size_t stride, std::size_t steps,
                        std::size_t cols) {
    auto const padded = (steps + tile_steps - 1) / tile_steps * tile_steps;
    // Which halves of two vectors of 32 make the pairs of the first 16 columns, and of the others.
    auto const index = [](std::size_t first) {
        alignas(64) std::uint16_t lanes[32];
        for (std::size_t i = 0; i != 16; ++i) {
            lanes[2 * i] = static_cast<std::uint16_t>(first + i);
            lanes[2 * i + 1] = static_cast<std::uint16_t>(first + i + 32);
        }
        return _mm512_loadu_si512(lanes);
    };
    auto const lower = index(0);
    auto const upper = index(16);
    alignas(64) Bf16 row[2][wide];
    for (std::size_t k = 0; k < padded; k += 2) {
        Bf16 const* rows[2];
        for (std::size_t i = 0; i != 2; ++i) {
            rows[i] = from + (k + i) * stride;
            if (cols == wide && k + i < steps) continue;
            for (std::size_t j = 0; j != wide; ++j) {
                row[i][j] = j < cols && k + i < steps ? rows[i][j] : Bf16{};
            }
            rows[i] = row[i];
        }
        auto* const out = to.pairs + k * wide;
        for (std::size_t j = 0; j != wide; j += 32) {
            auto const a = _mm512_loadu_si512(rows[0] + j);
            auto const b = _mm512_loadu_si512(rows[1] + j);
            _mm512_storeu_si512(out + 2 * j, _mm512_permutex2var_epi16(a, lower, b));
            _mm512_storeu_si512(out + 2 * j + 32, _mm512_permutex2var_epi16(a, upper, b));
        }
    }
}

/// From `cols` rows (inputs) of up to 64 weights (outputs), which are the steps here. Two
/// neighbouring outputs are four bytes that stay together: a transposition of 32-bit elements.
inline void stage_transposed_pairs(Staged& to, std::size_t at, Bf16 const* from, std::size_t width,
                                   std::size_t cols) {
    alignas(64) Bf16 even[wide * wide];
    if (width != wide || cols != wide) {
        for (std::size_t k = 0; k != wide; ++k) {
            for (std::size_t n = 0; n != wide; ++n) {
                even[k * wide + n] = k < cols && n < width ? from[k * width + n] : Bf16{};
            }
        }
        from = even;
    }
    // Moved as floats, never computed with.
    auto const* const in = reinterpret_cast<float const*>(from);
    auto* const out = reinterpret_cast<float*>(to.pairs + at * wide);
    for (std::size_t k = 0; k != wide; k += 8) {
        for (std::size_t pair = 0; pair != wide / 2; pair += 8) {
            transpose8(out + pair * wide + k, wide, in + k * (wide / 2) + pair, wide / 2);
        }
    }
}

inline void configure(std::size_t rows) {
    TileConfig config{};
    config.palette = 1;
    for (int t = 0; t != 8; ++t) {
        config.row_bytes[t] = 64;
        config.rows[t] = static_cast<std::uint8_t>(t == 7 ? tile_side : rows);
    }
    tile_configure(config);
}

/// sums[rows × 64] += parts · staged, rows <= 16.
inline void multiply_tiles(float* sums, Parts const& parts, std::size_t row, Staged const& staged,
                           std::size_t steps) {
    constexpr std::int64_t sum_stride = wide * sizeof(float);
    constexpr std::int64_t part_stride = split_steps * sizeof(Bf16);
    constexpr std::int64_t pair_stride = wide * 2 * sizeof(Bf16);
    tile_load<0>(sums, sum_stride);
    tile_load<1>(sums + 16, sum_stride);
    tile_load<2>(sums + 32, sum_stride);
    tile_load<3>(sums + 48, sum_stride);
    for (std::size_t k = 0; k < steps; k += tile_steps) {
        auto const at = row * split_steps + k;
        tile_load<4>(parts.low + at, part_stride);
        tile_load<5>(parts.middle + at, part_stride);
        tile_load<6>(parts.high + at, part_stride);
        auto const* const w = staged.pairs + k * wide;
        tile_load<7>(w, pair_stride);
        tile_multiply<0, 4, 7>();
        tile_multiply<0, 5, 7>();
        tile_multiply<0, 6, 7>();
        tile_load<7>(w + 32, pair_stride);
        tile_multiply<1, 4, 7>();
        tile_multiply<1, 5, 7>();
        tile_multiply<1, 6, 7>();
        tile_load<7>(w + 64, pair_stride);
        tile_multiply<2, 4, 7>();
        tile_multiply<2, 5, 7>();
        tile_multiply<2, 6, 7>();
        tile_load<7>(w + 96, pair_stride);
        tile_multiply<3, 4, 7>();
        tile_multiply<3, 5, 7>();
        tile_multiply<3, 6, 7>();
    }
    tile_store<0>(sums, sum_stride);
    tile_store<1>(sums + 16, sum_stride);
    tile_store<2>(sums + 32, sum_stride);
    tile_store<3>(sums + 48, sum_stride);
}

/// c[rows × cols] = begin + a · B. `stage(staged, step, steps, col, cols)` writes the steps
/// [step, step + steps) of up to 64 columns of B.
template <class Stage>
inline void tile_product(float* c, std::size_t c_stride, float const* a, std::size_t a_stride,
                         std::size_t rows, std::size_t steps, std::size_t cols, bool add,
                         float const* bias, Stage stage) {
    Parts parts;
    Staged staged;
    alignas(64) float sums[tile_side * wide];
    std::size_t configured = 0;
    for (std::size_t row = 0; row < rows; row += split_rows) {
        auto const some_rows = least(split_rows, rows - row);
        std::size_t step = 0;
        do {
            auto const some_steps = least(split_steps, steps - step);
            parts.split(a + row * a_stride + step, a_stride, some_rows, some_steps);
            for (std::size_t col = 0; col < cols; col += wide) {
                auto const some_cols = least(wide, cols - col);
                stage(staged, step, some_steps, col, some_cols);
                for (std::size_t r = 0; r < some_rows; r += tile_side) {
                    auto const tile_rows_now = least(tile_side, some_rows - r);
                    if (tile_rows_now != configured) {
                        configure(tile_rows_now);
                        configured = tile_rows_now;
                    }
                    auto const each_vector = [&](auto body) {
                        for (std::size_t i = 0; i != tile_rows_now; ++i) {
                            for (std::size_t j = 0; j < some_cols; j += 16) {
                                body(c + (row + r + i) * c_stride + col + j, sums + i * wide + j,
                                     col + j, least(16, some_cols - j));
                            }
                        }
                    };
                    each_vector([&](float* to, float* sum, std::size_t at, std::size_t n) {
                        auto value = set1(0);
                        if (add || step != 0) value = load_first(to, n, 0);
                        if (bias != nullptr && step == 0)
                            value = value + load_first(bias + at, n, 0);
                        store(sum, value);
                    });
                    multiply_tiles(sums, parts, r, staged, some_steps);
                    each_vector([&](float* to, float* sum, std::size_t, std::size_t n) {
                        store_first(to, load(sum), n);
                    });
                }
            }
            step += some_steps;
        } while (step < steps);
    }
    tile_release();
}

void forward_in_tiles(ForwardArgs const& g) {
    auto const* const panels = static_cast<Bf16 const*>(g.panels);
    tile_product(
        g.y, g.y_stride, g.x, g.x_stride, g.rows, g.inputs, g.outputs, g.add, g.bias,
        [&](Staged& to, std::size_t step, std::size_t steps, std::size_t col, std::size_t cols) {
            // Sixty-four columns are a panel, whose width they are.
            stage_pairs(to, panels + col * g.inputs + step * cols, cols, steps, cols);
        });
}

void backward_input_in_tiles(BackwardInputArgs const& g) {
    auto const* const panels = static_cast<Bf16 const*>(g.panels);
    tile_product(
        g.dx + g.first, g.dx_stride, g.dy, g.dy_stride, g.rows, g.outputs, g.columns, g.add,
        nullptr,
        [&](Staged& to, std::size_t step, std::size_t steps, std::size_t col, std::size_t cols) {
            for (std::size_t at = 0; at < steps; at += wide) {
                auto const width = least(wide, g.outputs - step - at);
                stage_transposed_pairs(
                    to, at, panels + (step + at) * g.inputs + (g.first + col) * width, width, cols);
            }
        });
}

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
