#include "engine/files/safetensors_writer.hpp"

#include <boost/json.hpp>

#include <bit>

namespace tinkxx::engine {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

std::uint64_t TensorOut::size() const noexcept {
    if (!stream) return bytes.size();
    std::uint64_t count = size_of(dtype);
    for (auto const dimension : shape) count *= dimension;
    return count;
}

std::string safetensors_header(std::span<TensorOut const> tensors,
                               std::map<std::string, std::string> const& metadata) {
    boost::json::object root;
    if (!metadata.empty()) {
        auto& entry = root["__metadata__"].emplace_object();
        for (auto const& [key, value] : metadata) entry[key] = value;
    }
    std::uint64_t offset = 0;
    for (auto const& tensor : tensors) {
        auto& entry = root[tensor.name].emplace_object();
        entry["dtype"] = to_string(tensor.dtype);
        auto& shape = entry["shape"].emplace_array();
        for (auto const dimension : tensor.shape) shape.emplace_back(dimension);
        auto const end = offset + tensor.size();
        entry["data_offsets"] = boost::json::array{offset, end};
        offset = end;
    }
    auto text = boost::json::serialize(root);
    text.append((8 - text.size() % 8) % 8, ' ');  // so that the tensors start aligned
    std::string header;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        header.push_back(static_cast<char>(text.size() >> shift & 0xffU));
    }
    return header + text;
}

Result<void> write_safetensors(std::filesystem::path const& path,
                               std::span<TensorOut const> tensors,
                               std::map<std::string, std::string> const& metadata) {
    auto const header = safetensors_header(tensors, metadata);
    return write_file(path, [&](ByteSink const& sink) {
        sink(std::as_bytes(std::span{header.data(), header.size()}));
        for (auto const& tensor : tensors) {
            if (tensor.stream) {
                tensor.stream(sink);
            } else {
                sink(tensor.bytes);
            }
        }
    });
}

}  // namespace tinkxx::engine
