#pragma once

#include "text/files/hub/hub_requests.hpp"

#include <cstdint>
#include <filesystem>

namespace tinkxx::text::files {

/// Held by one process at a time, and within it by one thread. Waits for it. Freed by the system if
/// the process ends.
class FileLock {
public:
    /// Makes the file if it is not there. Throws `ValidationError` if it cannot.
    explicit FileLock(std::filesystem::path const& path);
    ~FileLock();
    FileLock(FileLock const&) = delete;
    FileLock& operator=(FileLock const&) = delete;

private:
    int fd_;
};

struct DownloadLimits {
    std::uint64_t most{};
    std::uint64_t piece{};
};

/// Fetches a file piece by piece into `blob.incomplete`, beginning where an earlier download ended,
/// and renames it to `blob` once it is whole and has its checksum. The caller holds the lock.
void download(HubRequests const& requests, TokenizerId const& id, HubFile const& file,
              std::filesystem::path const& blob, DownloadLimits const& limits);

/// Makes `link` a link to `target`, which is relative to it and leads to `blob`; a copy where there
/// are no links. Replaces what is there at once.
void place_link(std::filesystem::path const& target, std::filesystem::path const& blob,
                std::filesystem::path const& link);

}  // namespace tinkxx::text::files
