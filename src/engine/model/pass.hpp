#pragma once

#include "engine/common/threads.hpp"
#include "engine/files/model_config.hpp"
#include "engine/kernels/attention.hpp"
#include "engine/kernels/types.hpp"
#include "engine/model/adapter.hpp"
#include "engine/model/lora.hpp"
#include "engine/model/model.hpp"
#include "engine/model/weights.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// The forward pass over rows of many sequences, packed without padding. Training and sampling run
// this same code; they differ in which buffers survive a layer and in where keys and values lie.
// Every row's bits depend on its own sequence and adapter only.

namespace tinkxx::engine {

/// How keys and values lie in a page of 64 positions: for each layer and key/value head the keys
/// [head_dim][64], then the values [64][head_dim].
struct KvLayout {
    std::size_t layers{0};
    std::size_t kv_heads{0};
    std::size_t head_dim{0};

    [[nodiscard]] std::size_t block_floats() const noexcept {
        return 2 * head_dim * kv_block_positions;
    }
    [[nodiscard]] std::size_t page_floats() const noexcept {
        return layers * kv_heads * block_floats();
    }
    [[nodiscard]] KvBlock block(float* page, std::size_t layer, std::size_t head) const noexcept {
        auto* const keys = page + (layer * kv_heads + head) * block_floats();
        return {.keys = keys, .values = keys + head_dim * kv_block_positions};
    }
};

/// Consecutive positions of one sequence.
struct Segment {
    std::size_t row{0};
    std::size_t tokens{0};
    std::size_t first_position{0};
    /// Page p holds the positions [64 p, 64 p + 64), up to that of the last token.
    float* const* pages{nullptr};
};

/// Consecutive rows that are computed with one adapter.
struct RowGroup {
    std::size_t row{0};
    std::size_t rows{0};
    Weights const* weights{nullptr};
    LoraWeights const* lora{nullptr};
    float scale{0};
};

/// The rows of a model's adapter, or of the bare model if that is null; rows still to be set.
[[nodiscard]] inline RowGroup row_group(Model const& model, Adapter const* adapter) noexcept {
    if (adapter == nullptr) return {.weights = &model.weights()};
    return {.weights = &adapter->weights(),
            .lora = adapter->lora(),
            .scale = adapter->config().scale()};
}

/// What one pass computes. Segments and groups each cover all rows in order.
struct Batch {
    std::span<std::int32_t const> tokens{};
    /// The position of each row in its sequence.
    std::span<std::int32_t const> positions{};
    std::span<Segment const> segments{};
    std::span<RowGroup const> groups{};
    KvLayout kv{};
    RopeTables const* rope{nullptr};

    [[nodiscard]] std::size_t rows() const noexcept { return tokens.size(); }
};

/// Hands out pieces of one block of memory; with a null base it only counts.
class Carver {
public:
    explicit Carver(float* base) noexcept : base_{base} {}

    float* take(std::size_t floats) noexcept {
        auto* const piece = base_ == nullptr ? nullptr : base_ + used_;
        used_ += (floats + 15) / 16 * 16;  // whole cache lines
        return piece;
    }
    [[nodiscard]] std::size_t used() const noexcept { return used_; }

private:
    float* base_;
    std::size_t used_{0};
};

/// Buffers of one layer, `rows` rows each. What the backward pass needs stays until it has run.
struct LayerBuffers {
    float* x{nullptr};       ///< input of the layer
    float* normed{nullptr};  ///< after the first norm
    float* inverse_rms{nullptr};
    float* q_raw{nullptr};  ///< before the norm of the heads; equals q without it
    float* k_raw{nullptr};
    float* q_inverse_rms{nullptr};
    float* k_inverse_rms{nullptr};
    float* q{nullptr};  ///< rotated
    float* attended{nullptr};
    float* log_sums{nullptr};
    float* mid{nullptr};  ///< after attention; may be x if nothing is kept
    float* mid_normed{nullptr};
    float* mid_inverse_rms{nullptr};
    float* gate{nullptr};
    float* up{nullptr};
    /// scale · A x of each adapted matrix.
    std::array<float*, module_count> lora{};
};

/// Buffers that one layer uses and the next may overwrite.
struct PassScratch {
    float* k{nullptr};
    float* v{nullptr};
    float* activated{nullptr};
};

/// Whether the inputs of backward formulas must survive.
enum class Keep : std::uint8_t { nothing, for_backward };

LayerBuffers carve_layer(Carver& carver, ModelConfig const& config, std::size_t rows,
                         std::size_t rank, Keep keep);
PassScratch carve_scratch(Carver& carver, ModelConfig const& config, std::size_t rows);

/// x = the embeddings of the tokens.
void embed(ModelConfig const& config, Batch const& batch, float* x, Threads* threads);

/// Runs layer `layer` on `buffers.x`; writes its output to `x_out`, which may be `buffers.x` if
/// nothing is kept. Keys and values go to layer `kv_layer` of the segments' pages.
void layer_forward(ModelConfig const& config, Batch const& batch, std::size_t layer,
                   std::size_t kv_layer, LayerBuffers const& buffers, PassScratch const& scratch,
                   float* x_out, Threads* threads);

/// normed = the final norm of x, both `rows` rows of the batch's rows from `first` on.
void final_norm(ModelConfig const& config, Batch const& batch, float const* x, float* normed,
                float* inverse_rms, Threads* threads);

/// logits [rows × vocabulary] of normed rows that share one group. `lora` has room for rows × rank
/// and keeps scale · A x.
void unembed(RowGroup const& group, ConstMatrixView normed, MatrixView logits, float* lora,
             Threads* threads);

/// Calls `body(begin, end)` for ranges that cover [0, rows), on several threads if that pays.
template <class Body>
void by_rows(Threads* threads, std::size_t rows, Body const& body) {
    constexpr std::size_t chunk = 32;
    if (threads == nullptr || rows <= chunk) return body(std::size_t{0}, rows);
    threads->run((rows + chunk - 1) / chunk, [&](std::size_t index, unsigned) {
        body(index * chunk, std::min(rows, (index + 1) * chunk));
    });
}

/// `threads` if products of so many multiply-adds, with weights of so many bytes, are worth a
/// barrier, else null.
inline Threads* worth(Threads* threads, std::size_t work, std::size_t bytes) noexcept {
    // About 50 µs of arithmetic, or 20 µs of waiting for weights that come from memory.
    bool const large = work >= (std::size_t{4} << 20U) || bytes >= (std::size_t{256} << 10U);
    return large ? threads : nullptr;
}

/// As above for one product of so many rows.
inline Threads* worth(Threads* threads, std::size_t rows, PackedMatrix const& w) noexcept {
    return worth(threads, rows * w.outputs() * w.inputs(), w.bytes());
}

/// The KvBlocks of one layer and head for the first `count` pages. Valid until the next call on
/// this thread.
KvBlock const* gather_blocks(KvLayout const& kv, float* const* pages, std::size_t count,
                             std::size_t layer, std::size_t head);

}  // namespace tinkxx::engine
