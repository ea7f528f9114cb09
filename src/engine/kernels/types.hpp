#pragma once

#include <cstddef>
#include <cstdint>

namespace tinkxx::engine {

/// How an element of a weight file is stored.
enum class ElementType : std::uint8_t { f32, bf16, f16 };

[[nodiscard]] constexpr std::size_t element_bytes(ElementType type) noexcept {
    return type == ElementType::f32 ? 4 : 2;
}

/// Whether a kernel replaces its output or adds to what is there.
enum class Write : std::uint8_t { set, add };

/// Rows of floats that somebody else owns; row `r` starts at `data + r * stride`.
struct ConstMatrixView {
    float const* data{nullptr};
    std::size_t rows{0};
    std::size_t cols{0};
    std::size_t stride{0};

    ConstMatrixView() = default;
    ConstMatrixView(float const* d, std::size_t r, std::size_t c) noexcept
        : data{d}, rows{r}, cols{c}, stride{c} {}
    ConstMatrixView(float const* d, std::size_t r, std::size_t c, std::size_t s) noexcept
        : data{d}, rows{r}, cols{c}, stride{s} {}

    [[nodiscard]] float const* row(std::size_t r) const noexcept { return data + r * stride; }
};

/// As `ConstMatrixView`, for writing.
struct MatrixView {
    float* data{nullptr};
    std::size_t rows{0};
    std::size_t cols{0};
    std::size_t stride{0};

    MatrixView() = default;
    MatrixView(float* d, std::size_t r, std::size_t c) noexcept
        : data{d}, rows{r}, cols{c}, stride{c} {}
    MatrixView(float* d, std::size_t r, std::size_t c, std::size_t s) noexcept
        : data{d}, rows{r}, cols{c}, stride{s} {}

    [[nodiscard]] float* row(std::size_t r) const noexcept { return data + r * stride; }
    // Implicit, so that an output of one kernel is the input of the next.
    operator ConstMatrixView() const noexcept { return {data, rows, cols, stride}; }
};

/// A row-major weight matrix in its file's type; it need not be aligned.
struct WeightView {
    ElementType type{ElementType::f32};
    void const* data{nullptr};
    std::size_t rows{0};
    std::size_t cols{0};
};

}  // namespace tinkxx::engine
