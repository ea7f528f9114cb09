#include "service/training/chunking.hpp"

#include <algorithm>

namespace tinkxx::service {

namespace {

constexpr std::int64_t json_bytes_per_number = 10;

std::int64_t count(std::size_t size) { return static_cast<std::int64_t>(size); }

struct ChunkBytes {
    std::int64_t per_token;

    std::int64_t operator()(EncodedTextChunk const& chunk) const {
        return count(chunk.tokens.size()) * per_token;
    }
    std::int64_t operator()(ImageChunk const& chunk) const { return count(chunk.data.size()); }
    std::int64_t operator()(ImageAssetPointerChunk const& chunk) const {
        // Its length in characters, as the official SDK counts.
        return std::ranges::count_if(chunk.location, [](char c) {
            return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
        });
    }
    std::int64_t operator()(DmelChunk const& chunk) const { return count(chunk.dmel.size()); }
};

std::int64_t tensor_bytes(TensorView const& tensor, wire::Encoding encoding) {
    if (encoding == wire::Encoding::json) return count(tensor.size()) * json_bytes_per_number;
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
    ChunkBytes const bytes{encoding == wire::Encoding::json ? json_bytes_per_number : 4};
    std::int64_t total = 0;
    for (auto const& chunk : datum.model_input.chunks) total += std::visit(bytes, chunk);
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
