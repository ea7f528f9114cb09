#pragma once

#include <sys/resource.h>

namespace tinkxx::base {

/// Lets other threads go before the calling one where they compete for a CPU: `niceness` is what
/// the thread adds to that of the process. Without effect where the system does not allow it.
inline void give_way(int niceness) noexcept {
    if (niceness <= 0) return;
    // (On Linux this is a thread's, not that of its process.)
    auto const now = ::getpriority(PRIO_PROCESS, 0);
    ::setpriority(PRIO_PROCESS, 0, now + niceness);
}

}  // namespace tinkxx::base
