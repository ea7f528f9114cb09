#pragma once

#include <tinkxx/result.hpp>

#include <cstddef>
#include <filesystem>
#include <span>

namespace tinkxx::engine {

/// A whole file mapped read-only. Move-only; the bytes stay valid until it is destroyed.
///
/// The file must not be truncated while it is mapped: the kernel would end the process at the
/// first read behind the new end. Folders that a model is loaded from are therefore replaced by
/// renaming, never written in place.
class MappedFile {
public:
    /// Maps `path`; fails if it is not a readable regular file. An empty file maps to no bytes.
    static Result<MappedFile> open(std::filesystem::path const& path);

    MappedFile() noexcept = default;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    [[nodiscard]] std::span<std::byte const> bytes() const noexcept { return bytes_; }

private:
    std::span<std::byte const> bytes_{};
};

/// The text of a small file; refuses one larger than `limit`.
Result<std::string> read_text(std::filesystem::path const& path, std::size_t limit);

}  // namespace tinkxx::engine
