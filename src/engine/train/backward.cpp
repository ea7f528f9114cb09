#include "engine/train/backward.hpp"

#include "engine/kernels/elementwise.hpp"
#include "engine/kernels/products.hpp"

#include <algorithm>
#include <cmath>

namespace tinkxx::engine {

namespace {

/// The parts of `layer_backward` share this.
struct LayerContext {
    ModelConfig const& config;
    Batch const& batch;
    std::size_t layer;
    std::size_t kv_layer;
    LayerBuffers const& buffers;
    BackwardScratch const& scratch;
    GradientTarget target;
    Threads* threads;

    [[nodiscard]] RowGroup const& group() const { return batch.groups.front(); }
    [[nodiscard]] LayerWeights const& weights() const { return group().weights->layers[layer]; }
    [[nodiscard]] LayerWeights* dweights() const {
        return target.full == nullptr ? nullptr : &target.full->layers[layer];
    }

    void module(Module m, ConstMatrixView dy, ConstMatrixView x, MatrixView dx, Write write) const {
        LinearBackward linear{.weight = &weights()[m]};
        if (auto* const own = dweights()) linear.dweight = &(*own)[m];
        if (group().lora != nullptr && !group().lora->layers[layer][m].empty()) {
            linear.lora = &group().lora->layers[layer][m];
            linear.dlora = &target.lora->layers[layer][m];
            linear.scale = group().scale;
        }
        linear_backward(linear, dy, x, buffers.lora[static_cast<std::size_t>(m)], scratch.dlora, dx,
                        write, threads);
    }

