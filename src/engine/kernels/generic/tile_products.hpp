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

/// The three parts of up to `Rows` rows of up to `Steps` steps, padded with zeros to whole tiles.
template <std::size_t Rows, std::size_t Steps>
struct Parts {
    static constexpr std::int64_t row_bytes = Steps * sizeof(Bf16);
    alignas(64) Bf16 high[Rows * Steps];
    alignas(64) Bf16 middle[Rows * Steps];
    alignas(64) Bf16 low[Rows * Steps];

    void split(float const* x, std::size_t stride, std::size_t rows, std::size_t steps) {
        auto const padded = (steps + tile_steps - 1) / tile_steps * tile_steps;
        for (std::size_t r = 0; r != rows; ++r) {
            for (std::size_t k = 0; k < padded; k += 16) {
                auto const left = steps > k ? steps - k : 0;
                auto const* const from = x + r * stride + (left == 0 ? 0 : k);
                auto rest = left >= 16 ? load(from) : load_first(from, left, 0);
                auto const at = r * Steps + k;
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

inline void load_sums(float const* sums) {
    constexpr std::int64_t stride = wide * sizeof(float);
    tile_load<0>(sums, stride);
    tile_load<1>(sums + 16, stride);
    tile_load<2>(sums + 32, stride);
    tile_load<3>(sums + 48, stride);
}
inline void store_sums(float* sums) {
    constexpr std::int64_t stride = wide * sizeof(float);
    tile_store<0>(sums, stride);
    tile_store<1>(sums + 16, stride);
    tile_store<2>(sums + 32, stride);
    tile_store<3>(sums + 48, stride);
}

/// Adds the 32 steps from element `at` of the parts to the sums, for 64 columns.
template <class P>
inline void multiply_tile(P const& parts, std::size_t at, Bf16 const* pairs) {
    constexpr std::int64_t stride = wide * 2 * sizeof(Bf16);
    tile_load<4>(parts.low + at, P::row_bytes);
    tile_load<5>(parts.middle + at, P::row_bytes);
    tile_load<6>(parts.high + at, P::row_bytes);
    tile_load<7>(pairs, stride);
    tile_multiply<0, 4, 7>();
    tile_multiply<0, 5, 7>();
    tile_multiply<0, 6, 7>();
    tile_load<7>(pairs + 32, stride);
    tile_multiply<1, 4, 7>();
    tile_multiply<1, 5, 7>();
    tile_multiply<1, 6, 7>();
    tile_load<7>(pairs + 64, stride);
    tile_multiply<2, 4, 7>();
    tile_multiply<2, 5, 7>();
    tile_multiply<2, 6, 7>();
    tile_load<7>(pairs + 96, stride);
    tile_multiply<3, 4, 7>();
    tile_multiply<3, 5, 7>();
    tile_multiply<3, 6, 7>();
}

/// What the sums of up to 64 columns begin with.
inline void begin_sums(float* sums, float const* c, float const* bias, std::size_t cols, bool add) {
    for (std::size_t j = 0; j < cols; j += 16) {
        auto const n = least(16, cols - j);
        auto value = set1(0);
        if (add) value = load_first(c + j, n, 0);
        if (bias != nullptr) value = value + load_first(bias + j, n, 0);
        store(sums + j, value);
    }
}
inline void end_sums(float* c, float const* sums, std::size_t cols) {
    for (std::size_t j = 0; j < cols; j += 16) {
        store_first(c + j, load(sums + j), least(16, cols - j));
    }
}

/// c[rows × cols] = begin + a · B. `stage(staged, step, steps, col, cols)` writes the steps
/// [step, step + steps) of up to 64 columns of B.
template <class Stage>
inline void tile_product(float* c, std::size_t c_stride, float const* a, std::size_t a_stride,
                         std::size_t rows, std::size_t steps, std::size_t cols, bool add,
                         float const* bias, Stage stage) {
    Parts<split_rows, split_steps> parts;
    Staged staged;
    alignas(64) float sums[tile_side * wide];
    std::size_t configured = 0;
    for (std::size_t row = 0; row < rows; row += split_rows) {
        auto const some_rows = least(split_rows, rows - row);
        std::size_t step = 0;
        do {
            auto const some_steps = least(split_steps, steps - step);
            auto const* const added = step == 0 ? bias : nullptr;
            parts.split(a + row * a_stride + step, a_stride, some_rows, some_steps);
            for (std::size_t col = 0; col < cols; col += wide) {
                auto const some_cols = least(wide, cols - col);
                stage(staged, step, some_steps, col, some_cols);
                for (std::size_t r = 0; r < some_rows; r += tile_side) {
                    auto const now = least(tile_side, some_rows - r);
                    if (now != configured) configure(configured = now);
                    auto* const to = c + (row + r) * c_stride + col;
                    for (std::size_t i = 0; i != now; ++i) {
                        begin_sums(sums + i * wide, to + i * c_stride,
                                   added == nullptr ? nullptr : added + col, some_cols,
                                   add || step != 0);
                    }
                    load_sums(sums);
                    for (std::size_t k = 0; k < some_steps; k += tile_steps) {
                        multiply_tile(parts, r * split_steps + k, staged.pairs + k * wide);
                    }
                    store_sums(sums);
                    for (std::size_t i = 0; i != now; ++i) {
                        end_sums(to + i * c_stride, sums + i * wide, some_cols);
                    }
                }
            }
            step += some_steps;
        } while (step < steps);
    }
    tile_release();
}

// Up to sixteen rows, as when tokens are sampled: weights are read once, so all depends on how fast
// they come. They are put in pairs 32 steps at a time, for the tile that multiplies them at once,
// while those that follow are on their way.

/// Steps whose parts fit into the L2 cache.
constexpr std::size_t few_steps = 3072;
/// How far ahead of itself a product asks for weights.
constexpr std::size_t ahead_bytes = 2048;

/// Which columns of 32 a vector of neighbouring pairs holds: the first four of each eight, and the
/// last four of each eight. This is the order that comes for free when two steps are put in pairs.
struct PairOrder {
    alignas(64) static constexpr std::uint32_t to[2][16]{
        {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27},
        {4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31}};
    alignas(64) static constexpr std::uint32_t back[2][16]{
        {0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23},
        {8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31}};

    /// Puts 64 sums in the order, or back.
    static void permute(float* sums, std::uint32_t const (&order)[2][16]) {
        for (std::size_t j = 0; j != wide; j += 32) {
            auto const a = _mm512_loadu_ps(sums + j);
            auto const b = _mm512_loadu_ps(sums + j + 16);
            for (std::size_t i = 0; i != 2; ++i) {
                auto const lanes = _mm512_loadu_si512(order[i]);
                _mm512_storeu_ps(sums + j + 16 * i, _mm512_permutex2var_ps(a, lanes, b));
            }
        }
    }
};

/// 32 steps of 64 weights in pairs, the columns in the order of `PairOrder`.
inline void pair_tile(Bf16* to, Bf16 const* from) {
    for (std::size_t k = 0; k != tile_steps; k += 2, from += 2 * wide, to += 2 * wide) {
        auto const* const later = reinterpret_cast<char const*>(from) + ahead_bytes;
        for (std::size_t line = 0; line != 4; ++line) prefetch(later + 64 * line);
        for (std::size_t j = 0; j != wide; j += 32) {
            auto const a = _mm512_loadu_si512(from + j);
            auto const b = _mm512_loadu_si512(from + wide + j);
            _mm512_storeu_si512(to + 2 * j, _mm512_unpacklo_epi16(a, b));
            _mm512_storeu_si512(to + 2 * j + 32, _mm512_unpackhi_epi16(a, b));
        }
    }
}

/// The tile of steps [0, steps) and columns [0, cols) of a panel that ends within it.
inline void pair_rest(Bf16* to, Bf16 const* from, std::size_t stride, std::size_t steps,
                      std::size_t cols) {
    alignas(64) Bf16 even[tile_steps * wide];
    for (std::size_t k = 0; k != tile_steps; ++k) {
        for (std::size_t j = 0; j != wide; ++j) {
            even[k * wide + j] = k < steps && j < cols ? from[k * stride + j] : Bf16{};
        }
    }
    pair_tile(to, even);
}

void few_rows_in_tiles(ForwardArgs const& g) {
    Parts<tile_side, few_steps> parts;
    alignas(64) Bf16 pairs[2][tile_steps * wide];
    alignas(64) float sums[tile_side * wide];
    configure(g.rows);
    std::size_t step = 0;
    do {
        auto const steps = least(few_steps, g.inputs - step);
        parts.split(g.x + step, g.x_stride, g.rows, steps);
        for (std::size_t col = 0; col < g.outputs; col += wide) {
            auto const cols = least(wide, g.outputs - col);
            auto const* const from =
                static_cast<Bf16 const*>(g.panels) + col * g.inputs + step * cols;
            auto const* const bias = g.bias == nullptr || step != 0 ? nullptr : g.bias + col;
            for (std::size_t i = 0; i != g.rows; ++i) {
                auto* const sum = sums + i * wide;
                begin_sums(sum, g.y + i * g.y_stride + col, bias, cols, g.add || step != 0);
                PairOrder::permute(sum, PairOrder::to);
            }
            load_sums(sums);
            for (std::size_t k = 0; k < steps; k += tile_steps) {
                auto* const to = pairs[k / tile_steps % 2];
                if (cols == wide && k + tile_steps <= steps) {
                    pair_tile(to, from + k * wide);
                } else {
                    pair_rest(to, from + k * cols, cols, least(tile_steps, steps - k), cols);
                }
                multiply_tile(parts, k, to);
            }
            store_sums(sums);
            for (std::size_t i = 0; i != g.rows; ++i) {
                auto* const sum = sums + i * wide;
                PairOrder::permute(sum, PairOrder::back);
                end_sums(g.y + i * g.y_stride + col, sum, cols);
            }
        }
        step += steps;
    } while (step < g.inputs);
    tile_release();
}

void forward_in_tiles(ForwardArgs const& g) {
    if (g.rows <= tile_side) return few_rows_in_tiles(g);
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
