#pragma once

#include <tinkxx/result.hpp>

#include "base/common/descriptor.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::files {

/// What a server says of a file that tells it from others, or from itself as it was before.
struct FileVersion {
    std::int64_t bytes{0};
    /// A strong ETag, or the date of the last change; empty if the server gave neither.
    std::string validator{};

    bool operator==(FileVersion const&) const = default;
};

/// A file that comes in pieces, in any order, and the journal of those that are there. Pieces that
/// a process had written when it ended need not be fetched again. Writing is for any thread.
class PartFile {
public:
    static constexpr std::size_t most_pieces = std::size_t{1} << 24U;

    PartFile(base::Descriptor data, base::Descriptor journal, std::filesystem::path path,
             std::string name);

    [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
    /// Whether its size is known, and by that its pieces.
    [[nodiscard]] bool begun() const noexcept { return piece_bytes_ > 0; }
    [[nodiscard]] FileVersion const& mark() const noexcept { return mark_; }
    [[nodiscard]] std::size_t pieces() const noexcept { return done_.size(); }
    [[nodiscard]] bool has(std::size_t piece) const;
    [[nodiscard]] std::int64_t piece_begin(std::size_t piece) const noexcept;
    [[nodiscard]] std::int64_t piece_size(std::size_t piece) const noexcept;
    /// Bytes of the pieces that are there.
    [[nodiscard]] std::int64_t bytes_there() const;

    /// Begins anew, with nothing there; the size becomes known by `begin`.
    [[nodiscard]] Result<void> restart();
    [[nodiscard]] Result<void> begin(FileVersion mark, std::int64_t piece_bytes);
    [[nodiscard]] Result<void> write(std::span<char const> data, std::int64_t offset) const;
    /// Notes that all of a piece was written.
    [[nodiscard]] Result<void> finish_piece(std::size_t piece);
    /// All of it came at once.
    [[nodiscard]] Result<void> finish_whole(std::int64_t bytes);

private:
    friend class DownloadFolder;
    void read_journal();
    [[nodiscard]] Result<void> note(std::string_view line);

    base::Descriptor data_;
    base::Descriptor journal_;
    std::filesystem::path path_;
    std::string name_;
    FileVersion mark_{};
    std::int64_t piece_bytes_{0};
    mutable std::mutex mutex_{};  // guards what follows
    std::vector<bool> done_{};
};

/// The folder `TARGET.partial`, where files are gathered until they are all there; then they get
/// the name of the target. It has a marker by which it is known, so that nothing of anybody else's
/// is taken for it, and a lock, so that two processes do not write it at once.
class DownloadFolder {
public:
    /// Creates it, or goes on with what is left of an earlier download of the same `what`. Fails if
    /// the target is there, or if something else has the name of the folder.
    [[nodiscard]] static Result<std::unique_ptr<DownloadFolder>> open(
        std::filesystem::path const& target, std::string const& what);
    /// Where a download goes that says nothing of it: the path of the checkpoint without its
    /// scheme, with `_` for `/`, in the folder where the program is.
    [[nodiscard]] static std::filesystem::path usual_target(std::string_view path);

    /// The file number `index`, called `name` below `files`; or the archive, without a name.
    [[nodiscard]] Result<std::unique_ptr<PartFile>> part(std::size_t index,
                                                         std::string const& name);
    [[nodiscard]] std::filesystem::path archive() const { return folder_ / "archive"; }
    [[nodiscard]] std::filesystem::path files() const { return folder_ / "files"; }
    /// Everything is there: gives it its name, and removes the rest.
    [[nodiscard]] Result<void> finish();
    /// Removes what was gathered.
    void discard() noexcept;

private:
    DownloadFolder(std::filesystem::path target, std::filesystem::path folder,
                   base::Descriptor marker);

    std::filesystem::path const target_;
    std::filesystem::path const folder_;
    base::Descriptor marker_;  // locked
};

}  // namespace tinkxx::files
