#pragma once

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

// What this process has used so far.
namespace tinkxx::bench {

inline double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    auto const seconds = [](timeval const& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Resident memory in KiB: now ("VmRSS:") or at most ("VmHWM:").
inline long memory_kib(char const* which) {
    std::ifstream file{"/proc/self/status"};
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(which)) return std::atol(line.c_str() + std::strlen(which));
    }
    return 0;
}

}  // namespace tinkxx::bench
