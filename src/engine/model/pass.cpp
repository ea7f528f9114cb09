#include "engine/model/pass.hpp"

#include "engine/kernels/elementwise.hpp"
#include "engine/kernels/products.hpp"

#include <cmath>
#include <initializer_list>
#include <span>
#include <vector>

namespace tinkxx::engine {

namespace {

/// Calls `body(first_row, rows, weights, groups)` for each run of groups that share their weights.
template <class Body>
void by_weights(Batch const& batch, Body const& body) {
    auto const groups = batch.groups;
    for (std::size_t i = 0; i < groups.size();) {
        auto const begin = i;
        std::size_t rows = 0;
        for (; i < groups.size() && groups[i].weights == groups[begin].weights; ++i) {
            rows += groups[i].rows;
        }
        body(groups[begin].row, rows, *groups[begin].weights, groups.subspan(begin, i - begin));
    }
}

/// An empty list of this thread, which keeps its memory.
ForwardProducts& joined_products() noexcept {
    thread_local ForwardProducts products;
    products.clear();  // an `add` that found no memory may have left some
    return products;
}

void run(ForwardProducts& products, Threads* threads) {
    products.run(worth(threads, products.work(), products.bytes()));
}

/// One matrix of a layer, applied to all rows of a batch.
struct Applied {
    Module module;
    float* y;
    std::size_t outputs;
    /// Keeps scale · A x: for each group with an adapter rows × its rank.
    float* hidden;
};

/// y (=|+=) the linear maps of x, for all rows.
void apply(Batch const& batch, std::size_t layer, std::initializer_list<Applied> all,
           float const* x, std::size_t inputs, Write write, Threads* threads) {
    ForwardProducts& products = joined_products();
    for (auto const& applied : all) {
        auto const index = static_cast<std::size_t>(applied.module);
        float* hidden = applied.hidden;
        by_weights(batch, [&](std::size_t first, std::size_t rows, Weights const& weights,
                              std::span<RowGroup const> groups) {
            auto const& own = weights.layers[layer];
            float const* bias = nullptr;
            if (index < own.biases.size() && !own.biases[index].empty()) {
                bias = own.biases[index].values().data();
            }
            products.add({applied.y + first * applied.outputs, rows, applied.outputs},
                         {x + first * inputs, rows, inputs}, own[applied.module], write, bias);
            for (auto const& group : groups) {
                if (group.lora == nullptr) continue;
                auto const& pair = group.lora->layers[layer][applied.module];
                if (pair.empty()) continue;
                products.add_low_rank(group.row - first, {hidden, group.rows, pair.rank()},
                                      {x + group.row * inputs, group.rows, inputs}, pair.a, pair.b,
                                      group.scale);
                hidden += group.rows * pair.rank();
            }
        });
    }
    run(products, threads);
}

void norm_rows(Batch const& batch, float eps, float* y, float* inverse_rms, float const* x,
               std::size_t width, std::size_t heads, auto const& weight_of, Threads* threads) {
    by_weights(batch, [&](std::size_t row, std::size_t rows, Weights const& weights, auto) {
        float const* const weight = weight_of(weights);
        by_rows(threads, rows, [&](std::size_t begin, std::size_t end) {
            auto const first = (row + begin) * heads;
            auto const count = (end - begin) * heads;
            rms_norm({y + first * width, count, width},
                     inverse_rms == nullptr ? nullptr : inverse_rms + first,
                     {x + first * width, count, width}, weight, eps);
        });
    });
}

void rotate(Batch const& batch, float* x, std::size_t width, std::size_t head_dim,
            Threads* threads) {
    by_rows(threads, batch.rows(), [&](std::size_t begin, std::size_t end) {
        rope({x + begin * width, end - begin, width}, head_dim,
             batch.positions.subspan(begin, end - begin), batch.rope->cosine_view(),
             batch.rope->sine_view(), Rotation::forward);
    });
}

void store_segment(KvLayout const& kv, Segment const& segment, std::size_t layer, std::size_t head,
                   float const* k, float const* v) {
    auto const stride = kv.kv_heads * kv.head_dim;
    for (std::size_t done = 0; done < segment.tokens;) {
        auto const position = segment.first_position + done;
        auto const slot = position % kv_block_positions;
        auto const count = std::min(segment.tokens - done, kv_block_positions - slot);
        auto const offset = (segment.row + done) * stride + head * kv.head_dim;
        store_kv(kv.block(segment.pages[position / kv_block_positions], layer, head), kv.head_dim,
                 slot, count, k + offset, stride, v + offset, stride);
        done += count;
    }
}

/// Whether attention is work for several threads, as `worth` is for products.
bool attention_worth(Batch const& batch, std::size_t q_size) {
    std::size_t pairs = 0;
    for (auto const& segment : batch.segments) {
        pairs += segment.tokens * (segment.first_position + segment.tokens);
    }
    return pairs * q_size >= std::size_t{1} << 18U;
}

void attend(ModelConfig const& config, Batch const& batch, std::size_t kv_layer,
            LayerBuffers const& buffers, PassScratch const& scratch, Threads* threads) {
    auto const& kv = batch.kv;
    auto const group = wide(config.heads / config.kv_heads);
    auto const stride = wide(config.q_size());
    auto const one = [&](std::size_t item, unsigned) {
        auto const& segment = batch.segments[item / kv.kv_heads];
        auto const head = item % kv.kv_heads;
        store_segment(kv, segment, kv_layer, head, scratch.k, scratch.v);
        auto const last = segment.first_position + segment.tokens - 1;
        auto const* blocks =
            gather_blocks(kv, segment.pages, last / kv_block_positions + 1, kv_layer, head);
        AttentionShape const shape{
            .tokens = segment.tokens,
            .first_position = segment.first_position,
            .group = group,
            .head_dim = kv.head_dim,
            .scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim)),
        };
        auto const offset = segment.row * stride + head * group * kv.head_dim;
        float* const log_sums =
            buffers.log_sums == nullptr
                ? nullptr
                : buffers.log_sums + (segment.row * kv.kv_heads + head * segment.tokens) * group;
        attention(shape, buffers.q + offset, stride, blocks, buffers.attended + offset, stride,
                  log_sums);
    };
    auto const items = batch.segments.size() * kv.kv_heads;
    if (threads != nullptr && items > 1 && attention_worth(batch, stride)) {
        return threads->run(items, one);
    }
    for (std::size_t item = 0; item < items; ++item) one(item, 0);
}

