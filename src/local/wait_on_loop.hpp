#pragma once

#include "base/runtime/runtime_core.hpp"

#include <chrono>
#include <string_view>

namespace tinkxx::local {

/// Runs `begin(done)` on the loop and waits until it calls `done`, for a second more than `limit`
/// at most, or until the loop ends. Without threads it polls. Throws `UsageError`, whose message
/// begins with `who`, on a thread of the runtime.
void wait_on_loop(tinkxx::detail::RuntimeCore& runtime, std::string_view who,
                  std::chrono::nanoseconds limit,
                  tinkxx::detail::UniqueFunction<void(Task done)> begin);

}  // namespace tinkxx::local
