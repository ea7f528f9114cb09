#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace tinkxx::text::files {

/// More than any tokenizer has; the largest that are known have 35 MB.
inline constexpr std::size_t largest_tokenizer = std::size_t{512} << 20U;
inline constexpr std::size_t largest_config = std::size_t{64} << 20U;

/// The content of a regular file. Throws `ValidationError`, which begins with `operation` and names
/// the file, if it cannot be read or has more bytes than `limit`. Never waits, as opening a FIFO
/// would.
[[nodiscard]] std::string read_text(std::filesystem::path const& path, std::size_t limit,
                                    std::string_view operation);

/// Whether there is a regular file, or a link to one.
[[nodiscard]] bool is_file(std::filesystem::path const& path);
[[nodiscard]] bool is_folder(std::filesystem::path const& path);

/// Writes a file under another name beside it and renames it: readers see the old one or the new
/// one. Throws `ValidationError`.
void write_text(std::filesystem::path const& path, std::string_view text,
                std::string_view operation);

/// A name beside `path` that no other writer uses.
[[nodiscard]] std::filesystem::path temporary_beside(std::filesystem::path const& path);

}  // namespace tinkxx::text::files