/// y = x unless they are the same memory.
void copy_rows(float* y, float const* x, std::size_t rows, std::size_t width, Threads* threads) {
    if (y == x) return;
    by_rows(threads, rows, [&](std::size_t begin, std::size_t end) {
        copy(y + begin * width, x + begin * width, (end - begin) * width);
    });
}

}  // namespace

KvBlock const* gather_blocks(KvLayout const& kv, float* const* pages, std::size_t count,
                             std::size_t layer, std::size_t head) {
    thread_local std::vector<KvBlock> blocks;
    blocks.clear();
    for (std::size_t i = 0; i < count; ++i) blocks.push_back(kv.block(pages[i], layer, head));
    return blocks.data();
}

LayerBuffers carve_layer(Carver& carver, ModelConfig const& config, std::size_t rows,
                         std::size_t rank, Keep keep) {
    auto const hidden = rows * wide(config.hidden_size);
    auto const heads = wide(config.heads);
    auto const kv_heads = wide(config.kv_heads);
    bool const kept = keep == Keep::for_backward;
    LayerBuffers b;
    b.x = carver.take(hidden);
    b.normed = carver.take(hidden);
    b.q = carver.take(rows * wide(config.q_size()));
    b.q_raw = b.q;
    b.attended = carver.take(rows * wide(config.q_size()));
    b.gate = carver.take(rows * wide(config.intermediate_size));
    b.up = carver.take(rows * wide(config.intermediate_size));
    if (kept) {
        b.inverse_rms = carver.take(rows);
        if (config.qk_norm) {
            b.q_raw = carver.take(rows * wide(config.q_size()));
            b.k_raw = carver.take(rows * wide(config.kv_size()));
            b.q_inverse_rms = carver.take(rows * heads);
            b.k_inverse_rms = carver.take(rows * kv_heads);
        }
        b.log_sums = carver.take(rows * heads);
        b.mid = carver.take(hidden);
        b.mid_normed = carver.take(hidden);
        b.mid_inverse_rms = carver.take(rows);
    } else {
        b.mid = b.x;
        b.mid_normed = b.normed;
    }
    for (auto& h : b.lora) h = carver.take(rows * rank);
    return b;
}

PassScratch carve_scratch(Carver& carver, ModelConfig const& config, std::size_t rows) {
    return {.k = carver.take(rows * wide(config.kv_size())),
            .v = carver.take(rows * wide(config.kv_size())),
            .activated = carver.take(rows * wide(config.intermediate_size))};
}

