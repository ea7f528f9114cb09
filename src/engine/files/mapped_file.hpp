#pragma once

#include <tinkxx/result.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tinkxx::engine {

/// How the bytes of a file come into memory.
enum class Access : std::uint8_t {
    /// As they lie in the system's cache. The file must not be truncated while it is mapped: the
    /// kernel would end the process at the first read behind the new end. For base models, which
    /// are large and which nobody writes in place.
    map,
    /// As a copy, which no later change of the file can reach. For checkpoints.
    read,
};

/// A whole file in memory, read-only. Move-only; the bytes stay valid until it is destroyed.
class MappedFile {
public:
    /// Fails, with the name of the file and what is wrong, unless `path` is a readable regular file
    /// or a symbolic link to one. It never waits: a FIFO is refused, not opened for reading. An
    /// empty file has no bytes.
    static Result<MappedFile> open(std::filesystem::path const& path, Access access = Access::map);

    MappedFile() noexcept = default;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    [[nodiscard]] std::span<std::byte const> bytes() const noexcept { return bytes_; }

private:
    std::span<std::byte const> bytes_{};
};

/// The text of a small file; refuses one larger than `limit`. Fails as `MappedFile::open`.
Result<std::string> read_text(std::filesystem::path const& path, std::size_t limit);

/// Whether something has this name, even a symbolic link that leads nowhere: what reads an optional
/// file should say what is wrong with it, rather than go on as if it were absent.
[[nodiscard]] bool is_named(std::filesystem::path const& path);

/// Fails with the name of the folder if it does not exist or is something else.
Result<void> check_folder(std::filesystem::path const& folder);

}  // namespace tinkxx::engine
