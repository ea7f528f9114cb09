#pragma once

#include <functional>
#include <thread>

namespace tinkxx::base {

/// Starts a thread that takes no signals: they belong to the program's own threads. Faults stay
/// deliverable, so that crash handlers work, and so does the profiler's clock.
[[nodiscard]] std::thread start_thread(char const* name, std::function<void()> body);

}  // namespace tinkxx::base
