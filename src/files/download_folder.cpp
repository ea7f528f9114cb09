#include "files/download_folder.hpp"

#include <tinkxx/error.hpp>

#include "files/folder_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

namespace tinkxx::files {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view journal_head = "tinkxx pieces 1\n";
constexpr std::string_view marker_name = ".tinkxx-download";
constexpr std::string_view marker_head = "tinkxx download 1\n";

Error bad_target(fs::path const& path, std::string why) {
    return Error{{.kind = ErrorKind::validation,
                  .message = path.string() + ' ' + std::move(why),
                  .category = ErrorCategory::user,
                  .field = "target",
                  .value = path.string()}};
}

std::string read_all(int fd) {
    std::string out;
    std::vector<char> buffer(64 * 1024);
    for (std::int64_t at = 0;;) {
        auto const got = ::pread(fd, buffer.data(), buffer.size(), at);
        if (got <= 0) return out;
        out.append(buffer.data(), static_cast<std::size_t>(got));
        at += got;
    }
}

/// The next line of a journal; none if it is cut off.
std::optional<std::string_view> next_line(std::string_view& rest) {
    auto const end = rest.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    auto const line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return line;
}

std::optional<std::int64_t> number_in(std::string_view text) {
    std::int64_t number = 0;
    auto const read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number < 0) {
        return std::nullopt;
    }
    return number;
}

std::size_t piece_count(std::int64_t bytes, std::int64_t piece_bytes) {
    return static_cast<std::size_t>(bytes / piece_bytes + (bytes % piece_bytes == 0 ? 0 : 1));
}

}  // namespace

PartFile::PartFile(base::Descriptor data, base::Descriptor journal, fs::path path, std::string name)
    : data_{std::move(data)},
      journal_{std::move(journal)},
      path_{std::move(path)},
      name_{std::move(name)} {
    read_journal();
}

void PartFile::read_journal() {
    auto const text = read_all(journal_.get());
    std::string_view rest{text};
    if (!rest.starts_with(journal_head)) return;
    rest.remove_prefix(journal_head.size());
    auto const name = next_line(rest);
    auto const bytes = next_line(rest);
    auto const validator = next_line(rest);
    auto const piece_bytes = next_line(rest);
    if (!piece_bytes || *name != name_ || validator->empty()) return;
    auto const size = number_in(*bytes);
    auto const each = number_in(*piece_bytes);
    if (!size || !each || *each == 0 || piece_count(*size, *each) > PartFile::most_pieces) return;
    struct stat status {};
    if (::fstat(data_.get(), &status) != 0) return;
    mark_ = {.bytes = *size, .validator = std::string{*validator}};
    piece_bytes_ = *each;
    done_.assign(piece_count(*size, *each), false);
    if (!text.ends_with('\n')) (void)note("\n");  // cut off: what follows is a line of its own
    for (auto line = next_line(rest); line; line = next_line(rest)) {
        // Without its point it was not written to the end.
        if (!line->ends_with('.')) continue;
        auto const piece = number_in(line->substr(0, line->size() - 1));
        if (!piece || static_cast<std::uint64_t>(*piece) >= done_.size()) continue;
        auto const index = static_cast<std::size_t>(*piece);
        // What is not in the file was never written, whatever the journal says.
        if (piece_begin(index) + piece_size(index) <= status.st_size) done_[index] = true;
    }
}

bool PartFile::has(std::size_t piece) const {
    std::scoped_lock const lock{mutex_};
    return done_[piece];
}

std::int64_t PartFile::piece_begin(std::size_t piece) const noexcept {
    return static_cast<std::int64_t>(piece) * piece_bytes_;
}

std::int64_t PartFile::piece_size(std::size_t piece) const noexcept {
    return std::min(piece_bytes_, mark_.bytes - piece_begin(piece));
}

std::int64_t PartFile::bytes_there() const {
    std::scoped_lock const lock{mutex_};
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < done_.size(); ++i) {
        if (done_[i]) bytes += piece_size(i);
    }
    return bytes;
}

Result<void> PartFile::restart() {
    if (::ftruncate(journal_.get(), 0) != 0 || ::ftruncate(data_.get(), 0) != 0) {
        return file_error("empty", path_, errno);
    }
    std::scoped_lock const lock{mutex_};
    mark_ = {};
    piece_bytes_ = 0;
    done_.clear();
    return {};
}

Result<void> PartFile::begin(FileVersion mark, std::int64_t piece_bytes) {
    {
        std::scoped_lock const lock{mutex_};
        mark_ = std::move(mark);
        piece_bytes_ = piece_bytes;
        done_.assign(piece_count(mark_.bytes, piece_bytes), false);
    }
    // Without a validator nobody could tell later whether the rest belongs to it.
    if (mark_.validator.empty()) return {};
    return note(std::string{journal_head} + name_ + '\n' + std::to_string(mark_.bytes) + '\n' +
                mark_.validator + '\n' + std::to_string(piece_bytes) + '\n');
}

