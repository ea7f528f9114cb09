#pragma once

#include "engine/model/adapter.hpp"
#include "engine/model/pass.hpp"

#include <cstddef>

namespace tinkxx::engine {

/// Where gradients are added: exactly one of the two is set.
struct GradientTarget {
    LoraWeights* lora{nullptr};
    Weights* full{nullptr};
};

/// Buffers of the backward pass, shared by all layers.
struct BackwardScratch {
    float* dx{nullptr};  ///< gradient of a layer's output, then of its input
    float* dnormed{nullptr};
    float* wide1{nullptr};  ///< as wide as the MLP or the query heads
    float* wide2{nullptr};
    float* dk{nullptr};
    float* dv{nullptr};
    float* dlora{nullptr};  ///< rows × rank
};

BackwardScratch carve_backward(Carver& carver, ModelConfig const& config, std::size_t rows,
                               std::size_t rank);

/// Whether a gradient must be passed on to what lies below.
enum class PassOn : std::uint8_t { no, yes };

/// The gradient of y = W x + scale · B (A x): adds those of W or of A and B, and with a `dx` that
/// is not null sets or adds that of x. `h` is what the forward pass kept of scale · A x; `dh` has
/// room for as much.
struct LinearBackward {
    PackedMatrix const* weight{nullptr};
    PackedMatrix* dweight{nullptr};
    LoraPair const* lora{nullptr};
    LoraPair* dlora{nullptr};
    float scale{0};
};
void linear_backward(LinearBackward const& linear, ConstMatrixView dy, ConstMatrixView x,
                     float const* h, float* dh, MatrixView dx, Write write, Threads* threads);

/// The backward pass of `layer_forward` for a batch of one group. `scratch.dx` holds the gradient
/// of the layer's output; with `PassOn::yes` it becomes that of its input.
void layer_backward(ModelConfig const& config, Batch const& batch, std::size_t layer,
                    std::size_t kv_layer, LayerBuffers const& buffers, PassScratch const& pass,
                    BackwardScratch const& scratch, GradientTarget target, PassOn pass_on,
                    Threads* threads);

/// Adds the gradient of rows to the embeddings of their tokens, rows ascending.
void embed_backward(Batch const& batch, ConstMatrixView dx, PackedMatrix& dembedding);

/// dx (+)= the gradient of a norm; splits rows over threads where no weight is trained.
void norm_backward(MatrixView dx, PackedVector* dweight, ConstMatrixView dy, ConstMatrixView x,
                   PackedVector const& weight, float const* inverse_rms, Write write,
                   Threads* threads);

}  // namespace tinkxx::engine
