#pragma once

#include "engine/kernels/types.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace tinkxx::engine {

class Threads;

/// Gives the memory of a `PackedMatrix` back, or its share of an arena.
struct FreePanels {
    std::size_t bytes{0};
    std::shared_ptr<std::byte> arena{};
    void operator()(std::byte* p) const noexcept;
};
using PanelMemory = std::unique_ptr<std::byte[], FreePanels>;

/// Memory for matrices that live and die together. Side by side they fill large pages, which each
/// of them may be too small for. It lives as long as one of them.
class PanelArena {
public:
    /// For `bytes` of matrices and what lies between `matrices` of them. Takes nothing if that is
    /// too little for large pages: the matrices then have memory of their own.
    PanelArena(std::size_t bytes, std::size_t matrices);

    /// Empty if nothing is left.
    [[nodiscard]] PanelMemory take(std::size_t bytes);

private:
    std::shared_ptr<std::byte> memory_{};
    std::size_t left_{0};
    std::byte* next_{nullptr};
};

/// Weights of a linear layer (outputs × inputs), laid out for the products below.
///
/// Panels of 64 outputs, the last one of those that remain; inside a panel input after input, so
/// element (n, k) of panel p is at `k * width(p) + n % 64`. There is no padding: it takes as many
/// bytes as the file. Move-only. Reading from any number of threads is safe.
class PackedMatrix {
public:
    static constexpr std::size_t panel_outputs = 64;

    PackedMatrix() = default;
    /// Copies `weights` into panels of the same type.
    explicit PackedMatrix(WeightView weights, Threads* threads = nullptr,
                          PanelArena* arena = nullptr);
    /// float32 zeros, e.g. to gather a gradient in.
    PackedMatrix(std::size_t outputs, std::size_t inputs, PanelArena* arena = nullptr);

    [[nodiscard]] ElementType type() const noexcept { return type_; }
    [[nodiscard]] std::size_t outputs() const noexcept { return outputs_; }
    [[nodiscard]] std::size_t inputs() const noexcept { return inputs_; }
    [[nodiscard]] bool empty() const noexcept { return outputs_ == 0 || inputs_ == 0; }
    /// Memory that the panels take.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return outputs_ * inputs_ * element_bytes(type_);
    }

    [[nodiscard]] std::size_t panels() const noexcept {
        return (outputs_ + panel_outputs - 1) / panel_outputs;
    }
    /// The number of outputs of panel `p`: 64 but for the last.
    [[nodiscard]] std::size_t width(std::size_t p) const noexcept {
        auto const left = outputs_ - p * panel_outputs;
        return left < panel_outputs ? left : panel_outputs;
    }
    [[nodiscard]] void const* panel(std::size_t p) const noexcept {
        return data_.get() + p * panel_outputs * inputs_ * element_bytes(type_);
    }

    /// All elements in the order of the panels, for what treats each alike (AdamW, norms, zeroing):
    /// two matrices of one shape have the same order. float32 only; otherwise empty.
    [[nodiscard]] std::span<float> values() noexcept;
    [[nodiscard]] std::span<float const> values() const noexcept;

    /// Replaces the elements by those of a matrix of the same shape; rounds to `type()` from
    /// float32, else the types must be equal. Throws `std::invalid_argument` on a mismatch.
    void assign(WeightView weights, Threads* threads = nullptr);
    /// Writes the elements row by row (outputs × inputs) in `type()`.
    void unpack(void* to, Threads* threads = nullptr) const;
    /// The rows of panel `p` only: `width(p)` × inputs elements.
    void unpack_panel(std::size_t p, void* to) const;
    /// Writes the weights of one output as floats: the embedding of a token.
    void gather_row(std::size_t output, float* to) const noexcept;

private:
    ElementType type_{ElementType::f32};
    std::size_t outputs_{0};
    std::size_t inputs_{0};
    PanelMemory data_;
};

}  // namespace tinkxx::engine
