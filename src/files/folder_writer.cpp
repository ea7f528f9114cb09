#include "files/folder_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace tinkxx::files {

Error file_error(std::string_view what, std::filesystem::path const& path, int code) {
    return Error{{.kind = ErrorKind::validation,
                  .message = "cannot " + std::string{what} + ' ' + path.string() + ": " +
                             std::generic_category().message(code),
                  .category = ErrorCategory::user,
                  .field = "target",
                  .value = path.string()}};
}

std::optional<std::string> name_problem(std::string_view name) {
    constexpr std::size_t longest_name = 1024;
    constexpr std::size_t longest_part = 255;
    if (name.empty()) return "is empty";
    if (name.size() > longest_name) return "is longer than 1024 bytes";
    if (name.front() == '/') return "is an absolute path";
    auto const is_control = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    };
    if (std::ranges::any_of(name, is_control)) return "has a control character";
    while (true) {
        auto const slash = name.find('/');
        auto const part = name.substr(0, slash);
        if (part.empty() || part == ".") return "has an empty part";
        if (part == "..") return "leads out of the folder";
        if (part.size() > longest_part) return "has a part longer than 255 bytes";
        if (slash == std::string_view::npos) return std::nullopt;
        name.remove_prefix(slash + 1);
    }
}

Result<FolderWriter> FolderWriter::open(std::filesystem::path const& root) {
    base::Descriptor fd{::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!fd) return file_error("open", root, errno);
    return FolderWriter{std::move(fd), root};
}

Result<base::Descriptor> FolderWriter::enter(std::string_view name) {
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    base::Descriptor at{::openat(root_.get(), ".", flags)};
    if (!at) return file_error("open", path_, errno);
    while (!name.empty()) {
        auto const slash = name.find('/');
        std::string const part{name.substr(0, slash)};
        if (::mkdirat(at.get(), part.c_str(), 0777) != 0 && errno != EEXIST) {
            return file_error("create", path_ / part, errno);
        }
        base::Descriptor next{::openat(at.get(), part.c_str(), flags)};
        if (!next) return file_error("open", path_ / part, errno);
        at = std::move(next);
        if (slash == std::string_view::npos) break;
        name.remove_prefix(slash + 1);
    }
    return at;
}

Result<void> FolderWriter::make_folder(std::string_view name) {
    auto entered = enter(name);
    if (!entered) return entered.error();
    return {};
}

Result<base::Descriptor> FolderWriter::file(std::string_view name, int flags) {
    auto const slash = name.rfind('/');
    auto const folder =
        slash == std::string_view::npos ? std::string_view{} : name.substr(0, slash);
    auto const in = enter(folder);
    if (!in) return in.error();
    std::string const last{slash == std::string_view::npos ? name : name.substr(slash + 1)};
    base::Descriptor made{::openat(in->get(), last.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0666)};
    if (!made) return file_error("create", path_ / name, errno);
    struct stat status {};
    if (::fstat(made.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return file_error("write to what is no file,", path_ / name, EINVAL);
    }
    return made;
}

Result<base::Descriptor> FolderWriter::make_file(std::string_view name) {
    return file(name, O_WRONLY | O_CREAT | O_EXCL);
}

Result<base::Descriptor> FolderWriter::open_file(std::string_view name) {
    return file(name, O_RDWR | O_CREAT | O_NONBLOCK);
}

Result<void> write_at(int fd, std::span<char const> data, std::int64_t offset,
                      std::filesystem::path const& path) {
    while (!data.empty()) {
        auto const written = ::pwrite(fd, data.data(), data.size(), offset);
        if (written < 0) {
            if (errno == EINTR) continue;
            return file_error("write", path, errno);
        }
        data = data.subspan(static_cast<std::size_t>(written));
        offset += written;
    }
    return {};
}

}  // namespace tinkxx::files
