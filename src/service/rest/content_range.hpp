#pragma once

#include <tinkxx/transport.hpp>

#include "files/download_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// `bytes 0-99/1234`: which part of how much.
struct ContentRange {
    std::int64_t first{0};
    std::int64_t last{0};
    std::int64_t total{0};

    bool operator==(ContentRange const&) const = default;
};
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view text);

/// By what a later request can say that it wants the rest of the same file: a strong ETag, else the
/// date of the last change, else nothing.
[[nodiscard]] std::string range_validator(Headers const& lines);

/// The checksum of a whole file, as servers give it.
struct FileDigest {
    enum class Kind : std::uint8_t { sha256, md5 };
    Kind kind{Kind::sha256};
    /// In base64.
    std::string text{};

    bool operator==(FileDigest const&) const = default;
};
/// Of `Repr-Digest`, `Digest`, `x-amz-checksum-sha256` and `x-goog-hash`, and of `Content-MD5` if
/// the answer is the `whole` file.
[[nodiscard]] std::optional<FileDigest> file_digest(Headers const& lines, bool whole);
/// The error if a file has another checksum. Reads all of it.
[[nodiscard]] Result<void> check_digest(std::filesystem::path const& path,
                                        FileDigest const& digest);

}  // namespace tinkxx::service
