#pragma once

#include <tinkxx/scheduler.hpp>

#include <cstdint>
#include <string>

namespace tinkxx::service {

/// What stands for this process in telemetry (R-TEL-01): the same for all reporters, another one
/// after a fork. `pid` is the process that asks; chance is drawn from `scheduler` once.
///
/// It is made from the number of the process and nothing is kept but one word, so that a child
/// needs no notice, and cannot inherit a lock that nobody will ever release.
[[nodiscard]] std::string process_uuid(std::int64_t pid, Scheduler& scheduler);

[[nodiscard]] std::int64_t current_pid() noexcept;

/// The name of the operating system, as in `Linux`.
[[nodiscard]] std::string platform_name();

}  // namespace tinkxx::service
