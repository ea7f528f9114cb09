#include "engine/files/atomic_write.hpp"

#include "engine/common/failure.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace tinkxx::engine {

namespace {

namespace fs = std::filesystem;

Error failed(std::string_view what, fs::path const& path, int code) {
    return broken("cannot " + std::string(what) + " " + path.string() + ": " +
                      std::generic_category().message(code),
                  path.filename().string());
}

/// A name beside `path` that no other writer of this or another process uses.
fs::path temporary_beside(fs::path const& path) {
    static std::atomic<unsigned> counter{0};
    auto name = path.filename().string() + ".tmp-" + std::to_string(::getpid()) + "-" +
                std::to_string(counter.fetch_add(1, std::memory_order_relaxed));
    return path.parent_path() / name;
}

/// Makes a rename inside `folder` survive a power cut. Some file systems cannot; that is no error.
void flush_folder(fs::path const& folder) {
    int const fd =
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)::fsync(fd);
    ::close(fd);
}

int write_all(int fd, std::span<std::byte const> bytes) {
    while (!bytes.empty()) {
        auto const written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return 0;
}

}  // namespace

Result<void> write_file(fs::path const& path,
                        std::function<Result<void>(ByteSink const&)> const& produce) {
    auto const temporary = temporary_beside(path);
    int const fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return failed("write", path, errno);
    int code = 0;
    auto const produced = produce([&](std::span<std::byte const> part) {
        if (code == 0) code = write_all(fd, part);
    });
    bool const wanted = produced.has_value();
    if (wanted && code == 0 && ::fsync(fd) != 0) code = errno;
    if (::close(fd) != 0 && code == 0) code = errno;
    if (wanted && code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) code = errno;
    if (!wanted || code != 0) {
        ::unlink(temporary.c_str());
        if (!wanted) return produced;
        return failed("write", path, code);
    }
    flush_folder(path.parent_path());
    return {};
}

Result<void> write_file(fs::path const& path, std::string_view text) {
    return write_file(path, [&](ByteSink const& sink) -> Result<void> {
        sink(std::as_bytes(std::span{text.data(), text.size()}));
        return {};
    });
}

Result<void> replace_folder(fs::path const& folder,
                            std::function<Result<void>(fs::path const&)> const& fill) {
    // "a/b/" has an empty file name; the rename needs "a/b".
    auto const target = folder.has_filename() ? folder : folder.parent_path();
    auto const temporary = temporary_beside(target);
    std::error_code code;
    if (!target.parent_path().empty()) fs::create_directories(target.parent_path(), code);
    if (!code) fs::create_directory(temporary, code);
    if (code) return failed("create", target, code.value());
    if (auto const filled = fill(temporary); !filled) {
        fs::remove_all(temporary, code);
        return filled.error();
    }
    int const exchanged =
        ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE);
    if (exchanged == 0) {
        flush_folder(target.parent_path());
        fs::remove_all(temporary, code);  // what stood there before
        return {};
    }
    // Nothing to exchange with, or a file system that cannot exchange.
    if (errno != ENOENT) fs::remove_all(target, code);
    if (::rename(temporary.c_str(), target.c_str()) != 0) {
        int const why = errno;
        fs::remove_all(temporary, code);
        return failed("write", target, why);
    }
    flush_folder(target.parent_path());
    return {};
}

}  // namespace tinkxx::engine
