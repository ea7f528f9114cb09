#pragma once

#include "engine/kernels/types.hpp"

#include <cstddef>

// Causal attention of the query heads that share one key/value head. Keys and values lie in blocks
// of 64 positions; block b holds the absolute positions [64 b, 64 b + 64). A query sees its blocks
// in ascending order whatever is computed with it, so its bits depend on nothing else.
// Single-threaded (split by sequence and head), no allocation, same bits on every instruction set.

namespace tinkxx::engine {

inline constexpr std::size_t kv_block_positions = 64;
/// The largest head size the kernels take.
inline constexpr std::size_t max_head_dim = 256;

/// 64 positions of one key/value head: keys[head_dim][64], dimension after dimension, and
/// values[64][head_dim]. Positions that are not written yet may hold anything but NaN and infinity
/// (zero new blocks once).
struct KvBlock {
    float* keys{nullptr};
    float* values{nullptr};
};

/// Stores the keys and values of `count` positions, rows of head_dim floats, at [slot, slot +
/// count) of a block; slot + count <= 64.
void store_kv(KvBlock block, std::size_t head_dim, std::size_t slot, std::size_t count,
              float const* keys, std::size_t keys_stride, float const* values,
              std::size_t values_stride);

/// Queries of consecutive positions. Row `t` of a matrix of queries (outputs, gradients) starts at
/// data + t * stride and holds `group` heads of head_dim floats.
struct AttentionShape {
    /// Query tokens, and the absolute position of the first.
    std::size_t tokens{0};
    std::size_t first_position{0};
    /// Query heads that share the key/value head.
    std::size_t group{1};
    /// A multiple of 2, at most `max_head_dim`.
    std::size_t head_dim{0};
    /// Usually 1/sqrt(head_dim).
    float scale{1};
};

/// out = softmax(scale * q·kᵀ, causal) · v. `blocks` covers the positions up to that of the last
/// query. Writes the log of the softmax's denominator to log_sums[t * group + g] unless null.
void attention(AttentionShape const& shape, float const* q, std::size_t q_stride,
               KvBlock const* blocks, float* out, std::size_t out_stride, float* log_sums);

/// What `attention_backward` reads and adds to.
struct AttentionGradient {
    /// As given to and by `attention`.
    float const* q{nullptr};
    std::size_t q_stride{0};
    float const* out{nullptr};
    std::size_t out_stride{0};
    float const* log_sums{nullptr};
    /// The gradient of `out`.
    float const* dout{nullptr};
    std::size_t dout_stride{0};
    /// Set, rows as those of q.
    float* dq{nullptr};
    std::size_t dq_stride{0};
    /// Added to; row p, of head_dim floats, is the absolute position p.
    float* dk{nullptr};
    std::size_t dk_stride{0};
    float* dv{nullptr};
    std::size_t dv_stride{0};
};

/// The gradient of `attention`.
void attention_backward(AttentionShape const& shape, KvBlock const* blocks,
                        AttentionGradient const& gradient);

}  // namespace tinkxx::engine
