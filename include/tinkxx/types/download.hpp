#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx {

/// Told how much of a download is there, of how much, if that is known. Called on the callback
/// executor, one call at a time.
using DownloadProgress =
    std::function<void(std::int64_t downloaded, std::optional<std::int64_t> total)>;

/// How a checkpoint is fetched. Every field has a working default.
struct DownloadOptions {
    /// The folder that is made. Empty: the path of the checkpoint without `tinker://`, with `_` for
    /// `/`, in the working directory.
    std::filesystem::path target{};
    DownloadProgress on_progress{};
    /// Requests at once, from 1 to 64.
    int streams{4};
    /// What one request asks for, of servers that give parts of files: from 64 KiB to 1 GiB.
    std::int64_t piece_bytes{std::int64_t{8} << 20};
    /// An archive that holds more is refused.
    std::int64_t most_bytes{std::int64_t{1} << 42};
    std::int64_t most_files{10'000};
};

/// A file that was fetched.
struct DownloadedFile {
    /// Below the folder.
    std::string name{};
    std::int64_t bytes{0};

    bool operator==(DownloadedFile const&) const = default;
};

struct DownloadedCheckpoint {
    std::filesystem::path folder{};
    std::vector<DownloadedFile> files{};

    bool operator==(DownloadedCheckpoint const&) const = default;
};

}  // namespace tinkxx
