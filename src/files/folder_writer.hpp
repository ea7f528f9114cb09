#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/result.hpp>

#include "base/common/descriptor.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::files {

/// The error for a file operation that failed: what it was, where, and why.
[[nodiscard]] Error file_error(std::string_view what, std::filesystem::path const& path, int code);

/// Why a name that somebody else gave must not become a file below a folder, or nothing: it is
/// empty or too long, begins with a slash, or has an empty part, `.`, `..` or a control character.
[[nodiscard]] std::optional<std::string> name_problem(std::string_view name);

/// Creates files and folders below one folder, and nowhere else: no link is followed, and nothing
/// that is there is opened or replaced.
class FolderWriter {
public:
    /// `root` must be there.
    [[nodiscard]] static Result<FolderWriter> open(std::filesystem::path const& root);

    /// Creates a folder and those above it; one that is there will do.
    [[nodiscard]] Result<void> make_folder(std::string_view name);
    /// Creates a file, and the folders above it. Fails if there is one.
    [[nodiscard]] Result<base::Descriptor> make_file(std::string_view name);
    /// Opens a file for reading and writing that may be there, and creates it if it is not.
    [[nodiscard]] Result<base::Descriptor> open_file(std::string_view name);

private:
    FolderWriter(base::Descriptor root, std::filesystem::path path)
        : root_{std::move(root)}, path_{std::move(path)} {}
    /// Opens the folder `name`, below the root, and creates it where it is missing.
    [[nodiscard]] Result<base::Descriptor> enter(std::string_view name);
    [[nodiscard]] Result<base::Descriptor> file(std::string_view name, int flags);

    base::Descriptor root_;
    std::filesystem::path path_;
};

/// Writes all of it at `offset`.
[[nodiscard]] Result<void> write_at(int fd, std::span<char const> data, std::int64_t offset,
                                    std::filesystem::path const& path);

}  // namespace tinkxx::files
