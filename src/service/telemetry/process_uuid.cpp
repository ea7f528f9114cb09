#include "service/telemetry/process_uuid.hpp"

#include "service/common/uuid.hpp"

#include <atomic>

#include <sys/utsname.h>
#include <unistd.h>

namespace tinkxx::service {

std::string process_uuid(std::int64_t pid, Scheduler& scheduler) {
    static std::atomic<std::uint64_t> kept{0};
    auto seed = kept.load();
    if (seed == 0) {
        auto const drawn = scheduler.entropy("process") | 1U;
        if (kept.compare_exchange_strong(seed, drawn)) seed = drawn;
    }
    Random random{base::mix(seed) ^ base::mix(static_cast<std::uint64_t>(pid))};
    return random_uuid(random);
}

std::int64_t current_pid() noexcept { return ::getpid(); }

std::string platform_name() {
    utsname system{};
    return ::uname(&system) == 0 ? system.sysname : "unknown";
}

}  // namespace tinkxx::service
