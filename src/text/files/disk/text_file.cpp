#include "text/files/disk/text_file.hpp"

#include "text/files/disk/failure.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace tinkxx::text::files {

namespace {

class OpenFile {
public:
    explicit OpenFile(int fd) noexcept : fd_{fd} {}
    OpenFile(OpenFile const&) = delete;
    OpenFile& operator=(OpenFile const&) = delete;
    ~OpenFile() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

[[noreturn]] void unusable(std::string_view operation, std::filesystem::path const& path,
                           std::string const& why) {
    refuse_whole(std::string{operation} + ": cannot use " + path.string() + " (" + why +
                     "); name a readable file",
                 "path", path.string());
}

std::string reason(int code) { return std::generic_category().message(code); }

}  // namespace

std::string read_text(std::filesystem::path const& path, std::size_t limit,
                      std::string_view operation) {
    OpenFile const file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    struct stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
        unusable(operation, path, reason(errno));
    }
    if (!S_ISREG(status.st_mode)) unusable(operation, path, "it is not a regular file");
    auto const size = static_cast<std::size_t>(status.st_size);
    if (size > limit) {
        unusable(operation, path,
                 "it has " + std::to_string(size) + " bytes; at most " + std::to_string(limit) +
                     " are allowed");
    }
    std::string text(size, '\0');
    std::size_t done = 0;
    while (done < size) {
        auto const got = ::read(file.get(), text.data() + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) unusable(operation, path, reason(errno));
        if (got == 0) break;  // it became shorter
        done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
}

bool is_file(std::filesystem::path const& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored);
}

bool is_folder(std::filesystem::path const& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
}

std::filesystem::path temporary_beside(std::filesystem::path const& path) {
    static std::atomic<unsigned> counter{0};
    return path.parent_path() / (path.filename().string() + ".tmp-" + std::to_string(::getpid()) +
                                 "-" + std::to_string(counter.fetch_add(1)));
}

void write_text(std::filesystem::path const& path, std::string_view text,
                std::string_view operation) {
    auto const fail = [&](int code) {
        refuse_whole(std::string{operation} + ": cannot write " + path.string() + " (" +
                         reason(code) + "); make the folder writable, or name another one",
                     "path", path.string());
    };
    auto const temporary = temporary_beside(path);
    int code = 0;
    {
        OpenFile const file{
            ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
        if (file.get() < 0) fail(errno);
        while (!text.empty() && code == 0) {
            auto const written = ::write(file.get(), text.data(), text.size());
            if (written >= 0) {
                text.remove_prefix(static_cast<std::size_t>(written));
            } else if (errno != EINTR) {
                code = errno;
            }
        }
        if (code == 0 && ::fsync(file.get()) != 0) code = errno;
    }
    if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) code = errno;
    if (code == 0) return;
    ::unlink(temporary.c_str());
    fail(code);
}

}  // namespace tinkxx::text::files