    [[nodiscard]] bool adapts(Module m) const {
        return target.full != nullptr ||
               (group().lora != nullptr && !group().lora->layers[layer][m].empty());
    }
};

void bias_backward(PackedVector& dbias, ConstMatrixView dy) {
    if (dbias.empty()) return;
    for (std::size_t r = 0; r < dy.rows; ++r) axpy(dbias.values().data(), 1.0F, dy.row(r), dy.cols);
}

void attention_gradient(LayerContext const& c, float const* dout, float* dq) {
    auto const& kv = c.batch.kv;
    auto const group = wide(c.config.heads / c.config.kv_heads);
    auto const q_stride = wide(c.config.q_size());
    auto const kv_stride = wide(c.config.kv_size());
    auto const one = [&](std::size_t item, unsigned) {
        auto const& segment = c.batch.segments[item / kv.kv_heads];
        auto const head = item % kv.kv_heads;
        auto const* blocks = gather_blocks(
            kv, segment.pages, (segment.tokens - 1) / kv_block_positions + 1, c.kv_layer, head);
        AttentionShape const shape{
            .tokens = segment.tokens,
            .first_position = 0,
            .group = group,
            .head_dim = kv.head_dim,
            .scale = 1.0F / std::sqrt(static_cast<float>(c.config.head_dim)),
        };
        auto const q_at = segment.row * q_stride + head * group * kv.head_dim;
        auto const kv_at = segment.row * kv_stride + head * kv.head_dim;
        for (std::size_t t = 0; t < segment.tokens; ++t) {
            std::fill_n(c.scratch.dk + kv_at + t * kv_stride, kv.head_dim, 0.0F);
            std::fill_n(c.scratch.dv + kv_at + t * kv_stride, kv.head_dim, 0.0F);
        }
        attention_backward(shape, blocks,
                           {.q = c.buffers.q + q_at,
                            .q_stride = q_stride,
                            .out = c.buffers.attended + q_at,
                            .out_stride = q_stride,
                            .log_sums = c.buffers.log_sums +
                                        (segment.row * kv.kv_heads + head * segment.tokens) * group,
                            .dout = dout + q_at,
                            .dout_stride = q_stride,
                            .dq = dq + q_at,
                            .dq_stride = q_stride,
                            .dk = c.scratch.dk + kv_at,
                            .dk_stride = kv_stride,
                            .dv = c.scratch.dv + kv_at,
                            .dv_stride = kv_stride});
    };
    auto const items = c.batch.segments.size() * kv.kv_heads;
    if (c.threads != nullptr && items > 1) return c.threads->run(items, one);
    for (std::size_t item = 0; item < items; ++item) one(item, 0);
}

/// Turns the gradients of rotated heads back into those of the projection.
void heads_gradient(LayerContext const& c, float* d, std::size_t heads, float const* raw,
                    float const* inverse_rms, PackedVector const& norm, PackedVector* dnorm) {
    auto const head_dim = wide(c.config.head_dim);
    auto const width = heads * head_dim;
    by_rows(c.threads, c.batch.rows(), [&](std::size_t begin, std::size_t end) {
        rope({d + begin * width, end - begin, width}, head_dim,
             c.batch.positions.subspan(begin, end - begin), c.batch.rope->cosine_view(),
             c.batch.rope->sine_view(), Rotation::backward);
    });
    if (!c.config.qk_norm) return;
    auto const rows = c.batch.rows() * heads;
    norm_backward({d, rows, head_dim}, dnorm, {d, rows, head_dim}, {raw, rows, head_dim}, norm,
                  inverse_rms, Write::set, c.threads);
}

}  // namespace

BackwardScratch carve_backward(Carver& carver, ModelConfig const& config, std::size_t rows,
                               std::size_t rank) {
    auto const widest = rows * wide(std::max(config.intermediate_size, config.q_size()));
    BackwardScratch s;
    s.dx = carver.take(rows * wide(config.hidden_size));
    s.dnormed = carver.take(rows * wide(config.hidden_size));
    s.wide1 = carver.take(widest);
    s.wide2 = carver.take(widest);
    s.dk = carver.take(rows * wide(config.kv_size()));
    s.dv = carver.take(rows * wide(config.kv_size()));
    s.dlora = carver.take(rows * rank);
    return s;
}

void linear_backward(LinearBackward const& linear, ConstMatrixView dy, ConstMatrixView x,
                     float const* h, float* dh, MatrixView dx, Write write, Threads* threads) {
    auto* const split = worth(threads, dy.rows, *linear.weight);
    if (dx.data != nullptr) backward_input(dx, dy, *linear.weight, write, split);
    if (linear.dweight != nullptr) backward_weight(*linear.dweight, dy, x, split);
    if (linear.lora == nullptr) return;
    auto const& [a, b] = *linear.lora;
    MatrixView const dhidden{dh, dy.rows, a.outputs()};
    backward_input(dhidden, dy, b, Write::set, worth(threads, dy.rows, b));
    scale(dh, linear.scale, dhidden.rows * dhidden.cols);
    backward_weight(linear.dlora->b, dy, {h, dy.rows, a.outputs()}, worth(threads, dy.rows, b));
    backward_weight(linear.dlora->a, dhidden, x, worth(threads, dy.rows, a));
    if (dx.data != nullptr) {
        backward_input(dx, dhidden, a, Write::add, worth(threads, dy.rows, a));
    }
}

void norm_backward(MatrixView dx, PackedVector* dweight, ConstMatrixView dy, ConstMatrixView x,
                   PackedVector const& weight, float const* inverse_rms, Write write,
                   Threads* threads) {
    auto const* const w = weight.values().data();
    if (dweight != nullptr) {
        // One chain over the rows, so one thread.
        rms_norm_backward(dx, dweight->values().data(), dy, x, w, inverse_rms, write);
        return;
    }
    by_rows(threads, dy.rows, [&](std::size_t begin, std::size_t end) {
        auto const count = end - begin;
        rms_norm_backward({dx.row(begin), count, dx.cols, dx.stride}, nullptr,
                          {dy.row(begin), count, dy.cols, dy.stride},
                          {x.row(begin), count, x.cols, x.stride}, w, inverse_rms + begin, write);
    });
}

namespace {

/// The MLP: out = mid + down(silu(gate(n)) * up(n)), n = norm(mid). Returns whether anything below
/// it wants a gradient.
bool mlp_backward(LayerContext const& c, PassScratch const& pass, PassOn pass_on) {
    auto const& b = c.buffers;
    auto const& s = c.scratch;
    auto const rows = c.batch.rows();
    auto const hidden = wide(c.config.hidden_size);
    auto const inner = wide(c.config.intermediate_size);
    auto* const dweights = c.dweights();
    MatrixView const dx{s.dx, rows, hidden};
    MatrixView const dnormed{s.dnormed, rows, hidden};
    MatrixView const dgate{s.wide1, rows, inner};
    MatrixView const dup{s.wide2, rows, inner};
    if (c.adapts(Module::down)) {
        by_rows(c.threads, rows, [&](std::size_t begin, std::size_t end) {
            auto const first = begin * inner;
            auto const count = end - begin;
            swiglu({pass.activated + first, count, inner}, {b.gate + first, count, inner},
                   {b.up + first, count, inner});
        });
    }
    c.module(Module::down, dx, {pass.activated, rows, inner}, dgate, Write::set);
    by_rows(c.threads, rows, [&](std::size_t begin, std::size_t end) {
        auto const first = begin * inner;
        auto const count = end - begin;
        swiglu_backward({dgate.row(begin), count, inner}, {dup.row(begin), count, inner},
                        {dgate.row(begin), count, inner}, {b.gate + first, count, inner},
                        {b.up + first, count, inner});
    });
    bool const below = pass_on == PassOn::yes || c.adapts(Module::q);
    ConstMatrixView const mid_normed{b.mid_normed, rows, hidden};
    c.module(Module::gate, dgate, mid_normed, below ? dnormed : MatrixView{}, Write::set);
    c.module(Module::up, dup, mid_normed, below ? dnormed : MatrixView{}, Write::add);
    if (!below) return false;
    norm_backward(dx, dweights == nullptr ? nullptr : &dweights->post_norm, dnormed,
                  {b.mid, rows, hidden}, c.weights().post_norm, b.mid_inverse_rms, Write::add,
                  c.threads);
    return true;
}

/// Attention: mid = x + o(attention(q, k, v)).
void attention_block_backward(LayerContext const& c, PassOn pass_on) {
    auto const& b = c.buffers;
    auto const& s = c.scratch;
    auto const rows = c.batch.rows();
    auto const hidden = wide(c.config.hidden_size);
    auto const q_size = wide(c.config.q_size());
    auto const kv_size = wide(c.config.kv_size());
    auto const& weights = c.weights();
    auto* const dweights = c.dweights();
    MatrixView const dx{s.dx, rows, hidden};
    MatrixView const dnormed{s.dnormed, rows, hidden};
    MatrixView const dattended{s.wide1, rows, q_size};
    MatrixView const dq{s.wide2, rows, q_size};
    MatrixView const dk{s.dk, rows, kv_size};
    MatrixView const dv{s.dv, rows, kv_size};
    c.module(Module::o, dx, {b.attended, rows, q_size}, dattended, Write::set);
    attention_gradient(c, dattended.data, dq.data);
    heads_gradient(c, dq.data, wide(c.config.heads), b.q_raw, b.q_inverse_rms, weights.q_norm,
                   dweights == nullptr ? nullptr : &dweights->q_norm);
    heads_gradient(c, dk.data, wide(c.config.kv_heads), b.k_raw, b.k_inverse_rms, weights.k_norm,
                   dweights == nullptr ? nullptr : &dweights->k_norm);
    if (dweights != nullptr) {
        bias_backward(dweights->biases[0], dq);
        bias_backward(dweights->biases[1], dk);
        bias_backward(dweights->biases[2], dv);
    }
    ConstMatrixView const normed{b.normed, rows, hidden};
    auto const dinput = pass_on == PassOn::yes ? dnormed : MatrixView{};
    c.module(Module::q, dq, normed, dinput, Write::set);
    c.module(Module::k, dk, normed, dinput, Write::add);
    c.module(Module::v, dv, normed, dinput, Write::add);
    if (pass_on == PassOn::no) return;
    norm_backward(dx, dweights == nullptr ? nullptr : &dweights->input_norm, dnormed,
                  {b.x, rows, hidden}, weights.input_norm, b.inverse_rms, Write::add, c.threads);
}

}  // namespace

void layer_backward(ModelConfig const& config, Batch const& batch, std::size_t layer,
                    std::size_t kv_layer, LayerBuffers const& b, PassScratch const& pass,
                    BackwardScratch const& s, GradientTarget target, PassOn pass_on,
                    Threads* threads) {
    LayerContext const c{.config = config,
                         .batch = batch,
                         .layer = layer,
                         .kv_layer = kv_layer,
                         .buffers = b,
                         .scratch = s,
                         .target = target,
                         .threads = threads};
    if (mlp_backward(c, pass, pass_on)) attention_block_backward(c, pass_on);
}

void embed_backward(Batch const& batch, ConstMatrixView dx, PackedMatrix& dembedding) {
    auto const inputs = dembedding.inputs();
    for (std::size_t r = 0; r < dx.rows; ++r) {
        auto const token = static_cast<std::size_t>(batch.tokens[r]);
        auto const panel = token / PackedMatrix::panel_outputs;
        auto const width = dembedding.width(panel);
        float* const column = dembedding.values().data() +
                              panel * PackedMatrix::panel_outputs * inputs +
                              token % PackedMatrix::panel_outputs;
        for (std::size_t k = 0; k < inputs; ++k) column[k * width] += dx.row(r)[k];
    }
}

}  // namespace tinkxx::engine
