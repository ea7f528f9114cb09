#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace tinkxx {

/// The element types of the API.
enum class DType : std::uint8_t { float32, int64 };

/// A tensor in the form of the API: numbers in row-major order, dense, or the stored cells of a
/// sparse matrix in CSR form.
struct TensorData {
    std::variant<std::vector<float>, std::vector<std::int64_t>> data{};
    /// Empty: one-dimensional. Required for a CSR matrix.
    std::optional<std::vector<std::int64_t>> shape{};
    /// CSR only: the index in `data` at which each row begins, plus one entry for the end.
    std::optional<std::vector<std::int64_t>> sparse_crow_indices{};
    /// CSR only: the column of each element of `data`.
    std::optional<std::vector<std::int64_t>> sparse_col_indices{};

    [[nodiscard]] DType dtype() const noexcept {
        return data.index() == 0 ? DType::float32 : DType::int64;
    }
    [[nodiscard]] bool sparse() const noexcept { return sparse_crow_indices.has_value(); }

    bool operator==(TensorData const&) const = default;
};

}  // namespace tinkxx
