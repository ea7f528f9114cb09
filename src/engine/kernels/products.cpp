#include "engine/kernels/products.hpp"

#include "engine/common/threads.hpp"
#include "engine/kernels/elementwise.hpp"
#include "engine/kernels/kernel_table.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <iterator>
#include <span>

namespace tinkxx::engine {

namespace {

// Below this many multiply-adds a product is over before a worker has noticed it.
constexpr std::size_t worth_splitting = 200'000;
// Chunks for each thread: enough that one who is late costs little.
constexpr std::size_t chunks_per_thread = 6;
constexpr std::size_t panel = PackedMatrix::panel_outputs;
// One row waits for weights from memory, about a megabyte at a time: four panels come side by side,
// and more would only make the last one to finish later.
constexpr std::size_t most_panels_of_one_row = 4;

/// How rows × columns are cut into rectangles: the columns at multiples of 64, first, since
/// neighbouring rows share the weights of a column; then the rows. No result depends on where.
class Cut {
public:
    Cut(std::size_t rows, std::size_t columns, std::size_t wanted) noexcept
        : rows_{rows}, columns_{columns} {
        if (rows == 0 || columns == 0) return;
        auto const panels = (columns + panel - 1) / panel;
        auto per = std::max<std::size_t>(1, panels / wanted);
        if (rows == 1) per = std::min(per, most_panels_of_one_row);
        per_column_ = per * panel;
        across_ = (columns + per_column_ - 1) / per_column_;
        // Rows are worth cutting only into pieces that still reuse the weights they load.
        constexpr std::size_t fewest_rows = 96;
        auto const down = std::clamp<std::size_t>(wanted / across_, 1,
                                                  std::max<std::size_t>(1, rows / fewest_rows));
        per_row_ = (rows + down - 1) / down;
        down_ = (rows + per_row_ - 1) / per_row_;
    }

    [[nodiscard]] std::size_t chunks() const noexcept { return across_ * down_; }

