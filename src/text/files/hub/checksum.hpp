#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tinkxx::text::files {

/// Whether an ETag of the hub is one that can be checked: 64 hexadecimal digits are the SHA-256 of
/// a large file, 40 the SHA-1 by which git names a small one.
[[nodiscard]] bool is_checksum(std::string_view etag);

/// Whether the content of a file has that checksum. False if it cannot be read.
[[nodiscard]] bool has_checksum(std::filesystem::path const& file, std::string_view checksum);

}  // namespace tinkxx::text::files
