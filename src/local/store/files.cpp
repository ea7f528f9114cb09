#include "local/store/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>

namespace tinkxx::local {

namespace {

namespace fs = std::filesystem;

Error failed(std::string const& what, fs::path const& path, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::request_failed,
                              .message = "cannot " + what + " " + path.string() + ": " + why,
                              .category = ErrorCategory::server,
                              .field = path.filename().string()}};
}

Error failed(std::string const& what, fs::path const& path, int code) {
    return failed(what, path, std::generic_category().message(code));
}

EntryKind kind_of_mode(mode_t mode) noexcept {
    if (S_ISREG(mode)) return EntryKind::file;
    if (S_ISDIR(mode)) return EntryKind::folder;
    if (S_ISLNK(mode)) return EntryKind::symlink;
    return EntryKind::other;
}

std::string describe_mode(mode_t mode) {
    if (S_ISREG(mode)) return "a regular file";
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISLNK(mode)) return "a symlink";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

struct FreeDigest {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

Result<FileMark> mark_file(fs::path const& file) {
    auto const opened = open_regular(file);
    if (!opened) return opened.error();
    std::unique_ptr<EVP_MD_CTX, FreeDigest> const digest{EVP_MD_CTX_new()};
    if (!digest || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1) {
        return failed("check", file, std::string{"there is no memory for its checksum"});
    }
    FileMark mark;
    std::vector<char> buffer(std::size_t{256} << 10U);
    for (;;) {
        auto const got = ::read(opened->get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed("read", file, errno);
        if (got == 0) break;
        mark.bytes += got;
        EVP_DigestUpdate(digest.get(), buffer.data(), static_cast<std::size_t>(got));
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
    unsigned size = 0;
    EVP_DigestFinal_ex(digest.get(), sum.data(), &size);
    constexpr std::string_view digits = "0123456789abcdef";
    for (unsigned i = 0; i < size; ++i) {
        mark.sha256 += digits[sum[i] >> 4U];
        mark.sha256 += digits[sum[i] & 15U];
    }
    return mark;
}

/// The names of the files of a checkpoint; fails if there is anything but files.
Result<std::vector<std::string>> checkpoint_files(fs::path const& folder) {
    if (kind_of(folder) != EntryKind::folder) {
        return failed("read", folder,
                      kind_of(folder) == EntryKind::missing
                          ? std::string{"there is no such folder"}
                          : "it is " + describe_entry(folder) + ", not a folder");
    }
    auto const entries = list_folder(folder);
    if (!entries) return entries.error();
    std::vector<std::string> names;
    for (auto const& entry : *entries) {
        if (entry.name.front() == own_file_prefix) continue;
        if (entry.kind != EntryKind::file) {
            return failed("read", folder / entry.name,
                          "it is " + describe_entry(folder / entry.name) + ", not a regular file");
        }
        names.push_back(entry.name);
    }
    return names;
}

}  // namespace

EntryKind kind_of(fs::path const& path) noexcept {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return EntryKind::missing;
    return kind_of_mode(status.st_mode);
}

std::string describe_entry(fs::path const& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return "missing";
    return describe_mode(status.st_mode);
}

Result<std::vector<Entry>> list_folder(fs::path const& folder) {
    std::vector<Entry> entries;
    struct Close {
        void operator()(DIR* open) const { ::closedir(open); }
    };
    std::unique_ptr<DIR, Close> const open{::opendir(folder.c_str())};
    if (!open) {
        if (errno == ENOENT) return entries;
        return failed("list", folder, errno);
    }
    for (;;) {
        errno = 0;
        auto const* const entry = ::readdir(open.get());
        if (entry == nullptr) break;
        std::string name{static_cast<char const*>(entry->d_name)};
        if (name == "." || name == "..") continue;
        // Some file systems do not tell the type here.
        auto kind = EntryKind::other;
        if (entry->d_type == DT_REG) kind = EntryKind::file;
        if (entry->d_type == DT_DIR) kind = EntryKind::folder;
        if (entry->d_type == DT_LNK) kind = EntryKind::symlink;
        if (entry->d_type == DT_UNKNOWN) kind = kind_of(folder / name);
        if (kind != EntryKind::missing) entries.push_back({std::move(name), kind});
    }
    if (errno != 0) return failed("list", folder, errno);
    std::ranges::sort(entries, {}, &Entry::name);
    return entries;
}

Result<Descriptor> open_regular(fs::path const& file) {
    Descriptor opened{
        ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)};
    if (opened.get() < 0) {
        int const code = errno;
        if (code == ELOOP || code == ENXIO) {
            return failed("open", file, "it is " + describe_entry(file) + ", not a regular file");
        }
        return failed("open", file, code);
    }
    struct stat status {};
    if (::fstat(opened.get(), &status) != 0) return failed("open", file, errno);
    if (!S_ISREG(status.st_mode)) {
        return failed("open", file,
                      "it is " + describe_mode(status.st_mode) + ", not a regular file");
    }
    return opened;
}

std::size_t file_bytes(Descriptor const& file) noexcept {
    struct stat status {};
    return ::fstat(file.get(), &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

Result<std::string> read_piece(Descriptor const& file, fs::path const& name) {
    std::string bytes(std::size_t{256} << 10U, '\0');
    for (;;) {
        auto const got = ::read(file.get(), bytes.data(), bytes.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed("read", name, errno);
        bytes.resize(static_cast<std::size_t>(got));
        return bytes;
    }
}

Result<std::string> read_small_file(fs::path const& file, std::size_t most) {
    auto const opened = open_regular(file);
    if (!opened) return opened.error();
    std::string text(most + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        auto const got = ::read(opened->get(), text.data() + size, text.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed("read", file, errno);
        if (got == 0) break;
        size += static_cast<std::size_t>(got);
    }
    if (size > most) {
        return failed("read", file, "it has more than " + std::to_string(most) + " bytes");
    }
    text.resize(size);
    return text;
}

Result<void> write_small_file(fs::path const& file, std::string_view text) {
    static std::atomic<unsigned> counter{0};
    auto const temporary = file.string() + ".tmp-" + std::to_string(::getpid()) + "-" +
                           std::to_string(counter.fetch_add(1, std::memory_order_relaxed));
    Descriptor out{
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (out.get() < 0) return failed("write", file, errno);
    int code = 0;
    while (code == 0 && !text.empty()) {
        auto const written = ::write(out.get(), text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR) {
            code = errno;
        }
    }
    if (code == 0 && ::fsync(out.get()) != 0) code = errno;
    if (::close(out.release()) != 0 && code == 0) code = errno;
    if (code == 0 && ::rename(temporary.c_str(), file.c_str()) != 0) code = errno;
    if (code != 0) {
        ::unlink(temporary.c_str());
        return failed("write", file, code);
    }
    flush_folder(file.parent_path());
    return {};
}

Result<void> rename_entry(fs::path const& from, fs::path const& to) {
    int code = 0;
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
        code = errno;
        // Some file systems have no such rename: look first, then rename.
        if (code == EINVAL) {
            code = kind_of(to) != EntryKind::missing         ? EEXIST
                   : ::rename(from.c_str(), to.c_str()) != 0 ? errno
                                                             : 0;
        }
    }
    if (code != 0) return failed("rename " + from.string() + " to", to, code);
    flush_folder(to.parent_path());
    return {};
}

void flush_folder(fs::path const& folder) noexcept {
    Descriptor const open{
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (open.get() >= 0) (void)::fsync(open.get());
}

Result<void> link_files(fs::path const& from, fs::path const& to) {
    auto const names = checkpoint_files(from);
    if (!names) return names.error();
    if (::mkdir(to.c_str(), 0700) != 0) return failed("make", to, errno);
    for (auto const& name : *names) {
        if (::link((from / name).c_str(), (to / name).c_str()) == 0) continue;
        std::error_code code;
        fs::copy_file(from / name, to / name, code);
        if (code) return failed("copy", from / name, code.value());
        if (Descriptor const copy{::open((to / name).c_str(), O_RDONLY | O_CLOEXEC)};
            copy.get() < 0 || ::fsync(copy.get()) != 0) {
            return failed("copy", from / name, errno);
        }
    }
    flush_folder(to);
    return {};
}

Result<FileMarks> mark_files(fs::path const& folder) {
    auto const names = checkpoint_files(folder);
    if (!names) return names.error();
    FileMarks marks;
    for (auto const& name : *names) {
        auto mark = mark_file(folder / name);
        if (!mark) return mark.error();
        marks[name] = *std::move(mark);
    }
    return marks;
}

Result<void> check_files(fs::path const& folder, FileMarks const& marks) {
    auto const names = checkpoint_files(folder);
    if (!names) return names.error();
    auto const damaged = [&](std::string const& name, std::string const& why) {
        return Error{ErrorDetails{.kind = ErrorKind::request_failed,
                                  .message = (folder / name).string() + " " + why,
                                  .category = ErrorCategory::server,
                                  .field = name}};
    };
    for (auto const& [name, mark] : marks) {
        if (std::ranges::find(*names, name) == names->end()) return damaged(name, "is missing");
    }
    for (auto const& name : *names) {
        auto const known = marks.find(name);
        if (known == marks.end()) return damaged(name, "does not belong to the checkpoint");
        auto const found = mark_file(folder / name);
        if (!found) return found.error();
        if (found->bytes != known->second.bytes) {
            return damaged(name, "has " + std::to_string(found->bytes) + " bytes; " +
                                     std::to_string(known->second.bytes) + " were saved");
        }
        if (found->sha256 != known->second.sha256) {
            return damaged(name, "was changed after it was saved: its SHA-256 is " +
                                     found->sha256.substr(0, 16) +
                                     "…, and that of what was saved " +
                                     known->second.sha256.substr(0, 16) + "…");
        }
    }
    return {};
}

}  // namespace tinkxx::local
