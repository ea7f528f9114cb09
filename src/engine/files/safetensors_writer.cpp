#include "engine/files/safetensors_writer.hpp"

#include "engine/files/atomic_write.hpp"

#include <boost/json.hpp>

#include <bit>

namespace tinkxx::engine {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

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
        auto const end = offset + tensor.bytes.size();
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
    std::vector<std::span<std::byte const>> parts;
    parts.push_back(std::as_bytes(std::span{header.data(), header.size()}));
    for (auto const& tensor : tensors) parts.push_back(tensor.bytes);
    return write_file(path, parts);
}

}  // namespace tinkxx::engine