    /// Calls `body(row, rows, column, columns)` for one of them.
    template <class Body>
    void run(std::size_t chunk, Body const& body) const {
        auto const row = chunk / across_ * per_row_;
        auto const column = chunk % across_ * per_column_;
        body(row, std::min(per_row_, rows_ - row), column,
             std::min(per_column_, columns_ - column));
    }

private:
    std::size_t rows_;
    std::size_t columns_;
    std::size_t per_row_{0};
    std::size_t per_column_{0};
    std::size_t across_{0};
    std::size_t down_{0};
};

/// Calls `body` for rectangles that cover rows × columns, on several threads if that pays.
template <class Body>
void split(Threads* threads, std::size_t rows, std::size_t columns, std::size_t depth, Body body) {
    if (rows == 0 || columns == 0) return;
    if (threads == nullptr || threads->count() == 1 || rows * columns * depth < worth_splitting) {
        body(std::size_t{0}, rows, std::size_t{0}, columns);
        return;
    }
    Cut const cut{rows, columns, chunks_per_thread * threads->count()};
    threads->run(cut.chunks(), [&](std::size_t chunk, unsigned) { cut.run(chunk, body); });
}

/// The address of an output's panel.
void const* panel_of(PackedMatrix const& w, std::size_t output) {
    assert(output % panel == 0);
    return w.panel(output / panel);
}

/// What `forward_outputs` does for a rectangle of y.
auto forward_part(MatrixView y, ConstMatrixView x, PackedMatrix const& w, std::size_t first,
                  Write write, float const* bias) {
    return [=, &w, &kernel = kernels()](std::size_t row, std::size_t rows, std::size_t column,
                                        std::size_t columns) {
        kernel.forward({.y = y.row(row) + column,
                        .y_stride = y.stride,
                        .x = x.row(row),
                        .x_stride = x.stride,
                        .rows = rows,
                        .type = w.type(),
                        .panels = panel_of(w, first + column),
                        .outputs = columns,
                        .inputs = w.inputs(),
                        .bias = bias == nullptr ? nullptr : bias + first + column,
                        .add = write == Write::add});
    };
}

/// How y = x wᵀ is cut into chunks of about so much work.
Cut cut(MatrixView y, PackedMatrix const& w, std::size_t chunk_work) noexcept {
    auto const work = y.rows * y.cols * w.inputs();
    return {y.rows, y.cols, std::max<std::size_t>(1, work / chunk_work)};
}

/// The one of consecutive pieces of work that a chunk belongs to.
auto& owner(auto& pieces, std::size_t chunk) {
    auto const next = std::ranges::upper_bound(pieces, chunk, {},
                                               [](auto const& piece) { return piece.first_chunk; });
    return *std::prev(next);
}

/// Waits for the thread that computes it: seldom, and not long, since it has begun.
void await_zero(std::uint32_t& value) noexcept {
    std::atomic_ref const shared{value};
    for (;;) {
        auto const left = shared.load(std::memory_order_acquire);
        if (left == 0) return;
        shared.wait(left, std::memory_order_acquire);
    }
}

void multiply(MatrixView c, float const* a, std::size_t a_row, std::size_t a_step,
              ConstMatrixView b, bool b_transposed, std::size_t depth, Write write,
              Threads* threads) {
    auto const& kernel = kernels();
    split(threads, c.rows, c.cols, depth,
          [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t columns) {
              kernel.multiply({.c = c.row(row) + column,
                               .c_stride = c.stride,
                               .a = a + row * a_row,
                               .a_row = a_row,
                               .a_step = a_step,
                               .b = b.data + column * (b_transposed ? b.stride : 1),
                               .b_stride = b.stride,
                               .b_transposed = b_transposed,
                               .m = rows,
                               .n = columns,
                               .k = depth,
                               .add = write == Write::add});
          });
}

}  // namespace

void forward_outputs(MatrixView y, ConstMatrixView x, PackedMatrix const& w, std::size_t first,
                     Write write, float const* bias, Threads* threads) {
    assert(y.rows == x.rows && x.cols == w.inputs() && first + y.cols <= w.outputs());
    assert(y.cols % panel == 0 || first + y.cols == w.outputs());
    split(threads, y.rows, y.cols, w.inputs(), forward_part(y, x, w, first, write, bias));
}

void forward(MatrixView y, ConstMatrixView x, PackedMatrix const& w, Write write, float const* bias,
             Threads* threads) {
    assert(y.cols == w.outputs());
    forward_outputs(y, x, w, 0, write, bias, threads);
}

void ForwardProducts::add(MatrixView y, ConstMatrixView x, PackedMatrix const& w, Write write,
                          float const* bias) {
    assert(y.rows == x.rows && x.cols == w.inputs() && y.cols == w.outputs());
    products_.push_back({.y = y,
                         .x = x,
                         .w = &w,
                         .write = write,
                         .bias = bias,
                         .first_pair = pairs_.size(),
                         .pairs = 0,
                         .first_chunk = 0});
    count(y, w);
}

void ForwardProducts::add_low_rank(std::size_t row, MatrixView hidden, ConstMatrixView x,
                                   PackedMatrix const& a, PackedMatrix const& b, float factor) {
    auto& to = products_.back();
    assert(row + hidden.rows <= to.y.rows && hidden.rows == x.rows && x.cols == a.inputs());
    assert(hidden.cols == a.outputs() && hidden.cols == b.inputs() && to.y.cols == b.outputs());
    pairs_.push_back({.row = row,
                      .hidden = hidden,
                      .x = x,
                      .a = &a,
                      .b = &b,
                      .factor = factor,
                      .first_chunk = 0,
                      .unfinished = 0});
    ++to.pairs;
    count(hidden, a);
    count({nullptr, hidden.rows, b.outputs()}, b);
}

void ForwardProducts::count(MatrixView y, PackedMatrix const& w) noexcept {
    work_ += y.rows * y.cols * w.inputs();
    bytes_ += w.bytes();
}

void ForwardProducts::run(Threads* threads) {
    bool const alone = threads == nullptr || threads->count() == 1 || work_ < worth_splitting;
    auto const wanted = alone ? 1 : chunks_per_thread * threads->count();
    auto const chunk_work = std::max<std::size_t>(1, work_ / wanted);
    // What is waited for comes first: a chunk that is claimed is also under way.
    std::size_t chunks = 0;
    for (auto& pair : pairs_) {
        auto const own = cut(pair.hidden, *pair.a, chunk_work).chunks();
        pair.first_chunk = chunks;
        pair.unfinished = static_cast<std::uint32_t>(own);
        chunks += own;
    }
    auto const of_pairs = chunks;
    for (auto& product : products_) {
        product.first_chunk = chunks;
        chunks += cut(product.y, *product.w, chunk_work).chunks();
    }
    auto const one = [&](std::size_t chunk, unsigned) {
        if (chunk < of_pairs) {
            compute_hidden(chunk, chunk_work);
        } else {
            compute_output(chunk, chunk_work);
        }
    };
    if (alone) {
        for (std::size_t chunk = 0; chunk != chunks; ++chunk) one(chunk, 0);
    } else {
        threads->run(chunks, one);
    }
    clear();
}

void ForwardProducts::compute_hidden(std::size_t chunk, std::size_t chunk_work) {
    auto& pair = owner(pairs_, chunk);
    auto const& hidden = pair.hidden;
    auto const part = forward_part(hidden, pair.x, *pair.a, 0, Write::set, nullptr);
    cut(hidden, *pair.a, chunk_work)
        .run(chunk - pair.first_chunk,
             [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t columns) {
                 part(row, rows, column, columns);
                 for (auto r = row; r != row + rows; ++r) {
                     scale(hidden.row(r) + column, pair.factor, columns);
                 }
             });
    std::atomic_ref const unfinished{pair.unfinished};
    if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_all();
}

void ForwardProducts::compute_output(std::size_t chunk, std::size_t chunk_work) {
    auto const& product = owner(products_, chunk);
    auto const part =
        forward_part(product.y, product.x, *product.w, 0, product.write, product.bias);
    cut(product.y, *product.w, chunk_work)
        .run(chunk - product.first_chunk,
             [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t columns) {
                 part(row, rows, column, columns);
                 for (auto& pair : std::span{pairs_}.subspan(product.first_pair, product.pairs)) {
                     auto const begin = std::max(row, pair.row);
                     auto const end = std::min(row + rows, pair.row + pair.hidden.rows);
                     if (begin >= end) continue;
                     await_zero(pair.unfinished);
                     MatrixView const y{product.y.row(pair.row), pair.hidden.rows, product.y.cols,
                                        product.y.stride};
                     forward_part(y, pair.hidden, *pair.b, 0, Write::add, nullptr)(
                         begin - pair.row, end - begin, column, columns);
                 }
             });
}

void ForwardProducts::clear() noexcept {
    products_.clear();
    pairs_.clear();
    work_ = 0;
    bytes_ = 0;
}

void backward_input_outputs(MatrixView dx, ConstMatrixView dy, PackedMatrix const& w,
                            std::size_t first, Write write, Threads* threads) {
    assert(dx.rows == dy.rows && dx.cols == w.inputs() && first + dy.cols <= w.outputs());
    assert(dy.cols % panel == 0 || first + dy.cols == w.outputs());
    auto const& kernel = kernels();
    split(threads, dx.rows, dx.cols, dy.cols,
          [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t columns) {
              kernel.backward_input({.dx = dx.row(row),
                                     .dx_stride = dx.stride,
                                     .dy = dy.row(row),
                                     .dy_stride = dy.stride,
                                     .rows = rows,
                                     .type = w.type(),
                                     .panels = panel_of(w, first),
                                     .outputs = dy.cols,
                                     .inputs = w.inputs(),
                                     .first = column,
                                     .columns = columns,
                                     .add = write == Write::add});
          });
}

void backward_input(MatrixView dx, ConstMatrixView dy, PackedMatrix const& w, Write write,
                    Threads* threads) {
    assert(dy.cols == w.outputs());
    backward_input_outputs(dx, dy, w, 0, write, threads);
}

void backward_weight_outputs(PackedMatrix& dw, ConstMatrixView dy, ConstMatrixView x,
                             std::size_t first, Threads* threads) {
    assert(dw.type() == ElementType::f32 && dy.rows == x.rows && x.cols == dw.inputs());
    assert(first % panel == 0 && first + dy.cols <= dw.outputs());
    assert(dy.cols % panel == 0 || first + dy.cols == dw.outputs());
    auto const& kernel = kernels();
    auto const values = dw.values();
    // A panel is a matrix of inputs × outputs, so its rows are the inputs here.
    split(
        threads, dw.inputs(), dy.cols, dy.rows,
        [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t columns) {
            for (auto const end = column + columns; column < end; column += panel) {
                auto const width = dw.width((first + column) / panel);
                kernel.multiply({.c = values.data() + (first + column) * dw.inputs() + row * width,
                                 .c_stride = width,
                                 .a = x.data + row,
                                 .a_row = 1,
                                 .a_step = x.stride,
                                 .b = dy.data + column,
                                 .b_stride = dy.stride,
                                 .b_transposed = false,
                                 .m = rows,
                                 .n = width,
                                 .k = dy.rows,
                                 .add = true});
            }
        });
}

void backward_weight(PackedMatrix& dw, ConstMatrixView dy, ConstMatrixView x, Threads* threads) {
    assert(dy.cols == dw.outputs());
    backward_weight_outputs(dw, dy, x, 0, threads);
}

void multiply_nt(MatrixView c, ConstMatrixView a, ConstMatrixView b, Write write,
                 Threads* threads) {
    assert(c.rows == a.rows && c.cols == b.rows && a.cols == b.cols);
    multiply(c, a.data, a.stride, 1, b, true, a.cols, write, threads);
}

void multiply_nn(MatrixView c, ConstMatrixView a, ConstMatrixView b, Write write,
                 Threads* threads) {
    assert(c.rows == a.rows && c.cols == b.cols && a.cols == b.rows);
    multiply(c, a.data, a.stride, 1, b, false, a.cols, write, threads);
}

void multiply_tn(MatrixView c, ConstMatrixView a, ConstMatrixView b, Write write,
                 Threads* threads) {
    assert(c.rows == a.cols && c.cols == b.cols && a.rows == b.rows);
    multiply(c, a.data, 1, a.stride, b, false, a.rows, write, threads);
}

}  // namespace tinkxx::engine
