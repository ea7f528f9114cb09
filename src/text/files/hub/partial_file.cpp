#include "text/files/hub/partial_file.hpp"

#include "text/files/disk/failure.hpp"
#include "text/files/disk/text_file.hpp"
#include "text/files/hub/checksum.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace tinkxx::text::files {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(fs::path const& path, int code) {
    refuse_whole(std::string{fetching} + ": cannot write " + path.string() + " (" +
                     std::generic_category().message(code) +
                     "); make the cache writable, or set HF_HUB_CACHE",
                 "cache", path.string());
}

/// A file that grows at its end.
class PartialFile {
public:
    explicit PartialFile(fs::path path)
        : path_{std::move(path)},
          fd_{::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)} {
        if (fd_ < 0) cannot_write(path_, errno);
        auto const end = ::lseek(fd_, 0, SEEK_END);
        size_ = end < 0 ? 0 : static_cast<std::uint64_t>(end);
    }
    ~PartialFile() { ::close(fd_); }
    PartialFile(PartialFile const&) = delete;
    PartialFile& operator=(PartialFile const&) = delete;

    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

    void clear() {
        if (::ftruncate(fd_, 0) != 0) cannot_write(path_, errno);
        size_ = 0;
    }

    void append(std::string_view data) {
        while (!data.empty()) {
            auto const written = ::write(fd_, data.data(), data.size());
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) cannot_write(path_, errno);
            data.remove_prefix(static_cast<std::size_t>(written));
            size_ += static_cast<std::uint64_t>(written);
        }
    }

    void flush() {
        if (::fsync(fd_) != 0) cannot_write(path_, errno);
    }

private:
    fs::path path_;
    int fd_;
    std::uint64_t size_{0};
};

[[noreturn]] void too_large(HubFile const& file, std::uint64_t size, std::uint64_t most) {
    refuse_whole(std::string{fetching} + ": " + file.name + " has " + std::to_string(size) +
                     " bytes or more, and " + std::to_string(most) +
                     " are allowed; raise HubOptions::max_file_bytes if that is right",
                 "max_file_bytes", std::to_string(most));
}

/// One request; true if it is known that nothing is left.
bool fetch_piece(HubRequests const& requests, TokenizerId const& id, HubFile& file,
                 PartialFile& partial, DownloadLimits const& limits) {
    auto const begin = partial.size();
    auto const end = std::min(begin + limits.piece, file.size.value_or(UINT64_MAX));
    bool all = false;
    requests.get(
        id, file, begin, end,
        [&](HubAnswer const& answer) {
            all = answer.status == 200;
            if (all || answer.status == 416)
                partial.clear();  // it sends all, or what is here is wrong
            if (answer.status != 206) return;
            if (answer.begin != begin) {
                give_up(std::string{fetching} + ": the hub sent another part of " + file.name +
                        " than it was asked for; try again later");
            }
            if (!file.size) file.size = answer.size;
        },
        [&](std::string_view data) {
            auto const most = std::min(limits.most, file.size.value_or(limits.most));
            if (data.size() > most - std::min(most, partial.size())) {
                partial.clear();
                too_large(file, most + 1, most);
            }
            partial.append(data);
        });
    if (file.size && *file.size > limits.most) too_large(file, *file.size, limits.most);
    return all || partial.size() == file.size;
}

}  // namespace

FileLock::FileLock(fs::path const& path)
    : fd_{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)} {
    if (fd_ < 0) cannot_write(path, errno);
    while (::flock(fd_, LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        auto const code = errno;
        ::close(fd_);
        cannot_write(path, code);
    }
}

FileLock::~FileLock() { ::close(fd_); }

void download(HubRequests const& requests, TokenizerId const& id, HubFile const& wanted,
              fs::path const& blob, DownloadLimits const& limits) {
    auto file = wanted;
    if (file.size && *file.size > limits.most) too_large(file, *file.size, limits.most);
    auto const path = fs::path{blob.string() + ".incomplete"};
    {
        PartialFile partial{path};
        if (file.size && partial.size() > *file.size) partial.clear();
        bool done = partial.size() == file.size;
        int without_progress = 0;
        while (!done) {
            auto const before = partial.size();
            done = fetch_piece(requests, id, file, partial, limits);
            without_progress = partial.size() > before ? 0 : without_progress + 1;
            if (!done && without_progress > 1) {
                give_up(std::string{fetching} + ": the hub sends nothing of " + file.name + " of " +
                        id.repository + "; try again later");
            }
        }
        partial.flush();
    }
    if (!has_checksum(path, file.checksum)) {
        ::unlink(path.c_str());
        give_up(std::string{fetching} + ": " + file.name + " of " + id.repository +
                " came damaged: it does not have the checksum " + file.checksum +
                "; try again later");
    }
    if (::rename(path.c_str(), blob.c_str()) != 0) cannot_write(blob, errno);
}

void place_link(fs::path const& target, fs::path const& blob, fs::path const& link) {
    auto const temporary = temporary_beside(link);
    std::error_code failed;
    fs::create_symlink(target, temporary, failed);
    if (failed) {
        failed.clear();
        fs::copy_file(blob, temporary, failed);
    }
    if (failed) cannot_write(temporary, failed.value());
    if (::rename(temporary.c_str(), link.c_str()) == 0) return;
    auto const code = errno;
    ::unlink(temporary.c_str());
    cannot_write(link, code);
}

}  // namespace tinkxx::text::files
