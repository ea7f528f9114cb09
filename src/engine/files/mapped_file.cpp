#include "engine/files/mapped_file.hpp"

#include "engine/failure.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace tinkxx::engine {

namespace {

class Descriptor {
public:
    explicit Descriptor(int fd) noexcept : fd_{fd} {}
    Descriptor(Descriptor const&) = delete;
    Descriptor& operator=(Descriptor const&) = delete;
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

Error cannot_read(std::filesystem::path const& path, int code) {
    return invalid("cannot read " + path.string() + ": " + std::generic_category().message(code),
                   path.filename().string());
}

}  // namespace

Result<MappedFile> MappedFile::open(std::filesystem::path const& path) {
    Descriptor const file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.get() < 0) return cannot_read(path, errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return cannot_read(path, errno);
    if (!S_ISREG(status.st_mode)) {
        return invalid("cannot read " + path.string() + ": not a regular file",
                       path.filename().string());
    }
    MappedFile mapped;
    auto const size = static_cast<std::size_t>(status.st_size);
    if (size == 0) return mapped;
    void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (start == MAP_FAILED) return cannot_read(path, errno);
    mapped.bytes_ = {static_cast<std::byte const*>(start), size};
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
    auto const file = MappedFile::open(path);
    if (!file) return file.error();
    auto const bytes = file->bytes();
    if (bytes.size() > limit) {
        return invalid(path.string() + " has " + std::to_string(bytes.size()) + " bytes; at most " +
                           std::to_string(limit) + " are allowed",
                       path.filename().string());
    }
    return std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size());
}

}  // namespace tinkxx::engine
