#pragma once

#include <tinkxx/result.hpp>

#include "engine/files/atomic_write.hpp"
#include "engine/files/safetensors.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::engine {

/// A tensor to write, in the byte order of the file (little-endian): `bytes`, or what `stream`
/// hands over, so that a large model need not lie in memory twice. That must be as many bytes as
/// the shape says.
struct TensorOut {
    std::string name{};
    DType dtype{DType::f32};
    std::vector<std::uint64_t> shape{};
    std::span<std::byte const> bytes{};
    std::function<void(ByteSink const&)> stream{};

    [[nodiscard]] std::uint64_t size() const noexcept;
};

/// The first part of a file that holds `tensors` in the given order: length and padded header.
std::string safetensors_header(std::span<TensorOut const> tensors,
                               std::map<std::string, std::string> const& metadata);

/// Writes a safetensors file atomically (`write_file`). Fails, and leaves an older file as it is,
/// if a float tensor holds NaN or infinity: nobody could read the file again.
Result<void> write_safetensors(std::filesystem::path const& path,
                               std::span<TensorOut const> tensors,
                               std::map<std::string, std::string> const& metadata);

}  // namespace tinkxx::engine
