#include "service/http/standard_headers.hpp"

#include <tinkxx/version.hpp>

#include <sys/utsname.h>

namespace tinkxx::service {

namespace {

std::string os_name() {
#if defined(__ANDROID__)
    return "Android";
#elif defined(__linux__)
    return "Linux";
#elif defined(__APPLE__)
    return "MacOS";
#elif defined(__FreeBSD__)
    return "FreeBSD";
#elif defined(__OpenBSD__)
    return "OpenBSD";
#else
    utsname info{};
    return uname(&info) == 0 ? "Other:" + std::string{info.sysname} : "Unknown";
#endif
}

std::string arch_name() {
#if defined(__x86_64__)
    return "x64";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__i386__)
    return "x32";
#elif defined(__arm__)
    return "arm";
#else
    utsname info{};
    return uname(&info) == 0 ? "other:" + std::string{info.machine} : "unknown";
#endif
}

std::string compiler_version() {
#if defined(__clang__)
    return "clang " + std::to_string(__clang_major__) + '.' + std::to_string(__clang_minor__) +
           '.' + std::to_string(__clang_patchlevel__);
#else
    return "gcc " + std::to_string(__GNUC__) + '.' + std::to_string(__GNUC_MINOR__) + '.' +
           std::to_string(__GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

std::string user_agent() { return "tinkxx/" TINKXX_VERSION; }

Headers standard_headers(std::string_view sdk_version) {
    return {
        {"Accept", "application/json"},
        {"User-Agent", user_agent()},
        {"X-Stainless-Package-Version", std::string{sdk_version}},
        {"X-Stainless-OS", os_name()},
        {"X-Stainless-Arch", arch_name()},
        {"X-Stainless-Runtime", "C++"},
        {"X-Stainless-Runtime-Version", compiler_version()},
    };
}

void add_attempt_lines(Headers& lines, std::chrono::milliseconds read_timeout, int retries,
                       Credential const& credential) {
    if (read_timeout.count() > 0) {
        lines.add("x-stainless-read-timeout", seconds_text(read_timeout));
    }
    lines.add("x-stainless-retry-count", std::to_string(retries));
    if (credential) lines.add("X-API-Key", *credential);
}

std::string seconds_text(std::chrono::milliseconds time) {
    auto text = std::to_string(time.count() / 1000);
    if (auto const rest = time.count() % 1000; rest != 0) {
        auto digits = std::to_string(1000 + rest).substr(1);
        while (digits.ends_with('0')) digits.pop_back();
        text += '.' + digits;
    }
    return text;
}

}  // namespace tinkxx::service
