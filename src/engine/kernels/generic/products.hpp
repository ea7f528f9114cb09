#pragma once

// Matrix products over V16, which the including file has defined for its instruction set.
//
// All of them are one thing: tiles of rows times a strip of B, a chain of multiply-adds for each
// element. B is read where it lies, or strip by strip from a small buffer that stays in the L1
// cache. A chain may stop at the end of a block and go on from the stored sum: same bits.

#include "engine/kernels/kernel_table.hpp"

#include <type_traits>

#if defined(TINKXX_SMALL_KERNELS)
#define TINKXX_UNROLL
#elif defined(__clang__)
#define TINKXX_UNROLL _Pragma("unroll")
#else
#define TINKXX_UNROLL _Pragma("GCC unroll 16")
#endif

namespace tinkxx::engine::TINKXX_ISA {
namespace {

/// Columns of B that a tile of all rows takes at a time.
constexpr std::size_t strip = 16 * tile_vectors;
/// Steps of the reduction that are staged at a time: 16 KB (32 KB with AVX-512).
constexpr std::size_t stage_steps = tile_vectors == 1 ? 256 : 128;
/// Rows whose part of A stays in the L2 cache while the strips pass.
constexpr std::size_t block_rows = 32 * tile_rows;
/// Fewer rows read the panels where they lie. From here on copying a strip of floats pays: its
/// lines no longer compete for few cache sets.
template <class T>
constexpr std::size_t direct_rows = 32;
/// Widening a strip once pays earlier.
template <>
constexpr std::size_t direct_rows<Bf16> = 12;
/// Too rare to be worth the code.
template <>
constexpr std::size_t direct_rows<F16> = 0;

constexpr std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }
constexpr std::size_t beyond(std::size_t a, std::size_t b) { return a > b ? a - b : 0; }

/// What a chain begins with.
enum class Begin { zero, old, bias, old_and_bias };

/// The A side: element (i, r) is at data[i * row + r * step].
struct Rows {
    float const* data;
    std::size_t row;
    std::size_t step;
};

/// `p + n`, also of no bias at all.
constexpr float const* plus(float const* p, std::size_t n) {
    return p == nullptr ? nullptr : p + n;
}

inline V16 begin_with(Begin begin, float const* c, float const* bias, std::size_t cols) {
    if (cols >= 16) {
        if (begin == Begin::zero) return set1(0);
        if (begin == Begin::old) return load(c);
        return begin == Begin::bias ? load(bias) : load(c) + load(bias);
    }
    if (begin == Begin::zero) return set1(0);
    if (begin == Begin::old) return load_first(c, cols, 0);
    auto const b = load_first(bias, cols, 0);
    return begin == Begin::bias ? b : load_first(c, cols, 0) + b;
}

/// The same address, which the compiler is not to compute ahead and keep: it has better use for its
/// registers.
inline float* forgotten(float* p) {
    __asm__("" : "+r"(p));
    return p;
}

/// c[R × cols] = begin + a · b over `steps`; cols <= 16 * V. The vectors of b are read whole.
/// Not inlined: it is called from many places, and a call costs little beside its loop. `a` by
/// reference: a copy to the stack reads in one piece what has just been written in two, and waits
/// until both have left for the cache, after all sums of the tile before.
/// With `Ahead` it asks for two lines from `later` on in each step, of four pages in turn: memory
/// delivers several streams faster than one.
template <std::size_t R, std::size_t V, bool Ahead, class T>
[[gnu::noinline]] void tile(float* c, std::size_t c_stride, Rows const& a, T const* b,
                            std::size_t b_stride, std::size_t steps, std::size_t cols, Begin begin,
                            float const* bias, [[maybe_unused]] char const* later) {
    V16 acc[R][V];
    auto const each = [&](auto body) {
        TINKXX_UNROLL
        for (std::size_t r = 0; r != R; ++r) {
            auto* const at = forgotten(c + r * c_stride);
            TINKXX_UNROLL
            for (std::size_t v = 0; v != V; ++v) body(acc[r][v], at + 16 * v, v);
        }
    };
    // Nearly all tiles are whole, and begin with nothing or with what is there.
    auto const whole = cols == 16 * V;
    if (begin == Begin::zero) {
        each([](V16& sum, float const*, std::size_t) { sum = set1(0); });
    } else if (whole && begin == Begin::old) {
        each([](V16& sum, float const* from, std::size_t) { sum = load(from); });
    } else {
        each([&](V16& sum, float const* from, std::size_t v) {
            sum = begin_with(begin, from, plus(bias, 16 * v), beyond(cols, 16 * v));
        });
    }
    float const* row[R];
    TINKXX_UNROLL
    for (std::size_t r = 0; r != R; ++r) row[r] = a.data + r * a.row;
    for (std::size_t k = 0, at = 0; k != steps; ++k, at += a.step) {
        if constexpr (Ahead) {
            auto const* const line = later + (k % 4 * 4096 + k / 4 * 128);
            prefetch(line);
            prefetch(line + 64);
        }
        V16 w[V];
        TINKXX_UNROLL
        for (std::size_t v = 0; v != V; ++v) w[v] = load(b + 16 * v);
        TINKXX_UNROLL
        for (std::size_t r = 0; r != R; ++r) {
            auto const x = set1(row[r][at]);
            TINKXX_UNROLL
            for (std::size_t v = 0; v != V; ++v) acc[r][v] = fma(x, w[v], acc[r][v]);
        }
        b += b_stride;
    }
    if (whole) {
        each([](V16& sum, float* to, std::size_t) { store(to, sum); });
    } else {
        each([&](V16& sum, float* to, std::size_t v) {
            store_first(to, sum, smaller(16, beyond(cols, 16 * v)));
        });
    }
}

/// As `tile` for any number of rows. With `Ahead` the first rows ask for one half of as many lines
/// from `later` on as b has, and the next rows for the other.
template <std::size_t V, bool Ahead = false, class T>
inline void tiles(float* c, std::size_t c_stride, Rows a, std::size_t rows, T const* b,
                  std::size_t b_stride, std::size_t steps, std::size_t cols, Begin begin,
                  float const* bias, char const* later = nullptr) {
    [[maybe_unused]] auto lines = steps * b_stride * sizeof(T) / 64;
    auto const some = [&]<std::size_t R>(std::integral_constant<std::size_t, R>) {
        if (Ahead && lines != 0) {
            tile<R, V, Ahead>(c, c_stride, a, b, b_stride, steps, cols, begin, bias, later);
            later += 128 * steps;
            lines = beyond(lines, 2 * steps);
        } else {
            tile<R, V, false>(c, c_stride, a, b, b_stride, steps, cols, begin, bias, nullptr);
        }
        c += R * c_stride;
        a.data += R * a.row;
        return rows - R;
    };
    if constexpr (V == 2 && tile_vectors == 4) {
        while (rows >= 12) rows = some(std::integral_constant<std::size_t, 12>{});
    }
    // Seven rows are four and three, not six and one: a lone row waits for its sums.
    while (rows >= 12 || rows == 6) rows = some(std::integral_constant<std::size_t, 6>{});
    while (rows != 0) {
        switch (rows > 6 ? (rows + 1) / 2 : rows) {
            case 6:
                rows = some(std::integral_constant<std::size_t, 6>{});
                break;
            case 5:
                rows = some(std::integral_constant<std::size_t, 5>{});
                break;
            case 4:
                rows = some(std::integral_constant<std::size_t, 4>{});
                break;
            case 3:
                rows = some(std::integral_constant<std::size_t, 3>{});
                break;
            case 2:
                rows = some(std::integral_constant<std::size_t, 2>{});
                break;
            default:
                rows = some(std::integral_constant<std::size_t, 1>{});
                break;
        }
    }
}

/// As `tiles` from a staged strip, with fewer vectors if few columns need them.
inline void strip_tiles(float* c, std::size_t c_stride, Rows a, std::size_t rows, float const* b,
                        std::size_t b_stride, std::size_t steps, std::size_t cols, Begin begin,
                        float const* bias) {
    if constexpr (tile_vectors == 4) {
        if (cols <= 16) {
            return tiles<1>(c, c_stride, a, rows, b, b_stride, steps, cols, begin, bias);
        }
        if (cols <= 32) {
            return tiles<2>(c, c_stride, a, rows, b, b_stride, steps, cols, begin, bias);
        }
    }
    tiles<tile_vectors>(c, c_stride, a, rows, b, b_stride, steps, cols, begin, bias);
}

/// c[rows × cols] = begin + a · B, where `stage(buffer, step, steps, col, cols)` writes the rows
/// [step, step + steps) of columns [col, col + cols) of B, each to `strip` floats of the buffer.
template <class Stage>
inline void staged_product(float* c, std::size_t c_stride, Rows a, std::size_t rows,
                           std::size_t steps, std::size_t cols, Begin begin, float const* bias,
                           Stage stage) {
    alignas(64) float buffer[stage_steps * strip];
    for (std::size_t row = 0; row < rows; row += block_rows) {
        auto const some_rows = smaller(block_rows, rows - row);
        for (std::size_t col = 0; col < cols; col += strip) {
            auto const some_cols = smaller(strip, cols - col);
            auto* const to = c + row * c_stride + col;
            auto from = begin;
            std::size_t step = 0;
            do {
                auto const some_steps = smaller(stage_steps, steps - step);
                stage(buffer, step, some_steps, col, some_cols);
                strip_tiles(to, c_stride, {a.data + row * a.row + step * a.step, a.row, a.step},
                            some_rows, buffer, strip, some_steps, some_cols, from, plus(bias, col));
                from = Begin::old;
                step += some_steps;
            } while (step < steps);
        }
    }
}

/// How many columns a strip of `cols` is padded to, so that whole vectors can be read.
constexpr std::size_t padded(std::size_t cols) {
    if (cols <= 16) return 16;
    return cols <= 32 ? 32 : strip;
}

/// Widens `steps` rows of `cols` elements; the padding is zero.
template <class T>
inline void stage_rows(float* to, T const* from, std::size_t stride, std::size_t steps,
                       std::size_t cols) {
    auto const whole = cols / 16 * 16;
    for (std::size_t k = 0; k != steps; ++k, to += strip, from += stride) {
        for (std::size_t j = 0; j != whole; j += 16) store(to + j, load(from + j));
        if (whole != cols) {
            T rest[16] = {};
            for (std::size_t j = whole; j < cols; ++j) rest[j - whole] = from[j];
            store(to + whole, load(rest));
        }
        for (auto j = (cols + 15) / 16 * 16; j < padded(cols); j += 16) store(to + j, set1(0));
    }
}

/// to[k * strip + j] = from[j * stride + k]
inline void stage_transposed(float* to, float const* from, std::size_t stride, std::size_t steps,
                             std::size_t cols) {
    auto const whole_steps = steps / 8 * 8;
    auto const whole_cols = cols / 8 * 8;
    for (std::size_t j = 0; j != whole_cols; j += 8) {
        for (std::size_t k = 0; k != whole_steps; k += 8) {
            transpose8(to + k * strip + j, strip, from + j * stride + k, stride);
        }
        for (std::size_t k = whole_steps; k != steps; ++k) {
            for (std::size_t i = j; i != j + 8; ++i) to[k * strip + i] = from[i * stride + k];
        }
    }
    auto const end = padded(cols);
    for (std::size_t k = 0; k != steps && whole_cols != end; ++k) {
        for (std::size_t j = whole_cols; j != end; ++j) {
            to[k * strip + j] = j < cols ? from[j * stride + k] : 0;
        }
    }
}

constexpr Begin begin_of(bool add, bool bias) {
    if (bias) return add ? Begin::old_and_bias : Begin::bias;
    return add ? Begin::old : Begin::zero;
}

// ---------------------------------------------------------------------------- forward

constexpr std::size_t panel_width = 64;
/// Panels that one row is multiplied with side by side, and the steps of each before it is the turn
/// of the next; as many steps as it likes if all of them fit into registers.
constexpr std::size_t row_streams = 4;
constexpr std::size_t row_steps = row_panels == row_streams ? 4096 : 8;
/// How far ahead of a stream it is asked for.
constexpr std::size_t row_prefetch_bytes = 2048;

/// Continues the chains of one row and P full panels by `steps`; sums[P × 64].
template <std::size_t P, class T>
inline void row_times_panels(float* sums, float const* x, T const* panels, std::size_t inputs,
                             std::size_t steps) {
    V16 acc[P][4];
    TINKXX_UNROLL
    for (std::size_t p = 0; p != P; ++p) {
        TINKXX_UNROLL
        for (std::size_t v = 0; v != 4; ++v) acc[p][v] = load(sums + 64 * p + 16 * v);
    }
    for (std::size_t k = 0; k != steps; ++k, panels += panel_width) {
        auto const e = set1(x[k]);
        TINKXX_UNROLL
        for (std::size_t p = 0; p != P; ++p) {
            auto const* const w = panels + p * panel_width * inputs;
            TINKXX_UNROLL
            for (std::size_t line = 0; line != sizeof(T); ++line) {
                prefetch(w + row_prefetch_bytes / sizeof(T) + line * (64 / sizeof(T)));
            }
            TINKXX_UNROLL
            for (std::size_t v = 0; v != 4; ++v) acc[p][v] = fma(e, load(w + 16 * v), acc[p][v]);
        }
    }
    TINKXX_UNROLL
    for (std::size_t p = 0; p != P; ++p) {
        TINKXX_UNROLL
        for (std::size_t v = 0; v != 4; ++v) store(sums + 64 * p + 16 * v, acc[p][v]);
    }
}

/// One row times `panels` full panels, a few at a time and side by side: memory delivers several
/// streams faster than one.
template <class T>
inline void row_times_all(float* y, float const* x, T const* w, std::size_t panels,
                          std::size_t inputs, Begin begin, float const* bias) {
    for (std::size_t p = 0; p != panels * panel_width; p += 16) {
        store(y + p, begin_with(begin, y + p, plus(bias, p), 16));
    }
    for (std::size_t p = 0; p < panels;) {
        auto const streams = smaller(row_streams, panels - p);
        for (std::size_t k = 0; k < inputs; k += row_steps) {
            auto const steps = smaller(row_steps, inputs - k);
            std::size_t done = 0;
            for (; done + row_panels <= streams; done += row_panels) {
                row_times_panels<row_panels>(y + (p + done) * panel_width, x + k,
                                             w + ((p + done) * inputs + k) * panel_width, inputs,
                                             steps);
            }
            for (; done != streams; ++done) {
                row_times_panels<1>(y + (p + done) * panel_width, x + k,
                                    w + ((p + done) * inputs + k) * panel_width, inputs, steps);
            }
        }
        p += streams;
    }
}

/// Rows times a panel of 16 * V outputs, where it lies: so many steps at a time that they stay in
/// the L1 cache while the rows pass, and the next ones are on their way meanwhile.
template <std::size_t V, class T>
inline void rows_times_panel_ahead(ForwardArgs const& g, std::size_t row, std::size_t rows,
                                   float* y, T const* panel, Begin begin, float const* bias) {
    constexpr std::size_t width = 16 * V;
    auto const* const x = g.x + row * g.x_stride;
    for (std::size_t k = 0; k < g.inputs; k += stage_steps) {
        auto const steps = smaller(stage_steps, g.inputs - k);
        auto const* const now = panel + k * width;
        // After the last panel comes one that may be another thread's.
        bool const last = k + steps == g.inputs && y + width == g.y + g.outputs;
        auto const* const later = last ? now : now + steps * width;
        tiles<V, true>(y + row * g.y_stride, g.y_stride, {x + k, g.x_stride, 1}, rows, now, width,
                       steps, width, k == 0 ? begin : Begin::old, bias,
                       reinterpret_cast<char const*>(later));
    }
}

/// As many outputs as there are in panels that are as wide as a tile, or half as wide; the number
/// of those that were multiplied.
template <class T>
inline std::size_t rows_times_panels(ForwardArgs const& g, T const* panels, Begin begin) {
    constexpr std::size_t half = panel_width / 2;
    auto const whole = g.outputs / panel_width * panel_width;
    bool const and_half = g.outputs - whole == half;
    for (std::size_t row = 0; row < g.rows; row += block_rows) {
        auto const rows = smaller(block_rows, g.rows - row);
        auto const next = [&]<std::size_t V>(std::size_t output) {
            rows_times_panel_ahead<V>(g, row, rows, g.y + output, panels + output * g.inputs, begin,
                                      plus(g.bias, output));
        };
        for (std::size_t at = 0; at < whole; at += panel_width) {
            next.template operator()<panel_width / 16>(at);
        }
        if (and_half) next.template operator()<half / 16>(whole);
    }
    return and_half ? whole + half : whole;
}

/// Few rows times the first `cols` (a multiple of sixteen) outputs of a panel, where it lies.
template <class T>
inline void rows_times_panel(ForwardArgs const& g, float* y, T const* panel, std::size_t width,
                             std::size_t cols, Begin begin, float const* bias) {
    std::size_t col = 0;
    auto const next = [&]<std::size_t V>(std::integral_constant<std::size_t, V>) {
        for (; col + 16 * V <= cols; col += 16 * V) {
            tiles<V>(y + col, g.y_stride, {g.x, g.x_stride, 1}, g.rows, panel + col, width,
                     g.inputs, 16 * V, begin, plus(bias, col));
        }
    };
    if (g.rows <= 2 || tile_vectors > 1) next(std::integral_constant<std::size_t, 2>{});
    next(std::integral_constant<std::size_t, 1>{});
}

template <class T>
inline void forward_of(ForwardArgs const& g) {
    auto const begin = begin_of(g.add, g.bias != nullptr);
    auto const* const panels = static_cast<T const*>(g.panels);
    std::size_t output = 0;
    if (g.rows == 1) {
        auto const whole = g.outputs / panel_width;
        row_times_all(g.y, g.x, panels, whole, g.inputs, begin, g.bias);
        output = whole * panel_width;
    } else if constexpr (tile_vectors * 16 == panel_width) {
        // Widening a strip once pays if many rows pass it.
        if (sizeof(T) == sizeof(float) || g.rows < direct_rows<T>) {
            output = rows_times_panels(g, panels, begin);
        }
    }
    [[maybe_unused]] auto const few = g.rows < direct_rows<T>;
    for (; output < g.outputs; output += panel_width) {
        auto const width = smaller(panel_width, g.outputs - output);
        auto const* const panel = panels + output * g.inputs;
        auto const* const bias = plus(g.bias, output);
        std::size_t done = 0;
        if constexpr (direct_rows<T> != 0) {
            if (few) {
                done = width / 16 * 16;
                rows_times_panel(g, g.y + output, panel, width, done, begin, bias);
            }
        }
        if (done == width) continue;
        staged_product(
            g.y + output + done, g.y_stride, {g.x, g.x_stride, 1}, g.rows, g.inputs, width - done,
            begin, plus(bias, done),
            [&](float* to, std::size_t step, std::size_t steps, std::size_t col, std::size_t cols) {
                stage_rows(to, panel + step * width + done + col, width, steps, cols);
            });
    }
}

void forward(ForwardArgs const& g) {
    switch (g.type) {
        case ElementType::f32:
            return forward_of<float>(g);
        case ElementType::bf16:
            return forward_of<Bf16>(g);
        case ElementType::f16:
            return forward_of<F16>(g);
    }
}

// ---------------------------------------------------------------------------- backward

/// The outputs [step, step + steps) of columns [col, col + cols), output after output.
template <class T>
inline void stage_panels(float* to, T const* panels, std::size_t outputs, std::size_t inputs,
                         std::size_t step, std::size_t steps, std::size_t col, std::size_t cols) {
    alignas(64) float wide[strip * panel_width];
    for (std::size_t end = step + steps; step != end;) {
        auto const panel = step / panel_width * panel_width;
        auto const width = smaller(panel_width, outputs - panel);
        auto const some = smaller(end, panel + width) - step;
        auto const* const from = panels + panel * inputs + col * width + (step - panel);
        if constexpr (sizeof(T) == 4) {
            stage_transposed(to, from, width, some, cols);
        } else {
            // Widened first: floats are what is transposed.
            for (std::size_t k = 0; k != cols; ++k) {
                std::size_t j = 0;
                for (; j + 16 <= some; j += 16) {
                    store(wide + k * panel_width + j, load(from + k * width + j));
                }
                if (j != some) {
                    T rest[16] = {};
                    for (std::size_t i = j; i != some; ++i) rest[i - j] = from[k * width + i];
                    store(wide + k * panel_width + j, load(rest));
                }
            }
            stage_transposed(to, wide, panel_width, some, cols);
        }
        to += some * strip;
        step += some;
    }
}

template <class T>
inline void backward_input_of(BackwardInputArgs const& g) {
    auto const* const panels = static_cast<T const*>(g.panels);
    staged_product(
        g.dx + g.first, g.dx_stride, {g.dy, g.dy_stride, 1}, g.rows, g.outputs, g.columns,
        begin_of(g.add, false), nullptr,
        [&](float* to, std::size_t step, std::size_t steps, std::size_t col, std::size_t cols) {
            stage_panels(to, panels, g.outputs, g.inputs, step, steps, g.first + col, cols);
        });
}

void backward_input(BackwardInputArgs const& g) {
    switch (g.type) {
        case ElementType::f32:
            return backward_input_of<float>(g);
        case ElementType::bf16:
            return backward_input_of<Bf16>(g);
        case ElementType::f16:
            return backward_input_of<F16>(g);
    }
}

// ---------------------------------------------------------------------------- floats

void multiply(MultiplyArgs const& g) {
    if (g.k == 0) {  // nothing to add up, and a and b may be null
        for (std::size_t row = 0; row != g.m && !g.add; ++row) {
            for (std::size_t col = 0; col != g.n; ++col) g.c[row * g.c_stride + col] = 0;
        }
        return;
    }
    auto const begin = begin_of(g.add, false);
    Rows const a{g.a, g.a_row, g.a_step};
    if (g.b_transposed) {
        staged_product(
            g.c, g.c_stride, a, g.m, g.k, g.n, begin, nullptr,
            [&](float* to, std::size_t step, std::size_t steps, std::size_t col, std::size_t cols) {
                stage_transposed(to, g.b + col * g.b_stride + step, g.b_stride, steps, cols);
            });
        return;
    }
    std::size_t col = 0;
    if (g.m < direct_rows<float>) {
        for (; col + strip <= g.n; col += strip) {
            tiles<tile_vectors>(g.c + col, g.c_stride, a, g.m, g.b + col, g.b_stride, g.k, strip,
                                begin, nullptr);
        }
    }
    if (col == g.n) return;
    staged_product(
        g.c + col, g.c_stride, a, g.m, g.k, g.n - col, begin, nullptr,
        [&](float* to, std::size_t step, std::size_t steps, std::size_t at, std::size_t cols) {
            stage_rows(to, g.b + step * g.b_stride + col + at, g.b_stride, steps, cols);
        });
}

}  // namespace
}  // namespace tinkxx::engine::TINKXX_ISA
