#pragma once

#include <tinkxx/result.hpp>

#include "base/common/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// Files of a home. None of these follows a symlink or waits for a FIFO or a device: what is not a
// regular file or a folder is refused by its name.

namespace tinkxx::local {

using base::Descriptor;

enum class EntryKind : std::uint8_t { missing, file, folder, symlink, other };
/// What stands at a path, which is not followed.
[[nodiscard]] EntryKind kind_of(std::filesystem::path const& path) noexcept;
/// "a symlink", "a FIFO", "a folder"; for messages.
[[nodiscard]] std::string describe_entry(std::filesystem::path const& path);

struct Entry {
    std::string name{};
    EntryKind kind{EntryKind::file};
};
/// The entries of a folder by name. A folder that is missing has none.
[[nodiscard]] Result<std::vector<Entry>> list_folder(std::filesystem::path const& folder);

/// Opens a regular file to read it. Fails with the name and the reason.
[[nodiscard]] Result<Descriptor> open_regular(std::filesystem::path const& file);
[[nodiscard]] std::size_t file_bytes(Descriptor const& file) noexcept;
/// The next bytes of a file that is called `name`; none at its end.
[[nodiscard]] Result<std::string> read_piece(Descriptor const& file,
                                             std::filesystem::path const& name);
/// The text of a small file; refuses one that is larger than `most`.
[[nodiscard]] Result<std::string> read_small_file(std::filesystem::path const& file,
                                                  std::size_t most);
/// Writes a file for its owner only, whole or not at all, and flushes it and its folder.
[[nodiscard]] Result<void> write_small_file(std::filesystem::path const& file,
                                            std::string_view text);
/// Renames within one folder and makes that survive a loss of power. Never replaces anything.
[[nodiscard]] Result<void> rename_entry(std::filesystem::path const& from,
                                        std::filesystem::path const& to);
/// Makes what happened in a folder survive a loss of power, as far as its file system can.
void flush_folder(std::filesystem::path const& folder) noexcept;

/// By which a file is recognised.
struct FileMark {
    std::int64_t bytes{0};
    std::string sha256{};  ///< in hexadecimal digits

    bool operator==(FileMark const&) const = default;
};
using FileMarks = std::map<std::string, FileMark>;

/// Files of a checkpoint whose name begins so belong to the server, and are given to nobody.
inline constexpr char own_file_prefix = '.';

/// Where the row of a checkpoint lies in its folder.
inline constexpr std::string_view checkpoint_note = ".tinkxx-checkpoint.json";

/// Makes a folder with the files of another one but the server's own. Files of checkpoints never
/// change, so that both have the same ones where the file system allows it.
[[nodiscard]] Result<void> link_files(std::filesystem::path const& from,
                                      std::filesystem::path const& to);
/// The marks of all files of a checkpoint's folder but the server's own.
[[nodiscard]] Result<FileMarks> mark_files(std::filesystem::path const& folder);
/// Fails, with the name of the file and what is wrong with it, unless the folder holds just these.
[[nodiscard]] Result<void> check_files(std::filesystem::path const& folder, FileMarks const& marks);

}  // namespace tinkxx::local