void embed(ModelConfig const& config, Batch const& batch, float* x, Threads* threads) {
    auto const hidden = wide(config.hidden_size);
    by_weights(batch, [&](std::size_t row, std::size_t rows, Weights const& weights, auto) {
        by_rows(threads, rows, [&](std::size_t begin, std::size_t end) {
            for (auto r = row + begin; r < row + end; ++r) {
                weights.embedding.gather_row(static_cast<std::size_t>(batch.tokens[r]),
                                             x + r * hidden);
            }
        });
    });
}

void layer_forward(ModelConfig const& config, Batch const& batch, std::size_t layer,
                   std::size_t kv_layer, LayerBuffers const& b, PassScratch const& scratch,
                   float* x_out, Threads* threads) {
    auto const rows = batch.rows();
    auto const hidden = wide(config.hidden_size);
    auto const q_size = wide(config.q_size());
    auto const kv_size = wide(config.kv_size());
    auto const head_dim = wide(config.head_dim);
    auto const inner = wide(config.intermediate_size);
    auto const h = [&](Module module) { return b.lora[static_cast<std::size_t>(module)]; };

    norm_rows(
        batch, config.rms_norm_eps, b.normed, b.inverse_rms, b.x, hidden, 1,
        [&](Weights const& w) { return w.layers[layer].input_norm.values().data(); }, threads);
    float* const k_raw = b.k_raw == nullptr ? scratch.k : b.k_raw;
    apply(batch, layer,
          {{Module::q, b.q_raw, q_size, h(Module::q)},
           {Module::k, k_raw, kv_size, h(Module::k)},
           {Module::v, scratch.v, kv_size, h(Module::v)}},
          b.normed, hidden, Write::set, threads);
    if (config.qk_norm) {
        norm_rows(
            batch, config.rms_norm_eps, b.q, b.q_inverse_rms, b.q_raw, head_dim, wide(config.heads),
            [&](Weights const& w) { return w.layers[layer].q_norm.values().data(); }, threads);
        norm_rows(
            batch, config.rms_norm_eps, scratch.k, b.k_inverse_rms, k_raw, head_dim,
            wide(config.kv_heads),
            [&](Weights const& w) { return w.layers[layer].k_norm.values().data(); }, threads);
    }
    rotate(batch, b.q, q_size, head_dim, threads);
    rotate(batch, scratch.k, kv_size, head_dim, threads);
    attend(config, batch, kv_layer, b, scratch, threads);

    copy_rows(b.mid, b.x, rows, hidden, threads);
    apply(batch, layer, {{Module::o, b.mid, hidden, h(Module::o)}}, b.attended, q_size, Write::add,
          threads);
    norm_rows(
        batch, config.rms_norm_eps, b.mid_normed, b.mid_inverse_rms, b.mid, hidden, 1,
        [&](Weights const& w) { return w.layers[layer].post_norm.values().data(); }, threads);
    apply(
        batch, layer,
        {{Module::gate, b.gate, inner, h(Module::gate)}, {Module::up, b.up, inner, h(Module::up)}},
        b.mid_normed, hidden, Write::set, threads);
    by_rows(threads, rows, [&](std::size_t begin, std::size_t end) {
        auto const first = begin * inner;
        auto const count = end - begin;
        swiglu({scratch.activated + first, count, inner}, {b.gate + first, count, inner},
               {b.up + first, count, inner});
    });
    copy_rows(x_out, b.mid, rows, hidden, threads);
    apply(batch, layer, {{Module::down, x_out, hidden, h(Module::down)}}, scratch.activated, inner,
          Write::add, threads);
}

void final_norm(ModelConfig const& config, Batch const& batch, float const* x, float* normed,
                float* inverse_rms, Threads* threads) {
    norm_rows(
        batch, config.rms_norm_eps, normed, inverse_rms, x, wide(config.hidden_size), 1,
        [](Weights const& w) { return w.norm.values().data(); }, threads);
}

void unembed(RowGroup const& group, ConstMatrixView normed, MatrixView logits, float* lora,
             Threads* threads) {
    ForwardProducts& products = joined_products();
    products.add(logits, normed, group.weights->unembedding());
    if (group.lora != nullptr && !group.lora->head.empty()) {
        auto const& [a, b] = group.lora->head;
        products.add_low_rank(0, {lora, normed.rows, a.outputs()}, normed, a, b, group.scale);
    }
    run(products, threads);
}

}  // namespace tinkxx::engine
