#pragma once

#include "engine/kernels/packed_matrix.hpp"
#include "engine/kernels/types.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

// Matrix products whose every output element is one chain of fused multiply-adds over the ascending
// reduction index, begun at 0, at the bias or at the old value. So a row has the same bits however
// many rows are computed with it, on any number of threads and any instruction set (AMX, for
// bfloat16 weights, has other bits than the others, but the same for any number of rows and
// threads).
//
// Shapes must fit; that is asserted only. Outputs must not overlap inputs. No call allocates, but
// those of `ForwardProducts`, which keeps its memory.
// `threads` may be null: everything then happens on the calling thread; give it where one product
// is large enough to be worth splitting.

namespace tinkxx::engine {

class Threads;

/// y[M×N] (=|+=) x[M×K] · wᵀ (+ bias). With `Write::add` and a bias the chain begins at y + bias.
void forward(MatrixView y, ConstMatrixView x, PackedMatrix const& w, Write write = Write::set,
             float const* bias = nullptr, Threads* threads = nullptr);

/// As `forward` for the outputs [first, first + y.cols) only. `first` is a multiple of 64; so is
/// y.cols, or the range ends at the last output. E.g. the unembedding, some panels at a time.
void forward_outputs(MatrixView y, ConstMatrixView x, PackedMatrix const& w, std::size_t first,
                     Write write = Write::set, float const* bias = nullptr,
                     Threads* threads = nullptr);

/// Products of `forward` that are one piece of work: threads take from all of them, and none waits
/// at the end of each. To the rows of each product those of low-rank pairs may be added.
class ForwardProducts {
public:
    /// As `forward`, once `run` is called. No product may read or write what another one writes;
    /// `w` must live until then.
    void add(MatrixView y, ConstMatrixView x, PackedMatrix const& w, Write write = Write::set,
             float const* bias = nullptr);
    /// Then adds factor · x aᵀ · bᵀ to the rows from `row` on of the last product that was added:
    /// as many as `hidden` has, which keeps factor · x aᵀ.
    void add_low_rank(std::size_t row, MatrixView hidden, ConstMatrixView x, PackedMatrix const& a,
                      PackedMatrix const& b, float factor);
    /// Multiply-adds of all of them.
    [[nodiscard]] std::size_t work() const noexcept { return work_; }
    /// Bytes of all their weights.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    /// Computes them and forgets them.
    void run(Threads* threads);
    void clear() noexcept;

private:
    struct Product {
        MatrixView y;
        ConstMatrixView x;
        PackedMatrix const* w;
        Write write;
        float const* bias;
        std::size_t first_pair;
        std::size_t pairs;
        std::size_t first_chunk;
    };
    struct LowRank {
        std::size_t row;
        MatrixView hidden;
        ConstMatrixView x;
        PackedMatrix const* a;
        PackedMatrix const* b;
        float factor;
        std::size_t first_chunk;
        /// Chunks of `hidden` that are still to be computed.
        std::uint32_t unfinished;
    };

    void count(MatrixView y, PackedMatrix const& w) noexcept;
    void compute_hidden(std::size_t chunk, std::size_t chunk_work);
    void compute_output(std::size_t chunk, std::size_t chunk_work);

    std::vector<Product> products_;
    std::vector<LowRank> pairs_;
    std::size_t work_{0};
    std::size_t bytes_{0};
};

/// dx[M×K] (=|+=) dy[M×N] · w, reading the same panels.
void backward_input(MatrixView dx, ConstMatrixView dy, PackedMatrix const& w,
                    Write write = Write::set, Threads* threads = nullptr);

/// As `backward_input` for the outputs [first, first + dy.cols) only, limits as `forward_outputs`.
/// Ranges in ascending order, the later ones with `Write::add`, give the bits of one call.
void backward_input_outputs(MatrixView dx, ConstMatrixView dy, PackedMatrix const& w,
                            std::size_t first, Write write = Write::set,
                            Threads* threads = nullptr);

/// dw[N×K] += dyᵀ · x, rows of dy and x in ascending order: calls for successive rows give the bits
/// of one call. `dw` is float32.
void backward_weight(PackedMatrix& dw, ConstMatrixView dy, ConstMatrixView x,
                     Threads* threads = nullptr);

/// As `backward_weight` for the outputs [first, first + dy.cols) only, limits as `forward_outputs`.
void backward_weight_outputs(PackedMatrix& dw, ConstMatrixView dy, ConstMatrixView x,
                             std::size_t first, Threads* threads = nullptr);

/// c[M×N] (=|+=) a[M×K] · b[N×K]ᵀ
void multiply_nt(MatrixView c, ConstMatrixView a, ConstMatrixView b, Write write = Write::set,
                 Threads* threads = nullptr);
/// c[M×N] (=|+=) a[M×K] · b[K×N]
void multiply_nn(MatrixView c, ConstMatrixView a, ConstMatrixView b, Write write = Write::set,
                 Threads* threads = nullptr);
/// c[M×N] (=|+=) a[K×M]ᵀ · b[K×N]
void multiply_tn(MatrixView c, ConstMatrixView a, ConstMatrixView b, Write write = Write::set,
                 Threads* threads = nullptr);

}  // namespace tinkxx::engine
