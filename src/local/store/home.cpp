#include "local/store/home.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace tinkxx::local {

namespace {

Error unusable(std::filesystem::path const& folder, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = "home directory " + folder.string() + ": " + why,
                              .category = ErrorCategory::user,
                              .field = "home",
                              .value = folder.string()}};
}

std::string reason(int code) { return std::generic_category().message(code); }

}  // namespace

Result<std::unique_ptr<Home>> Home::open(std::filesystem::path folder) {
    bool const temporary = folder.empty();
    std::error_code error;
    if (temporary) {
        auto base = std::filesystem::temp_directory_path(error);
        if (error) base = "/tmp";
        auto pattern = (base / "tinkxx-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            return unusable(base, "no temporary directory can be made in it (" + reason(errno) +
                                      "); name another one");
        }
        folder = pattern;
    } else {
        std::filesystem::create_directories(folder, error);
        if (error) {
            return unusable(folder,
                            "it cannot be made (" + error.message() + "); name another directory");
        }
    }
    auto const lock_file = folder / "lock";
    int const lock = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) {
        return unusable(folder, "it cannot be written to (" + reason(errno) +
                                    "); name another directory, or change its permissions");
    }
    if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
        std::array<char, 32> pid{};
        auto const size = ::read(lock, pid.data(), pid.size() - 1);
        ::close(lock);
        std::string who = "another server";
        if (size > 1) {
            std::string text{pid.data(), static_cast<std::size_t>(size)};
            if (text.back() == '\n') text.pop_back();
            who += " (process " + text + ")";
        }
        return unusable(folder, "it is in use by " + who + "; stop that one, or name another");
    }
    auto const pid = std::to_string(::getpid()) + "\n";
    // For the message above only; nothing depends on it.
    if (::ftruncate(lock, 0) == 0) (void)!::pwrite(lock, pid.data(), pid.size(), 0);
    for (auto const* name : {"checkpoints", "ephemeral"}) {
        std::filesystem::create_directories(folder / name, error);
        if (!error) continue;
        ::close(lock);
        return unusable(folder, std::string{name} + " cannot be made in it (" + error.message() +
                                    "); name another directory, or change its permissions");
    }
    return std::unique_ptr<Home>{new Home{std::move(folder), lock, temporary}};
}

Home::~Home() {
    if (temporary_) {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    ::close(lock_);
}

}  // namespace tinkxx::local
