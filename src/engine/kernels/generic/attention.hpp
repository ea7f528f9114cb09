#pragma once

// Attention over V16 and the tiles of products.hpp.

#include "engine/kernels/generic/elementwise.hpp"
#include "engine/kernels/generic/products.hpp"
#include "engine/kernels/kernel_table.hpp"

namespace tinkxx::engine::TINKXX_ISA {
namespace {

constexpr std::size_t block = kv_block_positions;

/// c[rows × cols] = begin + a · b, b read where it lies: its rows are `cols` floats, no fewer.
inline void small_product(float* c, std::size_t c_stride, Rows a, std::size_t rows, float const* b,
                          std::size_t b_stride, std::size_t steps, std::size_t cols, Begin begin) {
    std::size_t col = 0;
    for (; col + strip <= cols; col += strip) {
        tiles<tile_vectors>(c + col, c_stride, a, rows, b + col, b_stride, steps, strip, begin,
                            nullptr);
    }
    if (col == cols) return;
    staged_product(
        c + col, c_stride, a, rows, steps, cols - col, begin, nullptr,
        [&](float* to, std::size_t step, std::size_t some, std::size_t at, std::size_t width) {
            stage_rows(to, b + step * b_stride + col + at, b_stride, some, width);
        });
}

/// How many of the block's keys the query at `position` sees.
inline std::size_t visible(std::size_t position, std::size_t block_start) {
    return smaller(block, beyond(position + 1, block_start));
}

/// The query rows [row, row + rows) of a call: row r is head r % group of token r / group.
inline float const* head_row(float const* data, std::size_t stride, AttentionShape const& shape,
                             std::size_t r) {
    return data + r / shape.group * stride + r % shape.group * shape.head_dim;
}
inline float* head_row(float* data, std::size_t stride, AttentionShape const& shape,
                       std::size_t r) {
    return data + r / shape.group * stride + r % shape.group * shape.head_dim;
}

inline void copy_scaled(float* to, float const* from, std::size_t count, float factor) {
    auto const by = set1(factor);
    sixteens(
        count, [&](std::size_t i) { store(to + i, load(from + i) * by); },
        [&](std::size_t i, std::size_t n) {
            store_first(to + i, load_first(from + i, n, 0) * by, n);
        });
}

/// Turns a row of scores into exp(score - max), 0 where nothing is to be seen; returns their sum
/// and raises `top`.
inline float block_softmax(float* scores, std::size_t seen, float& top) {
    V16 s[4];
    TINKXX_UNROLL
    for (std::size_t v = 0; v != 4; ++v) {
        auto const left = beyond(seen, 16 * v);
        s[v] =
            left >= 16 ? load(scores + 16 * v) : load_first(scores + 16 * v, left, minus_infinity);
    }
    top = maximum(max(set1(top), max(max(s[0], s[1]), max(s[2], s[3]))));
    auto const shift = set1(top);
    TINKXX_UNROLL
    for (std::size_t v = 0; v != 4; ++v) {
        s[v] = exp(s[v] - shift);
        store(scores + 16 * v, s[v]);
    }
    return sum((s[0] + s[1]) + (s[2] + s[3]));
}

void attention(AttentionShape const& shape, float const* q, std::size_t q_stride,
               KvBlock const* blocks, float* out, std::size_t out_stride, float* log_sums) {
    constexpr std::size_t most_rows = 24;
    alignas(64) float queries[most_rows * max_head_dim];
    alignas(64) float sums[most_rows * max_head_dim];
    alignas(64) float scores[most_rows * block];
    float top[most_rows];
    float total[most_rows];

    auto const dim = shape.head_dim;
    auto const all = shape.tokens * shape.group;
    for (std::size_t row = 0; row < all; row += most_rows) {
        auto const rows = smaller(most_rows, all - row);
        auto const position = [&](std::size_t r) {
            return shape.first_position + (row + r) / shape.group;
        };
        for (std::size_t r = 0; r != rows; ++r) {
            copy_scaled(queries + r * dim, head_row(q, q_stride, shape, row + r), dim, shape.scale);
            for (std::size_t i = 0; i != dim; ++i) sums[r * dim + i] = 0;
            top[r] = lowest;
            total[r] = 0;
        }
        std::size_t first = 0;
        for (std::size_t b = 0; b * block <= position(rows - 1); ++b) {
            // Rows are in the order of their positions: those that end before this block come
            // first and are left alone, so that nothing about them depends on their neighbours.
            while (visible(position(first), b * block) == 0) ++first;
            auto const some = rows - first;
            small_product(scores + first * block, block, {queries + first * dim, dim, 1}, some,
                          blocks[b].keys, block, dim, block, Begin::zero);
            for (std::size_t r = first; r != rows; ++r) {
                auto const before = top[r];
                auto const added =
                    block_softmax(scores + r * block, visible(position(r), b * block), top[r]);
                auto const fade = exp(before - top[r]);
                total[r] = total[r] * fade + added;
                if (fade != 1) scale(sums + r * dim, fade, dim);
            }
            small_product(sums + first * dim, dim, {scores + first * block, block, 1}, some,
                          blocks[b].values, dim, block, dim, Begin::old);
        }
        for (std::size_t r = 0; r != rows; ++r) {
            copy_scaled(head_row(out, out_stride, shape, row + r), sums + r * dim, dim,
                        1 / total[r]);
            if (log_sums != nullptr) {
                log_sums[row + r] = static_cast<float>(static_cast<double>(top[r]) +
                                                       portable_log(static_cast<double>(total[r])));
            }
        }
    }
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < cols.
inline void transpose(float* to, std::size_t to_stride, float const* from, std::size_t from_stride,
                      std::size_t rows, std::size_t cols) {
    auto const whole_rows = rows / 8 * 8;
    auto const whole_cols = cols / 8 * 8;
    for (std::size_t i = 0; i != whole_rows; i += 8) {
        for (std::size_t j = 0; j != whole_cols; j += 8) {
            transpose8(to + j * to_stride + i, to_stride, from + i * from_stride + j, from_stride);
        }
    }
    for (std::size_t i = 0; i != rows; ++i) {
        for (std::size_t j = i < whole_rows ? whole_cols : 0; j != cols; ++j) {
            to[j * to_stride + i] = from[i * from_stride + j];
        }
    }
}

/// One row of a block: turns its scores into weights, and the gradient of the weights into that of
/// the scores.
inline void score_gradient(float* weights, float* dscores, std::size_t seen, float log_sum,
                           float common) {
    auto const shift = set1(log_sum);
    auto const mean = set1(common);
    for (std::size_t j = 0; j != block; j += 16) {
        auto* const w = weights + j;
        auto* const d = dscores + j;
        auto const left = beyond(seen, j);
        auto const s = left >= 16 ? load(w) : load_first(w, left, minus_infinity);
        auto const p = exp(s - shift);
        store(w, p);
        store(d, p * (load(d) - mean));
    }
}

void attention_backward(AttentionShape const& shape, KvBlock const* blocks,
                        AttentionGradient const& g) {
    constexpr std::size_t most_rows = 48;
    alignas(64) float queries[most_rows * max_head_dim];
    alignas(64) float douts[most_rows * max_head_dim];
    alignas(64) float dqueries[most_rows * max_head_dim];
    alignas(64) float weights[most_rows * block];
    alignas(64) float dscores[most_rows * block];
    alignas(64) float keys[block * max_head_dim];
    alignas(64) float values[block * max_head_dim];
    float common[most_rows];

    auto const dim = shape.head_dim;
    auto const all = shape.tokens * shape.group;
    for (std::size_t row = 0; row < all; row += most_rows) {
        auto const rows = smaller(most_rows, all - row);
        auto const position = [&](std::size_t r) {
            return shape.first_position + (row + r) / shape.group;
        };
        for (std::size_t r = 0; r != rows; ++r) {
            auto const* const dout = head_row(g.dout, g.dout_stride, shape, row + r);
            copy_scaled(queries + r * dim, head_row(g.q, g.q_stride, shape, row + r), dim,
                        shape.scale);
            copy_scaled(douts + r * dim, dout, dim, 1);
            for (std::size_t i = 0; i != dim; ++i) dqueries[r * dim + i] = 0;
            common[r] = dot(dout, head_row(g.out, g.out_stride, shape, row + r), dim);
        }
        auto const last = position(rows - 1);
        std::size_t first = 0;
        for (std::size_t b = 0; b * block <= last; ++b) {
            while (visible(position(first), b * block) == 0) ++first;
            auto const some = rows - first;
            auto const some_keys = smaller(block, last + 1 - b * block);
            small_product(weights + first * block, block, {queries + first * dim, dim, 1}, some,
                          blocks[b].keys, block, dim, block, Begin::zero);
            transpose(values, block, blocks[b].values, dim, block, dim);
            small_product(dscores + first * block, block, {douts + first * dim, dim, 1}, some,
                          values, block, dim, block, Begin::zero);
            for (std::size_t r = first; r != rows; ++r) {
                score_gradient(weights + r * block, dscores + r * block,
                               visible(position(r), b * block), g.log_sums[row + r], common[r]);
            }
            // dv += wᵀ dout, dk += dsᵀ q (q carries the scale), dq += ds k (scaled at the end)
            small_product(g.dv + b * block * g.dv_stride, g.dv_stride,
                          {weights + first * block, 1, block}, some_keys, douts + first * dim, dim,
                          some, dim, Begin::old);
            small_product(g.dk + b * block * g.dk_stride, g.dk_stride,
                          {dscores + first * block, 1, block}, some_keys, queries + first * dim,
                          dim, some, dim, Begin::old);
            transpose(keys, dim, blocks[b].keys, block, dim, block);
            small_product(dqueries + first * dim, dim, {dscores + first * block, block, 1}, some,
                          keys, dim, block, dim, Begin::old);
        }
        for (std::size_t r = 0; r != rows; ++r) {
            copy_scaled(head_row(g.dq, g.dq_stride, shape, row + r), dqueries + r * dim, dim,
                        shape.scale);
        }
    }
}

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
