#include "service/passes/chunking.hpp"

#include "wire/values/model_input.hpp"

#include <algorithm>

namespace tinkxx::service {

namespace {

std::int64_t count(std::size_t size) { return static_cast<std::int64_t>(size); }

std::int64_t tensor_bytes(TensorView const& tensor, wire::Encoding encoding) {
    if (encoding == wire::Encoding::json) return count(tensor.size()) * wire::json_bytes_per_number;
    constexpr std::int64_t index_bytes = 8;
    auto total = count(tensor.size()) * (tensor.dtype() == DType::float32 ? 4 : 8);
    if (tensor.sparse_crow_indices)
        total += count(tensor.sparse_crow_indices->size()) * index_bytes;
    if (tensor.sparse_col_indices) total += count(tensor.sparse_col_indices->size()) * index_bytes;
    return total;
}

// Cuts while the sizes come in.
class Cutter {
public:
    explicit Cutter(ChunkCaps caps)
        : caps_{.items = std::max<std::int64_t>(caps.items, 1),
                .bytes = std::max<std::int64_t>(caps.bytes, 1)} {}

    void add(std::int64_t bytes) {
        auto const full = chunks_.empty() || count(chunks_.back().count) >= caps_.items ||
                          bytes > caps_.bytes - chunks_.back().bytes;
        if (full) chunks_.push_back({.first = added_});
        chunks_.back().bytes += bytes;
        ++chunks_.back().count;
        ++added_;
    }
    std::vector<Chunk> chunks() && { return std::move(chunks_); }

private:
    ChunkCaps caps_;
    std::vector<Chunk> chunks_{};
    std::size_t added_{0};
};

}  // namespace

std::int64_t estimate_bytes(Datum const& datum, wire::Encoding encoding) noexcept {
    auto const per_token = encoding == wire::Encoding::json ? wire::json_bytes_per_number : 4;
    auto total = wire::estimate_bytes(datum.model_input, per_token);
    for (auto const& [name, input] : datum.loss_fn_inputs) {
        total += tensor_bytes(input.view(), encoding);
    }
    return total;
}

std::vector<Chunk> split(std::span<Datum const> data, wire::Encoding encoding, ChunkCaps caps) {
    Cutter cutter{caps};
    for (auto const& datum : data) cutter.add(estimate_bytes(datum, encoding));
    return std::move(cutter).chunks();
}

std::vector<Chunk> split_sizes(std::span<std::int64_t const> sizes, ChunkCaps caps) {
    Cutter cutter{caps};
    for (auto const bytes : sizes) cutter.add(bytes);
    return std::move(cutter).chunks();
}

}  // namespace tinkxx::service
