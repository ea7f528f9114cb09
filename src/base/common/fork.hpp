#pragma once

#include <tinkxx/scheduler.hpp>

#include <cstdint>
#include <memory>
#include <mutex>

// A child of `fork` has one thread: the one that called it. What other threads were doing stays
// undone, and the locks that they held stay locked.

namespace tinkxx::base {

/// Locks of the whole process. Outer ones first: who holds one may take a later one.
enum class ProcessLock : std::uint8_t {
    default_options,
    shared_runtime,
    shadows,
    runtimes,
    blocks
};
inline constexpr std::size_t process_locks = 5;

/// From now on no other thread holds `mutex`, which lives for ever, while the process forks, so
/// that the child can use it. Any thread; once for each lock.
void hold_while_forking(ProcessLock which, std::mutex& mutex) noexcept;

/// Keep for ever what belongs to threads of the parent and must be neither used nor destroyed in
/// a child. Any thread.
void strand(Task task) noexcept;
void strand(std::shared_ptr<void> thing) noexcept;

}  // namespace tinkxx::base
