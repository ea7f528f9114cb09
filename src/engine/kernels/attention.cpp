#include "engine/kernels/attention.hpp"

#include "engine/kernels/kernel_table.hpp"

#include <cassert>
#include <cstring>

namespace tinkxx::engine {

void store_kv(KvBlock block, std::size_t head_dim, std::size_t slot, std::size_t count,
              float const* keys, std::size_t keys_stride, float const* values,
              std::size_t values_stride) {
    assert(slot + count <= kv_block_positions);
    for (std::size_t i = 0; i != count; ++i) {
        auto const* const key = keys + i * keys_stride;
        auto* const to = block.keys + slot + i;
        for (std::size_t d = 0; d != head_dim; ++d) to[d * kv_block_positions] = key[d];
        std::memcpy(block.values + (slot + i) * head_dim, values + i * values_stride,
                    head_dim * sizeof(float));
    }
}

void attention(AttentionShape const& shape, float const* q, std::size_t q_stride,
               KvBlock const* blocks, float* out, std::size_t out_stride, float* log_sums) {
    assert(shape.head_dim <= max_head_dim && shape.group != 0);
    kernels().attention(shape, q, q_stride, blocks, out, out_stride, log_sums);
}

void attention_backward(AttentionShape const& shape, KvBlock const* blocks,
                        AttentionGradient const& gradient) {
    assert(shape.head_dim <= max_head_dim && shape.group != 0);
    kernels().attention_backward(shape, blocks, gradient);
}

}  // namespace tinkxx::engine
