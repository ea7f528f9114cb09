#include "net/stream/descriptors.hpp"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace tinkxx::net {

bool is_descriptor_shortage(int code) noexcept { return code == EMFILE || code == ENFILE; }

bool descriptors_are_short() noexcept {
    auto const probe = ::eventfd(0, EFD_CLOEXEC);
    if (probe < 0) return is_descriptor_shortage(errno);
    ::close(probe);
    return false;
}

std::optional<std::string> ShortageNote::line(std::string_view failure, TimePoint now) {
    if (said_ && now - *said_ < between_lines) return std::nullopt;
    said_ = now;
    auto text = "out of file descriptors: " + std::string{failure};
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        text += " (the limit is " + std::to_string(limit.rlim_cur) + ')';
    }
    return text +
           "; requests wait for connections that are there, or for a descriptor; raise the limit "
           "(ulimit -n), or let clients share a runtime and options";
}

}  // namespace tinkxx::net