Result<void> PartFile::write(std::span<char const> data, std::int64_t offset) const {
    return write_at(data_.get(), data, offset, path_);
}

Result<void> PartFile::note(std::string_view line) {
    while (!line.empty()) {
        auto const wrote = ::write(journal_.get(), line.data(), line.size());
        if (wrote < 0) {
            if (errno == EINTR) continue;
            return file_error("write the journal of", path_, errno);
        }
        line.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
}

Result<void> PartFile::finish_piece(std::size_t piece) {
    // Before the journal says so.
    if (::fdatasync(data_.get()) != 0) return file_error("write", path_, errno);
    std::scoped_lock const lock{mutex_};
    done_[piece] = true;
    if (mark_.validator.empty()) return {};
    return note(std::to_string(piece) + ".\n");
}

Result<void> PartFile::finish_whole(std::int64_t bytes) {
    if (::ftruncate(data_.get(), bytes) != 0) return file_error("write", path_, errno);
    if (::fdatasync(data_.get()) != 0) return file_error("write", path_, errno);
    std::scoped_lock const lock{mutex_};
    mark_.bytes = bytes;
    piece_bytes_ = std::max<std::int64_t>(bytes, 1);
    done_.assign(1, true);
    return {};
}

DownloadFolder::DownloadFolder(fs::path target, fs::path folder, base::Descriptor marker)
    : target_{std::move(target)}, folder_{std::move(folder)}, marker_{std::move(marker)} {}

fs::path DownloadFolder::usual_target(std::string_view path) {
    if (auto const scheme = path.find("://"); scheme != std::string_view::npos) {
        path.remove_prefix(scheme + 3);
    }
    std::string name{path};
    std::ranges::replace(name, '/', '_');
    return fs::path{name};
}

Result<std::unique_ptr<DownloadFolder>> DownloadFolder::open(fs::path const& target,
                                                             std::string const& what) {
    std::error_code failed;
    if (fs::symlink_status(target, failed).type() != fs::file_type::not_found) {
        return bad_target(target, "is there already; name another target, or remove it");
    }
    fs::path folder = target;
    folder += ".partial";
    if (auto const above = target.parent_path(); !above.empty()) {
        fs::create_directories(above, failed);
        if (failed) return file_error("create", above, failed.value());
    }
    bool const made = ::mkdir(folder.c_str(), 0777) == 0;
    if (!made && errno != EEXIST) return file_error("create", folder, errno);
    int const flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | (made ? O_CREAT | O_EXCL : 0);
    base::Descriptor marker{::open((folder / marker_name).c_str(), flags, 0666)};
    auto const expected = std::string{marker_head} + what + '\n';
    std::string const other = "is there already, and is not what is left of a download of " + what +
                              "; name another target, or remove it";
    if (!marker) return bad_target(folder, other);
    if (::flock(marker.get(), LOCK_EX | LOCK_NB) != 0) {
        return bad_target(folder, "is being written by another download; wait for that one");
    }
    auto const found = read_all(marker.get());
    // A marker that is cut off is that of a process that ended at once.
    bool const ours = expected.starts_with(found);
    if (!ours) return bad_target(folder, other);
    if (found != expected) {
        std::span<char const> const text{expected};
        if (auto wrote = write_at(marker.get(), text, 0, folder / marker_name); !wrote) {
            return wrote.error();
        }
    }
    for (auto const* below : {"files", "pieces"}) {
        if (::mkdir((folder / below).c_str(), 0777) != 0 && errno != EEXIST) {
            return file_error("create", folder / below, errno);
        }
    }
    return std::unique_ptr<DownloadFolder>{
        new DownloadFolder{target, std::move(folder), std::move(marker)}};
}

Result<std::unique_ptr<PartFile>> DownloadFolder::part(std::size_t index, std::string const& name) {
    auto const below = name.empty() ? folder_ : files();
    auto data_folder = FolderWriter::open(below);
    if (!data_folder) return data_folder.error();
    auto const own = name.empty() ? std::string{"archive"} : name;
    auto data = data_folder->open_file(own);
    if (!data) return data.error();
    auto journals = FolderWriter::open(folder_ / "pieces");
    if (!journals) return journals.error();
    auto journal = journals->open_file(std::to_string(index));
    if (!journal) return journal.error();
    // Lines are added, whoever wrote the others.
    if (::fcntl(journal->get(), F_SETFL, O_APPEND) != 0) {
        return file_error("open", folder_ / "pieces", errno);
    }
    return std::make_unique<PartFile>(*std::move(data), *std::move(journal), below / own, own);
}

Result<void> DownloadFolder::finish() {
    // Never in place of anything, not even an empty folder.
    if (::renameat2(AT_FDCWD, files().c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) != 0) {
        if (errno == EEXIST) {
            return bad_target(target_, "has come to be there meanwhile; what was fetched is in " +
                                           files().string());
        }
        return file_error("rename to its target", files(), errno);
    }
    discard();
    return {};
}

void DownloadFolder::discard() noexcept {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

}  // namespace tinkxx::files
