#include "wire/values/tensor.hpp"

#include <cstddef>
#include <cstdint>

namespace tinkxx::wire {

namespace {

// How many elements a shape has; none if a dimension is negative or nobody could store so many.
std::optional<std::uint64_t> elements(std::span<std::int64_t const> shape) {
    std::uint64_t count = 1;
    for (auto const dimension : shape) {
        if (dimension < 0) return std::nullopt;
        if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(dimension), &count)) {
            return std::nullopt;
        }
    }
    return count;
}

std::string csr_problem(TensorView const& tensor, std::size_t stored) {
    if (!tensor.sparse_crow_indices || !tensor.sparse_col_indices) {
        return "only one of its two lists of indices";
    }
    if (!tensor.shape || tensor.shape->size() != 2) return "a sparse form but no shape of two";
    auto const& rows = *tensor.sparse_crow_indices;
    auto const& columns = *tensor.sparse_col_indices;
    auto const& shape = *tensor.shape;
    if (shape[0] < 0 || shape[1] < 0) {
        return "the negative dimension " + std::to_string(shape[0] < 0 ? shape[0] : shape[1]);
    }
    if (rows.size() != static_cast<std::uint64_t>(shape[0]) + 1) {
        return std::to_string(rows.size()) + " row indices for " + std::to_string(shape[0]) +
               " rows";
    }
    if (columns.size() != stored) {
        return std::to_string(columns.size()) + " column indices for " + std::to_string(stored) +
               " elements";
    }
    if (rows.front() != 0 || rows.back() != static_cast<std::int64_t>(stored)) {
        return "row indices that do not go from 0 to " + std::to_string(stored);
    }
    for (std::size_t i = 1; i < rows.size(); ++i) {
        if (rows[i] < rows[i - 1]) return "row indices that go backwards";
    }
    for (auto const column : columns) {
        if (column < 0 || column >= shape[1]) {
            return "column index " + std::to_string(column) + " of " + std::to_string(shape[1]);
        }
    }
    return {};
}

}  // namespace

std::string_view to_string(DType dtype) noexcept {
    return dtype == DType::float32 ? "float32" : "int64";
}

std::string tensor_problem(TensorData const& tensor) { return tensor_problem(view(tensor)); }

std::string tensor_problem(TensorView const& tensor) {
    auto const stored = tensor.size();
    if (tensor.sparse_crow_indices || tensor.sparse_col_indices) {
        return csr_problem(tensor, stored);
    }
    if (!tensor.shape) return {};
    auto const wanted = elements(*tensor.shape);
    if (wanted && *wanted == stored) return {};
    std::string shape;
    std::string have = std::to_string(stored) + " elements";
    for (auto const dimension : *tensor.shape) {
        if (!shape.empty()) shape += ", ";
        shape += std::to_string(dimension);
        if (dimension < 0) have = "the negative dimension " + std::to_string(dimension);
    }
    return have + " in the shape [" + shape + "]";
}

void write(JsonOut& json, TensorData const& tensor) { write(json, view(tensor)); }

void write(JsonOut& json, TensorView const& tensor) {
    json.open_object();
    json.key("data");
    std::visit([&json](auto const& data) { json.list(data); }, tensor.data);
    json.member("dtype", to_string(tensor.dtype()));
    auto const list = [&json](std::string_view name, auto const& numbers) {
        if (!numbers) return;
        json.key(name);
        json.list(*numbers);
    };
    list("shape", tensor.shape);
    list("sparse_crow_indices", tensor.sparse_crow_indices);
    list("sparse_col_indices", tensor.sparse_col_indices);
    json.close_object();
}

void read(JsonIn const& in, TensorData& out) {
    auto const dtype = in.required<std::string>("dtype");
    if (dtype == "float32") {
        out.data = in.required<std::vector<float>>("data");
    } else if (dtype == "int64") {
        out.data = in.required<std::vector<std::int64_t>>("data");
    } else {
        in.fail("a tensor of float32 or int64");
    }
    out.shape = in.optional<std::vector<std::int64_t>>("shape");
    out.sparse_crow_indices = in.optional<std::vector<std::int64_t>>("sparse_crow_indices");
    out.sparse_col_indices = in.optional<std::vector<std::int64_t>>("sparse_col_indices");
    if (!in.ok()) return;
    if (auto const problem = tensor_problem(out); !problem.empty()) {
        in.fail("a tensor whose parts fit together: it has " + problem);
    }
}

}  // namespace tinkxx::wire
