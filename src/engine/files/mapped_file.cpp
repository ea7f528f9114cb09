#include "engine/files/mapped_file.hpp"

#include "base/common/descriptor.hpp"
#include "engine/common/failure.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tinkxx::engine {

namespace {

Error cannot_read(std::filesystem::path const& path, std::string_view why) {
    return invalid("cannot read " + path.string() + ": " + std::string(why),
                   path.filename().string());
}

Error cannot_read(std::filesystem::path const& path, int code) {
    return cannot_read(path, std::generic_category().message(code));
}

std::string_view kind_of(::mode_t mode) {
    if (S_ISREG(mode)) return "a regular file";
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "something else";
}

Error wrong_kind(std::filesystem::path const& path, ::mode_t mode) {
    return cannot_read(path, "it is " + std::string(kind_of(mode)) + ", not a regular file");
}

struct OpenFile {
    base::Descriptor descriptor;
    std::size_t size{0};
};

Result<OpenFile> open_regular(std::filesystem::path const& path) {
    struct stat status {};
    // Looked at before it is opened, since opening alone does something to some devices.
    if (::stat(path.c_str(), &status) != 0) return cannot_read(path, errno);
    if (!S_ISREG(status.st_mode)) return wrong_kind(path, status.st_mode);
    // Another file may have taken the name since. Opening a FIFO without O_NONBLOCK waits until
    // somebody writes to it, and opening a terminal without O_NOCTTY may take it over.
    base::Descriptor file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (file.get() < 0) return cannot_read(path, errno);
    if (::fstat(file.get(), &status) != 0) return cannot_read(path, errno);
    if (!S_ISREG(status.st_mode)) return wrong_kind(path, status.st_mode);
    return OpenFile{std::move(file), static_cast<std::size_t>(status.st_size)};
}

/// Fills `to` from the beginning of the file.
Result<void> read_whole(OpenFile const& file, std::span<char> to,
                        std::filesystem::path const& path) {
    while (!to.empty()) {
        auto const got = ::read(file.descriptor.get(), to.data(), to.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_read(path, errno);
        if (got == 0) return cannot_read(path, "it became shorter while it was read");
        to = to.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

}  // namespace

Result<MappedFile> MappedFile::open(std::filesystem::path const& path, Access access) {
    auto const file = open_regular(path);
    if (!file) return file.error();
    MappedFile mapped;
    if (file->size == 0) return mapped;
    bool const copied = access == Access::read;
    void* const start = ::mmap(nullptr, file->size, copied ? PROT_READ | PROT_WRITE : PROT_READ,
                               copied ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE,
                               copied ? -1 : file->descriptor.get(), 0);
    if (start == MAP_FAILED) return cannot_read(path, errno);
    mapped.bytes_ = {static_cast<std::byte const*>(start), file->size};
    if (copied) {
        auto const whole = read_whole(*file, {static_cast<char*>(start), file->size}, path);
        if (!whole) return whole.error();
    }
    return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_{std::exchange(other.bytes_, {})} {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);  // the other one unmaps what was mapped here
    return *this;
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::string> read_text(std::filesystem::path const& path, std::size_t limit) {
    auto const file = open_regular(path);
    if (!file) return file.error();
    if (file->size > limit) {
        return invalid(path.string() + " has " + std::to_string(file->size) + " bytes; at most " +
                           std::to_string(limit) + " are allowed",
                       path.filename().string());
    }
    std::string text(file->size, '\0');
    if (auto const whole = read_whole(*file, text, path); !whole) return whole.error();
    return text;
}

bool is_named(std::filesystem::path const& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) return true;
    return errno != ENOENT && errno != ENOTDIR;
}

Result<void> check_folder(std::filesystem::path const& folder) {
    auto const fail = [&](std::string const& why) {
        return invalid("cannot read folder " + folder.string() + ": " + why,
                       (folder.has_filename() ? folder : folder.parent_path()).filename().string());
    };
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) {
        if (errno == ENOENT) return fail("it does not exist");
        return fail(std::generic_category().message(errno));
    }
    if (S_ISDIR(status.st_mode)) return {};
    return fail("it is " + std::string(kind_of(status.st_mode)) + ", not a directory");
}

}  // namespace tinkxx::engine
